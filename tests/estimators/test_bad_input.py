"""Rows, labels and tables that no estimator can use: an error that says why, and in which row."""

import linecache
import math
import re
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import skdice

from ..io.conftest import CASES, FAST

NAN = float("nan")
PACKAGE = Path(skdice.__file__).parent
QUERIES = {"PER": "john mary", "LOC": "oslo paris"}
MAX_LENGTH = {"tagger": 16, "queries": 16, "questions": 56, "texts": 24, "pairs": 24}
DATA = {name: CASES[name][1](12) for name in MAX_LENGTH}
SPANS = [[(i % 3, i % 3 + 1, ["PER", "LOC"][i % 2])] for i in range(12)]
SENTENCES, TAGS = DATA["tagger"]
TEXTS = DATA["texts"][0]


NO_ROWS = [
    *(None, 5, NAN, "john lives in oslo", b"john", {"a": ["john"]}, {"john"}, np.array("john")),
    *(list, object(), sparse.csr_matrix(np.eye(3)), (row for row in [["john"]])),
]
# Neither a label nor a text nor a list of texts.
NOTHING = [
    *(None, NAN, 2.5, 1j, 10**400, Decimal("NaN"), np.datetime64("NaT"), pd.NA, b"bytes"),
    *({"a": "b"}, {"a"}, object(), str, range(3), (text for text in ["a"])),
    *(pd.DataFrame({"a": ["b"]}), sparse.csr_matrix([[1]])),
]
JUNK = [
    *(*NOTHING, True, np.array("0-d"), [[["deep"]]], [None], ["a", NAN], [1, 2], [b"a"]),
    np.zeros((2, 2)),
]
# Of each estimator, what no row of X and no row of y may be.
BAD_ROWS = {
    "tagger": ["john lives"],
    "queries": ["john lives"],
    "questions": [
        "question", ("question",), ("question", "context", "more"), ("question", None),
        (NAN, "context"), ("question", ["context"]), (b"question", "context"), ("", "context"),
        ("question", " \n\u3000"), {"question": "question"},
        {"question": "question", "context": None}, {"context": "context", 3: "question"},
    ],
    "texts": [],
    "pairs": [
        "ab", ("a",), ("a", "b", "c"), ("a", None), (1, "b"), (["a"], "b"), ("a", b"b"), {"a", "b"},
        {"a": 1, "b": 2}, np.array(["a", 1], dtype=object),
    ],
}  # fmt: skip
BAD_LABELS = {
    "tagger": [*JUNK, "O", ["O"] * 9],
    "queries": [*JUNK, ["O"] * 9],
    "spans": [
        [(0, 99, "PER")], [(-1, 1, "PER")], [(1, 1, "PER")], [(0, 1)], [(0, 1, "")],
        [(0.0, 1, "PER")], [(0, 10**400, "PER")], [None], "B-PER",
    ],
    # No context has a q, so that these are wrong wherever they are said to be.
    "questions": [
        *NOTHING, [None], [1, 2], {"text": 5, "answer_start": [0]},
        {"text": [None], "answer_start": [0]},
        *({"text": ["qq"], "answer_start": [start]} for start in (None, NAN, 1.0, "0", True, [0])),
        *({"text": ["qq", "q"], "answer_start": starts} for starts in (None, 3, [0], {})), {},
        {"answers": ["a"]}, {"text": "a", "answer_start": 0}, "nowhere", ["no"],
    ],
    "texts": [*NOTHING, 1, float("inf"), Fraction(1, 2), pd.Timestamp("2020-01-01")],
    "pairs": [*NOTHING, "a str", float("inf"), 2**63, Fraction(1, 2), np.datetime64("2020-01-01")],
}  # fmt: skip
METHODS = {
    "tagger": ("predict", "predict_proba", "predict_spans"),
    "queries": ("predict", "predict_spans"),
    "questions": ("predict", "predict_spans", "no_answer_score"),
    "texts": ("predict", "predict_proba", "decision_function"),
    "pairs": ("predict", "predict_proba", "decision_function"),
}


def make(name, model="no/such-model"):
    """Return an estimator; rows are looked at before a model is loaded."""
    params = {"queries": QUERIES} if name == "queries" else {}
    return CASES[name][0](model, **FAST, max_length=MAX_LENGTH[name], **params)


@pytest.fixture(scope="module")
def fitted(tiny_bert):
    return cache(lambda name: make(name, tiny_bert).fit(*DATA[name]))


def with_row(rows, i, row):
    return [*rows[:i], row, *rows[i + 1 :]]


def in_array(rows):
    array = np.empty(len(rows), dtype=object)
    array[:] = [None] * len(rows)
    for i, row in enumerate(rows):
        array[i] = row
    return array


def fails(call, row=None):
    """Require a ValueError or TypeError that skdice raised and that says which row is bad."""
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    error = caught.value
    assert type(error) in (ValueError, TypeError), repr(error)
    frame = caught.traceback[-1]
    statement = linecache.getline(str(frame.path), frame.lineno + 1).strip()
    assert statement.startswith("raise "), f"raised elsewhere: {error!r}"
    assert Path(frame.path).is_relative_to(PACKAGE), f"raised elsewhere: {error!r}"
    assert len(str(error)) > 30, f"says too little: {error!r}"
    if row is not None:
        assert re.search(rf"\brows? (\d+, )*{row}\b", str(error), re.IGNORECASE), error


