"""A page to try a tagger on: Gradio
=================================

A text goes in, and comes back with its entities marked. Needs ``pip install gradio``::

    python examples/demo_gradio.py tagger  # a directory that save_pretrained wrote
"""

import sys

from skdice import DiceTokenTagger


def mark(text: str) -> dict:
    """Return a text with its entities as Gradio's HighlightedText takes it."""
    found = tagger.predict_entities([text])[0]
    return {
        "text": text,
        "entities": [{"start": e.start, "end": e.end, "entity": e.label} for e in found],
    }


tagger = DiceTokenTagger.from_pretrained(sys.argv[1] if len(sys.argv) > 1 else "tagger")

if __name__ == "__main__":
    import gradio

    gradio.Interface(mark, gradio.Textbox(lines=5), gradio.HighlightedText()).launch()
