"""Rows, labels and tables that no estimator can use: an error that says why, and in which row."""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ..io.conftest import CASES
from .hypothesis_inputs import (
    JUNK,
    NAN,
    NO_ROWS,
    ONE_EPOCH,
    cases,
    fails,
    junk,
    no_labels,
    one_bad_row,
    text,
    with_row,
)

QUERIES = {"PER": "john mary", "LOC": "oslo paris"}
SENTENCES, TAGS = CASES["tagger"][1](16)
SPANS = [[(i % 3, i % 3 + 1, ["PER", "LOC"][i % 2])] for i in range(16)]
QUESTIONS, ANSWERS = CASES["questions"][1](12)
TEXTS, TEXT_LABELS = CASES["texts"][1](12)
PAIRS, PAIR_LABELS = CASES["pairs"][1](12)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*answer_start"),
    pytest.mark.filterwarnings("ignore:.*are longer than max_length"),
    pytest.mark.filterwarnings("ignore:A column-vector y was passed"),
]

# -- what is bad -----------------------------------------------------------------------------------

bad_sentences = junk | text(9)
bad_tags = junk | text(9) | st.just(["O"] * 9)
bad_spans = st.tuples(st.integers(-2, 9), st.integers(-2, 9), st.just("")) | st.sampled_from(
    [(0, 99, "PER"), (-1, 1, "PER"), (1, 1, "PER"), (0, 1), (0.0, 1, "PER"), (0, 10**400, "PER")]
)
bad_rows_of_spans = junk | bad_spans | st.lists(bad_spans | junk, min_size=1)
bad_questions = junk | st.sampled_from(
    [
        "question",
        ("question",),
        ("question", "context", "more"),
        ("question", None),
        (NAN, "context"),
        ("question", ["context"]),
        (b"question", "context"),
        ("", "context"),
        ("question", " \n\u3000"),
        {"question": "question"},
        {"question": "question", "context": None},
        {"context": "context", 3: "question"},
    ]
)
places = st.sampled_from([None, NAN, 1.0, "0", True, [0], 1j]) | junk
# No context has a q, so that these are wrong wherever they are said to be.
bad_answers = st.one_of(
    junk,
    st.lists(junk, min_size=1),
    st.builds(lambda texts: {"text": texts, "answer_start": [0]}, junk),
    st.builds(lambda text: {"text": [text], "answer_start": [0]}, junk),
    st.builds(lambda start: {"text": ["qq"], "answer_start": [start]}, places),
    st.builds(lambda starts: {"text": ["qq", "q"], "answer_start": starts}, places),
    st.sampled_from([{}, {"answers": ["a"]}, {"text": "a", "answer_start": 0}, "nowhere", ["no"]]),
)
bad_pairs = junk | st.sampled_from(
    [
        "ab",
        ("a",),
        ("a", "b", "c"),
        ("a", None),
        (NAN, "b"),
        (1, "b"),
        (["a"], "b"),
        ("a", b"b"),
        {"a", "b"},
        {"a": 1, "b": 2},
        np.array(["a", 1], dtype=object),
    ]
)
bad_text_labels = no_labels.filter(lambda label: not isinstance(label, str))


class Labels(NamedTuple):
    """A y that fits X, and what no row of it may be, in fit and mostly in score."""

    y: Any
    bad: st.SearchStrategy
    in_score: bool = True


class Subject(NamedTuple):
    """An estimator: rows that it can be fitted on, what no row may be, and what predicts."""

    make: Callable[..., Any]
    X: Any
    bad: st.SearchStrategy
    predict: tuple[str, ...]
    labels: dict[str, Labels]
    raw: tuple[str, ...] = ()  # Predict from strings, not from rows.


