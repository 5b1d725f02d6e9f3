"""The demo of Gradio, without Gradio: what it gives to HighlightedText."""

import runpy
import sys
from pathlib import Path

from skdice import DiceTokenTagger

from .corpora import easy_corpus

SCRIPT = Path(__file__).parents[1] / "examples" / "demo_gradio.py"


def test_entities_are_marked(quick_bert, tmp_path, monkeypatch):
    how = {"max_epochs": 6, "lr": 5e-3, "random_state": 0, "verbose": 0}
    tagger = DiceTokenTagger(quick_bert, loss="ce", **how).fit(*easy_corpus(60))
    tagger.save_pretrained(tmp_path / "tagger")
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(tmp_path / "tagger")])
    demo = runpy.run_path(str(SCRIPT))
    text = "the john saw"
    assert demo["mark"](text) == {
        "text": text,
        "entities": [{"start": 4, "end": 8, "entity": "PER"}],
    }
