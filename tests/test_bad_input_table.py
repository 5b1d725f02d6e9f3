"""The page of what bad input gets: every row of its table is tried, and says what it says there."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError

import skdice
from skdice.losses import DiceLoss

HEADING = "# What bad input gets"
PAGE = Path(__file__).parents[1] / "docs" / "bad_input.md"
OUTCOMES = {kind.__name__: kind for kind in (TypeError, ValueError, NotFittedError, UserWarning)}
ONE_EPOCH = {"max_epochs": 1, "random_state": 0, "verbose": 0}
NAN = float("nan")
SENTENCES = [["john", "went", "to", "oslo"]] * 8
TAGS = [["B-PER", "O", "O", "B-LOC"]] * 8
QUESTIONS = [("city ?", "john in oslo"), ("city ?", "mary in rome")]
ANSWERS = ["oslo", "rome"]
TEXTS = ["john saw", "the oslo", "by rome", "mary went"]
PAIRS = [(text, "the") for text in TEXTS]
LABELS = [0, 1, 1, 0]


class Row(NamedTuple):
    outcome: str
    fragment: str


def read_table() -> dict[str, Row]:
    """Return the rows of the table by their first cell; names of groups are left out."""
    section = PAGE.read_text(encoding="utf-8").partition(HEADING)[2].partition("\n## ")[0]
    cells = [re.split(r" *\| *", line.strip("| ")) for line in section.splitlines() if "|" in line]
    rows = [row for row in cells[2:] if len(row) == 3]
    assert len({row[0] for row in rows}) == len(rows)
    return {given: Row(outcome, fragment.strip("`")) for given, outcome, fragment in rows}


def changed(rows, i, row):
    return [row if j == i else old for j, old in enumerate(rows)]


def tag(model, X=SENTENCES, y=TAGS, sample_weight=None, **parameters):
    return skdice.DiceTokenTagger(model, **{**ONE_EPOCH, **parameters}).fit(X, y, sample_weight)


def query(model, y):
    return skdice.DiceQueryTagger(model, **ONE_EPOCH).fit(SENTENCES, y)


def extract(model, X=QUESTIONS, y=ANSWERS):
    return skdice.DiceSpanExtractor(model, **ONE_EPOCH).fit(X, y)


def classify(model, X=TEXTS, y=LABELS):
    return skdice.DiceTextClassifier(model, **ONE_EPOCH).fit(X, y)


def classify_pairs(model, X):
    return skdice.DicePairClassifier(model, **ONE_EPOCH).fit(X, LABELS)


def tag_any_words(model):
    words = ["", "\u200b", "\x00", "\ud800", "[SEP]", "a" * 1000]
    (tags,) = tag(model).predict([words])
    assert len(tags) == len(words)


def lose(logits, target):
    return DiceLoss()(torch.zeros(logits), torch.tensor(target))


def search(model, **parameters):
    settings = {"n_trials": 2, "cv": 2, "refit": False, "random_state": 0, "verbose": 0}
    tagger = skdice.DiceTokenTagger(model, **ONE_EPOCH)
    return skdice.DiceSearchCV(tagger, **{**settings, **parameters}).fit(SENTENCES, TAGS)


def compare(model):
    tagger = skdice.DiceTokenTagger(model, **ONE_EPOCH)
    arguments = (SENTENCES, TAGS, SENTENCES, TAGS)
    return skdice.compare_losses(tagger, *arguments, losses=("dice", "dsc"), verbose=0)


# Several calls: each of them gets what the row says.
CASES = {
    "`None`, a str, a dict, a set or a generator as X": [
        lambda model, fit=fit, X=X: fit(model, X)
        for fit in (tag, extract, classify, classify_pairs)
        for X in (None, "john", {"a": 1}, {"a"}, iter(["a"]))
    ],
    "no y": [
        lambda model: tag(model, y=None),
        lambda model: query(model, None),
        lambda model: extract(model, y=None),
        lambda model: classify(model, y=None),
    ],
    "X and y of different lengths": [
        lambda model: tag(model, y=TAGS[:7]),
        lambda model: query(model, TAGS[:7]),
        lambda model: extract(model, QUESTIONS * 4, ANSWERS),
        lambda model: classify(model, TEXTS * 2),
        lambda model: classify_pairs(model, PAIRS * 2),
    ],
    "a negative `sample_weight`":
        [lambda model: tag(model, sample_weight=[1, 1, -1, 1, 1, 1, 1, 1])],
    "a parameter out of its range": [lambda model: tag(model, batch_size=0)],
    "a parameter that the loss does not have": [lambda model: tag(model, loss="ce", gamma=1.0)],
    "`unlabeled` rows that are no rows of X": [
        lambda model: skdice.DiceTokenTagger(model).fit(SENTENCES, TAGS, unlabeled=["john lives"]),
        lambda model: skdice.DiceTextClassifier(model).fit(TEXTS, LABELS, unlabeled=PAIRS),
        lambda model: skdice.DicePairClassifier(model).fit(PAIRS, LABELS, unlabeled=TEXTS),
    ],
    "`unlabeled` to an estimator that labels no rows": [
        lambda model: skdice.DiceQueryTagger(model).fit(SENTENCES, TAGS, unlabeled=SENTENCES),
        lambda model: skdice.DiceSpanExtractor(model).fit(QUESTIONS, ANSWERS, unlabeled=QUESTIONS),
    ],
    "a `model` that is nowhere": [lambda model: tag("no-such-directory/model")],
    "X to predict before `fit`": [
        lambda model: skdice.DiceTokenTagger(model).predict(SENTENCES),
        lambda model: skdice.DiceSpanExtractor(model).predict(QUESTIONS),
        lambda model: skdice.DiceTextClassifier(model).predict(TEXTS),
    ],
    "words that are empty, invisible or longer than a window": [tag_any_words],
    "a sentence that is not split": [lambda model: tag(model, changed(SENTENCES, 2, "john lives"))],
    "a word that is missing":
        [lambda model: tag(model, changed(SENTENCES, 2, ["john", NAN, "to", "oslo"]))],
    "more or fewer tags than words": [
        lambda model: tag(model, y=changed(TAGS, 2, ["O"])),
        lambda model: query(model, changed(TAGS, 2, ["O"])),
    ],
    "one tag in all of y": [lambda model: tag(model, y=[["O"] * 4] * 8)],
    "a tag without a prefix among `B-x` and `I-x`":
        [lambda model: tag(model, y=changed(TAGS, 2, ["B-PER", "o", "O", "B-LOC"]))],
    "a span outside its sentence":
        [lambda model: query(model, changed([[(0, 1, "PER")]] * 8, 2, [(0, 9, "PER")]))],
    "overlapping entities": [lambda model: query(model, [[(0, 2, "PER"), (1, 3, "LOC")]] * 8)],
    "tags that mark no entities": [lambda model: query(model, [["NOUN"] * 4] * 8)],
    "a table without its columns":
        [lambda model: extract(model, pd.DataFrame(QUESTIONS, columns=["question", "text"]))],
    "a question or context that is empty":
        [lambda model: extract(model, changed(QUESTIONS, 1, ("city ?", " ")))],
    "a question longer than a window":
        [lambda model: extract(model, changed(QUESTIONS, 1, ("city " * 70, "mary in rome")))],
    "an answer beside its `answer_start`":
        [lambda model: extract(model, y=["oslo", {"text": ["rome"], "answer_start": [5]}])],
    "an answer as a str that stands several times in its context":
        [lambda model: extract(model, X=changed(QUESTIONS, 0, ("city ?", "oslo or oslo")))],
    "no answer in all of y": [lambda model: extract(model, y=["", ""])],
    "an answer that its context does not have":
        [lambda model: extract(model, y=changed(ANSWERS, 1, "paris"))],
    "a text that is missing": [lambda model: classify(model, changed(TEXTS, 1, NAN))],
    "a row that is no pair":
        [lambda model: classify_pairs(model, changed(PAIRS, 1, ("a", "b", "c")))],
    "a label that is missing": [
        lambda model: classify(model, y=changed(LABELS, 1, None)),
        lambda model: classify(model, y=changed(LABELS, 1, NAN)),
    ],
    "labels of several types": [lambda model: classify(model, y=["spam", 1, "ham", "ham"])],
    "one class in y": [lambda model: classify(model, y=[1] * 4)],
    "lists of labels": [
        lambda model: classify(model, y=[["a"], ["a", "b"], [], ["b"]]),
        lambda model: classify(model, y=[["a", "b"]] * 4),
    ],
    "two columns of labels with one name":
        [lambda model: classify(model, y=pd.DataFrame(np.eye(4, 2, dtype=int), columns=[*"aa"]))],
    "texts longer than `max_length`":
        [lambda model: classify(model, changed(TEXTS, 1, "oslo " * 70))],
    "targets that are no class": [lambda model: lose((4, 3), [0, 1, 2, 3])],
    "logits of another shape": [lambda model: lose((4, 3, 1), [0, 1, 2, 0])],
    "a list of grids for `DiceSearchCV`": [lambda model: search(model, space=[{"loss": ["ce"]}])],
    "a search in which every trial fails":
        [lambda model: search(model, space=lambda trial: {"gamma": -1.0}, error_score=np.nan)],
    "a baseline that is not compared": [compare],
}  # fmt: skip


def test_every_row_has_a_case():
    assert list(read_table()) == list(CASES)


@pytest.mark.parametrize("given, call", [(given, call) for given in CASES for call in CASES[given]])
def test_row(tiny_bert, given, call):
    row = read_table()[given]
    expected = OUTCOMES.get(row.outcome)
    if expected is None:
        assert row.fragment == "–"
        call(tiny_bert)
    elif issubclass(expected, Warning):
        with pytest.warns(expected, match=re.escape(row.fragment)):
            call(tiny_bert)
    else:
        with pytest.raises(expected) as caught:
            call(tiny_bert)
        assert type(caught.value) is expected
        assert row.fragment in str(caught.value)