_scores = ("predict", "predict_proba", "decision_function")
SUBJECTS = {
    "tagger": Subject(
        partial(CASES["tagger"][0], **ONE_EPOCH, max_length=16),
        SENTENCES,
        bad_sentences,
        ("predict", "predict_proba", "predict_spans"),
        {"tags": Labels(TAGS, bad_tags)},
        ("predict_entities",),
    ),
    "queries": Subject(
        partial(CASES["queries"][0], **ONE_EPOCH, queries=QUERIES, max_length=16),
        SENTENCES,
        bad_sentences,
        ("predict", "predict_spans"),
        {"tags": Labels(TAGS, bad_tags), "spans": Labels(SPANS, bad_rows_of_spans)},
        ("predict_entities",),
    ),
    "questions": Subject(
        partial(CASES["questions"][0], **ONE_EPOCH, max_length=56),
        QUESTIONS,
        bad_questions,
        ("predict", "predict_spans", "no_answer_score"),
        # What an answer is not in its context is wrong, not malformed.
        {"answers": Labels(ANSWERS, bad_answers, in_score=False)},
    ),
    "texts": Subject(
        partial(CASES["texts"][0], **ONE_EPOCH, max_length=24),
        TEXTS,
        junk,
        _scores,
        {"labels": Labels(TEXT_LABELS, bad_text_labels)},
    ),
    "pairs": Subject(
        partial(CASES["pairs"][0], **ONE_EPOCH, max_length=24),
        PAIRS,
        bad_pairs,
        _scores,
        {"labels": Labels(PAIR_LABELS, no_labels)},
    ),
}
KINDS_OF_LABELS = [(name, kind) for name, subject in SUBJECTS.items() for kind in subject.labels]


def first_labels(subject):
    return next(iter(subject.labels.values())).y


@pytest.fixture(scope="module")
def fitted(tiny_bert):
    """Return an estimator by name, fitted once."""

    @cache
    def get(name):
        subject = SUBJECTS[name]
        return subject.make(tiny_bert).fit(subject.X, first_labels(subject))

    return get


# -- what every estimator refuses ------------------------------------------------------------------


@pytest.mark.parametrize("name", SUBJECTS)
@cases(0.15)
@given(data=st.data())
def test_rows_of_junk(fitted, name, data):
    subject = SUBJECTS[name]
    X, row = data.draw(one_bad_row(subject.X, subject.bad))
    for method in subject.predict:
        fails(partial(getattr(fitted(name), method), X), row)
    fails(lambda: subject.make().fit(X, first_labels(subject)), row)


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_kind_of_junk_in_fit(name):
    subject = SUBJECTS[name]
    y = first_labels(subject)
    for bad in JUNK:
        fails(lambda bad=bad: subject.make().fit(with_row(list(subject.X), 1, bad), y), 1)
        if not isinstance(bad, list | np.ndarray):  # Rows of several labels are.
            fails(lambda bad=bad: subject.make().fit(subject.X, with_row(list(y), 1, bad)), 1)


@pytest.mark.parametrize("name, kind", KINDS_OF_LABELS)
@cases(0.15)
@given(data=st.data())
def test_labels_of_junk(fitted, name, kind, data):
    subject = SUBJECTS[name]
    labels = subject.labels[kind]
    y, row = data.draw(one_bad_row(labels.y, labels.bad))
    fails(lambda: subject.make().fit(subject.X, y), row)
    if labels.in_score:
        fails(lambda: fitted(name).score(subject.X, y), row)


@pytest.mark.parametrize("kind", NO_ROWS)
@pytest.mark.parametrize("name", SUBJECTS)
def test_no_rows(fitted, name, kind):
    subject, bad = SUBJECTS[name], NO_ROWS[kind]
    for method in (*subject.predict, *subject.raw):
        fails(partial(getattr(fitted(name), method), bad))
    fails(lambda: subject.make().fit(bad, first_labels(subject)))
    fails(lambda: subject.make().fit(subject.X, bad))