@pytest.mark.parametrize("name", METHODS)
def test_bad_rows(fitted, name):
    X, y = DATA[name]
    for i, bad in enumerate([*JUNK, *BAD_ROWS[name]]):
        contain = (list, tuple, in_array, lambda rows: pd.Series(in_array(rows)))[i % 4]
        rows = contain(with_row(list(X), i % 12, bad))
        fails(lambda rows=rows: make(name).fit(rows, y), i % 12)
        for method in METHODS[name]:
            fails(partial(getattr(fitted(name), method), rows), i % 12)


@pytest.mark.parametrize("kind", BAD_LABELS)
def test_bad_labels(fitted, kind):
    name = "queries" if kind == "spans" else kind
    X, y = DATA[name][0], SPANS if kind == "spans" else DATA[name][1]
    for i, bad in enumerate(BAD_LABELS[kind]):
        labels = with_row(list(y), 1 + i % 11, bad)
        fails(lambda labels=labels: make(name).fit(X, labels), 1 + i % 11)
        if name != "questions":  # What an answer is not in its context is wrong, not malformed.
            fails(lambda labels=labels: fitted(name).score(X, labels), 1 + i % 11)


@pytest.mark.parametrize("name", METHODS)
def test_no_rows(fitted, name):
    X, y = DATA[name]
    raw = ("predict_entities", "predict_iter") if name == "tagger" else ()
    for bad in NO_ROWS:
        for method in (*METHODS[name], *raw[:1]):
            fails(partial(getattr(fitted(name), method), bad))
        fails(lambda bad=bad: make(name).fit(bad, y))
        fails(lambda bad=bad: make(name).fit(X, bad))
    for bad in (None, 5, "john", b"john"):
        for method in raw:
            fails(partial(getattr(fitted(name), method), bad))


@pytest.mark.parametrize("name, columns", [
    *(("questions", c) for c in ([], ["question"], ["context", "text"])),
    ("questions", ["question"] * 2),
    *(("texts", range(n)) for n in (0, 2, 3)),
    *(("pairs", range(n)) for n in (0, 1, 3)),
])  # fmt: skip
def test_tables_with_other_columns(fitted, name, columns):
    table = pd.DataFrame([["john"] * len(columns)] * 12, columns=columns, dtype=object)
    fails(lambda: fitted(name).predict(table))
    if name != "questions":
        fails(lambda: fitted(name).predict(table.to_numpy()))
    fails(lambda: make(name).fit(table, DATA[name][1]))


@pytest.mark.parametrize("name", ["questions", "pairs"])
def test_tables_with_bad_cells(fitted, name):
    for i, bad in enumerate(JUNK):
        array = np.array(DATA[name][0], dtype=object)
        array[7, i % 2] = bad
        table = pd.DataFrame(array, columns=["question", "context"])
        fails(lambda table=table: fitted(name).predict(table), 7)
        if name == "pairs":
            fails(lambda array=array: fitted(name).predict(array), 7)


def test_bad_rows_of_matrices():
    for bad in [*NOTHING, [0], [0, 1, 1], [None, 1], [0.5, 1], ["0", 1], [2, 1]]:
        fails(lambda bad=bad: make("texts").fit(TEXTS, with_row([[0, 1]] * 12, 4, bad)), 4)


@pytest.mark.parametrize("row", [0, 5, 512, 600])
def test_streams_with_bad_rows(fitted, row):
    """The rows before are tagged, and so they are if the stream itself breaks."""

    def broken():
        yield from [["john"]] * row
        raise ZeroDivisionError

    stream, tagged = (["john"] if i != row else None for i in range(700)), []
    fails(lambda: tagged.extend(fitted("tagger").predict_iter(stream)), row)
    assert len(tagged) == row
    with pytest.raises(ZeroDivisionError):
        tagged.extend(fitted("tagger").predict_iter(broken()))
    assert len(tagged) == 2 * row


def test_bad_weights():
    bad_rows = [NAN, math.inf, 1e39, -1, None, "john", "", {}, [1.0], 1j]
    weights = [NAN, -1, 0, "john", {}, [], [1.0], [[1.0] * 12], [0.0] * 12]
    for bad in bad_rows:
        row = 3 if bad is None or isinstance(bad, int | float) else None
        weight = with_row([1.0] * len(SENTENCES), 3, bad)
        fails(lambda w=weight: make("tagger").fit(SENTENCES, TAGS, sample_weight=w), row)
    for weight in weights:
        fails(lambda w=weight: make("tagger").fit(SENTENCES, TAGS, sample_weight=w))


@pytest.mark.parametrize("spans", [
    [3], [None], [(0,)], [(0, 1, 2)], [(0.0, 1.0)], [(1, 0)], [(0, 99)], [("a", "b")], ["ab"],
], ids=str)  # fmt: skip
def test_bad_splitters(fitted, spans):
    fails(lambda: fitted("tagger").predict_entities(["john"], lambda text: spans), 0)