# -- tables and matrices ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, columns",
    [
        *(("questions", c) for c in ([], ["question"], ["context", "text"])),
        ("questions", ["question"] * 2),
        *(("texts", range(n)) for n in (0, 2, 3)),
        *(("pairs", range(n)) for n in (0, 1, 3)),
    ],
)
def test_tables_with_other_columns(fitted, name, columns):
    table = pd.DataFrame([["john"] * len(columns)] * 12, columns=columns, dtype=object)
    fails(lambda: fitted(name).predict(table))
    if name != "questions":
        fails(lambda: fitted(name).predict(table.to_numpy()))
    fails(lambda: SUBJECTS[name].make().fit(table, first_labels(SUBJECTS[name])))


@pytest.mark.parametrize("name", ["questions", "pairs"])
@cases(0.05)
@given(cell=junk, column=st.integers(0, 1))
def test_tables_with_junk(fitted, name, cell, column):
    array = np.array(SUBJECTS[name].X, dtype=object)
    array[7, column] = cell
    if name == "pairs":
        fails(lambda: fitted(name).predict(array), 7)
    fails(lambda: fitted(name).predict(pd.DataFrame(array, columns=["question", "context"])), 7)


@pytest.mark.parametrize(
    "name, y",
    [
        *(("pairs", y) for y in (np.eye(12), [[0, 1]] * 12, np.zeros((12, 1, 1)))),
        *(("texts", np.ones(shape)) for shape in [(12, 0), (12, 2, 2), (11, 2), (13, 2), (0, 2)]),
    ],
    ids=lambda value: value if isinstance(value, str) else str(np.shape(value)),
)
def test_matrices_of_other_shapes(tiny_bert, name, y):
    fails(lambda: SUBJECTS[name].make(tiny_bert).fit(SUBJECTS[name].X, y))


@cases(0.1)
@given(
    row=junk
    | st.lists(st.integers(0, 1)).filter(lambda row: len(row) != 2)
    | junk.filter(lambda cell: cell is not True).map(lambda cell: [cell, 1]),
    i=st.integers(1, 11),
)
def test_rows_of_matrices_of_junk(row, i):
    rows = with_row([[0, 1] for _ in TEXTS], i, row)
    fails(lambda: SUBJECTS["texts"].make().fit(TEXTS, rows), i)


@pytest.mark.parametrize("bad", [None, 5, "john", b"john"], ids=str)
def test_no_stream(fitted, bad):
    fails(lambda: fitted("tagger").predict_iter(bad))


@pytest.mark.parametrize("row", [0, 5, 512, 600])
def test_streams_with_junk(fitted, row):
    """The rows before the junk are tagged."""
    stream = (["john"] if i != row else None for i in range(700))
    tagged = []
    fails(lambda: tagged.extend(fitted("tagger").predict_iter(stream)), row)
    assert len(tagged) == row


def test_stream_that_breaks(fitted):
    def stream():
        yield from [["john"]] * 600
        raise ZeroDivisionError

    tagged = []
    with pytest.raises(ZeroDivisionError):
        tagged.extend(fitted("tagger").predict_iter(stream()))
    assert len(tagged) == 600


@pytest.mark.parametrize("bad", [NAN, math.inf, 1e39, -1, None, "john", "", {}, [1.0], 1j], ids=str)
def test_weights_of_junk(bad):
    weight = with_row([1.0] * len(SENTENCES), 3, bad)
    row = 3 if bad is None or isinstance(bad, int | float) else None
    fails(lambda: SUBJECTS["tagger"].make().fit(SENTENCES, TAGS, sample_weight=weight), row)


@pytest.mark.parametrize("bad", [NAN, -1, 0, "john", {}, [], [1.0], [[1.0] * 12]], ids=str)
def test_no_weights(bad):
    fails(lambda: SUBJECTS["tagger"].make().fit(SENTENCES, TAGS, sample_weight=bad))


@pytest.mark.parametrize(
    "spans",
    [[3], [None], [(0,)], [(0, 1, 2)], [(0.0, 1.0)], [(1, 0)], [(0, 99)], [("a", "b")], ["ab"]],
    ids=str,
)
def test_splitters_of_junk(fitted, spans):
    fails(lambda: fitted("tagger").predict_entities(["john"], lambda text: spans), 0)
