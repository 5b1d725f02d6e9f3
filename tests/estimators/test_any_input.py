"""Any words, texts, questions and labels: predictions and fits that are what they promise to be.

An error may say what a text lacks; test_bad_input has what is always an error.
"""

from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from skdice import DiceQueryTagger
from skdice.text import SPLITTERS

from ..corpora import easy_corpus
from ..io import conftest
from .hypothesis_inputs import (
    ONE_EPOCH,
    attempt,
    cases,
    labels_for,
    sentences,
    text,
    texts,
    words,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*are longer than max_length"),
    pytest.mark.filterwarnings("ignore:A column-vector y was passed"),
]

MAX_LENGTH = {"tagger": 16, "queries": 16, "questions": 56, "texts": 24, "pairs": 24}


def make(case, model):
    """Return an estimator with its rows."""
    return conftest.make(case, model, lr=1e-2, max_length=MAX_LENGTH[case])


@pytest.fixture(scope="module")
def fitted(tiny_models):
    """Return an estimator on a model of a family, fitted once."""

    @cache
    def get(case, family="bert"):
        estimator, *rows = make(case, tiny_models(family))
        return estimator.fit(*rows)

    return get


def check_entities(found, rows, *, nested=False):
    for entities, row in zip(found, rows, strict=True):
        assert list(entities) == sorted(entities)
        for start, end, label, score in entities:
            assert 0 <= start < end <= len(row)
            assert label in ("PER", "LOC")
            assert 0 < score <= 1
        assert nested or all(before.end <= after.start for before, after in pairwise(entities))


def check_probabilities(estimator, p, n_rows):
    assert p.shape == (n_rows, len(estimator.classes_))
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-6)


# What each estimator predicts from any rows.


def check_tags(tagger, X, tags):
    predicted = tagger.predict(X)
    assert predicted.shape == (len(X),)
    assert all(type(row) is list for row in predicted)
    assert [len(row) for row in predicted] == [len(row) for row in X]
    assert all(tag in tags for row in predicted for tag in row)


def check_tagger(tagger, X):
    check_tags(tagger, X, set(tagger.classes_.tolist()))
    for p, row in zip(tagger.predict_proba(X), X, strict=True):
        check_probabilities(tagger, p, len(row))
    check_entities(tagger.predict_spans(X), X)


def check_query_tagger(tagger, X):
    tagger.threshold_ = 0.25  # So that it finds many entities.
    tagger.set_params(decode="nested")
    check_entities(tagger.predict_spans(X), X, nested=True)
    tagger.set_params(decode="flat")
    check_entities(tagger.predict_spans(X), X)
    check_tags(tagger, X, {"O", "B-PER", "I-PER", "B-LOC", "I-LOC"})


def check_answers(extractor, X):
    predicted = extractor.predict(X)
    assert predicted.shape == (len(X),)
    found = extractor.predict_spans(X)
    for best, answers, (_, context) in zip(predicted, found, X, strict=True):
        assert type(best) is str
        assert best in context
        assert best == best.strip()
        scores = [answer.score for answer in answers]
        assert scores == sorted(scores, reverse=True)
        assert sum(scores) <= 1 + 1e-9
        assert len({(answer.start, answer.end) for answer in answers}) == len(answers) <= 20
        for answer, start, end, score in answers:
            assert 0 <= start < end <= len(context)
            assert context[start:end] == answer
            assert 0 <= score <= 1


def check_labels(classifier, X):
    predicted = classifier.predict(X)
    assert predicted.shape == (len(X),)
    p = classifier.predict_proba(X)
    check_probabilities(classifier, p, len(X))
    np.testing.assert_array_equal(predicted, classifier.classes_[p.argmax(1)])


def is_filled(text):
    return bool(text.strip())


# Questions and contexts without a character are refused, as any question longer than a window is.
contexts = texts.filter(is_filled)
# Eight characters are 32 bytes, and those 33 pieces at most.
questions = text(8).filter(is_filled) | st.sampled_from(["city ?", "[SEP]", "\x00", "\ud800"])
pairs = st.tuples(texts, texts)
CLASSIFIERS = [("texts", texts), ("pairs", pairs)]
PREDICTIONS = [
    ("tagger", sentences, check_tagger),
    ("queries", sentences, check_query_tagger),
    ("questions", st.lists(st.tuples(questions, contexts), max_size=4), check_answers),
    *((classifier, st.lists(row, max_size=5), check_labels) for classifier, row in CLASSIFIERS),
]


@pytest.mark.parametrize("family", ["bert", "roberta"])  # WordPiece, byte-level BPE
@pytest.mark.parametrize("estimator, rows, check", PREDICTIONS)
@cases(0.3)
@given(data=st.data())
def test_predictions(fitted, estimator, rows, check, family, data):
    check(fitted(estimator, family), data.draw(rows))


@pytest.mark.parametrize("estimator", ["tagger", "queries"])
@cases(0.05)
@given(texts=st.lists(text(80), max_size=4), splitter=st.sampled_from(sorted(SPLITTERS)))
def test_entities_of_raw_text(fitted, estimator, texts, splitter):
    check_entities(fitted(estimator).predict_entities(texts, splitter), texts)


def test_there_are_entities_to_check(fitted):
    tagger, X = fitted("queries"), easy_corpus(16)[0]
    tagger.threshold_ = 0.25
    nested, flat = (
        sum(map(len, tagger.set_params(decode=decode).predict_spans(X)))
        for decode in ("nested", "flat")
    )
    assert nested > flat > 0


@pytest.mark.parametrize("n_words", [0, 1, 13, 14, 15, 1000, 100_000])
def test_sentences_of_any_length(fitted, n_words):
    long = (["john", "went", "to", "oslo"] * (n_words // 4 + 1))[:n_words]
    predicted = fitted("tagger").set_params(batch_size=512).predict([long])
    assert [len(row) for row in predicted] == [n_words]


@pytest.mark.parametrize("truncation", ["second", "error"])
@cases(0.05)
@given(X=st.lists(pairs, max_size=5))
def test_pairs_that_are_too_long(fitted, truncation, X):
    classifier = fitted("pairs")
    classifier.set_params(truncation=truncation)
    labels = attempt(lambda: classifier.predict(X))
    classifier.set_params(truncation="longest_first")
    if isinstance(labels, ValueError):
        assert "pieces, and" in str(labels)
    else:
        assert len(labels) == len(X)


# -- fits ------------------------------------------------------------------------------------------


@cases(0.1)
@given(data=st.data(), X=sentences)
def test_fit_on_tags(tiny_bert, data, X):
    tags = st.one_of(st.sampled_from(["O", "B-PER", "I-PER", "B-LOC"]), words)
    y = [data.draw(st.lists(tags, min_size=len(row), max_size=len(row))) for row in X]
    classes = {tag for row in y for tag in row}
    tagger = make("tagger", tiny_bert)[0]
    if len(classes) < 2:
        reason = "to train on" if not classes else "at least two different tags"
        with pytest.raises(ValueError, match=reason):
            tagger.fit(X, y)
        return
    predicted = tagger.fit(X, y).predict(X)
    assert tagger.classes_.tolist() == sorted(classes)
    assert [len(row) for row in predicted] == [len(row) for row in X]
    assert {tag for row in predicted for tag in row} <= classes


@st.composite
def sentences_with_spans(draw):
    """Draw sentences with entities, flat or not, in some of them."""
    X = draw(st.lists(st.lists(words, max_size=12), min_size=1, max_size=4))
    y = []
    for row in X:
        places = st.tuples(st.integers(0, len(row)), st.integers(0, len(row))).map(sorted)
        labels = st.sampled_from(["A", "B"]) | text(6)
        drawn = draw(st.lists(st.tuples(places, labels), max_size=3))
        y.append([(start, end, label) for (start, end), label in drawn if start < end and label])
    return X, y


@cases(0.1)
@given(rows=sentences_with_spans(), decode=st.sampled_from(["flat", "nested"]))
def test_fit_on_spans(tiny_bert, rows, decode):
    X, y = rows
    tagger = DiceQueryTagger(tiny_bert, **ONE_EPOCH, max_length=32, decode=decode)
    error = attempt(lambda: tagger.fit(X, y))
    if not any(y):
        assert "needs an entity" in str(error)
    elif decode == "flat" and any(
        after[0] < before[1] for row in y for before, after in pairwise(sorted(set(row)))
    ):
        assert "overlapping entities" in str(error)
    else:
        assert error is tagger
        assert set(tagger.labels_) == {label for row in y for _, _, label in row}
        assert [len(row) for row in tagger.predict(X)] == [len(row) for row in X]


@st.composite
def questions_with_answers(draw):
    """Draw questions of which some have answers, the places of some answers wrong."""
    X = draw(st.lists(st.tuples(questions, contexts), min_size=1, max_size=4))
    y = []
    for _, context in X:
        start = draw(st.integers(0, len(context) - 1))
        answer = context[start : start + draw(st.integers(0, 9))]
        shift = draw(st.sampled_from([0, 0, 0, 1, -3, 10**9]))
        squad = {"text": [answer], "answer_start": [start + shift]} if answer else {"text": []}
        y.append(draw(st.sampled_from([answer, [answer], squad])))
    return X, y


@pytest.mark.filterwarnings("ignore:.*answer_start")
@pytest.mark.filterwarnings("ignore:.*lie in no window as a whole")
@cases(0.1)
@given(rows=questions_with_answers())
def test_fit_on_answers(tiny_bert, rows):
    X, y = rows
    extractor = make("questions", tiny_bert)[0]
    result = attempt(lambda: extractor.fit(X, y))
    if result is extractor:
        predicted = extractor.predict(X)
        assert all(answer in context for answer, (_, context) in zip(predicted, X, strict=True))
    else:
        assert "nothing that the tokenizer keeps" in str(result)
        answers = ["".join(row["text"] if isinstance(row, dict) else row) for row in y]
        assert not all(map(has_letter, filter(None, answers)))


def has_letter(text):
    return any(char.isascii() and char.isalnum() for char in text)


@pytest.mark.parametrize("classifier, row", CLASSIFIERS)
@cases(0.1)
@given(data=st.data())
def test_fit_on_labels(tiny_bert, classifier, row, data):
    X = data.draw(st.lists(row, max_size=5))
    labels, y = data.draw(labels_for(len(X)))
    estimator = make(classifier, tiny_bert)[0]
    if len(set(labels)) < 2:
        with pytest.raises(ValueError, match="two classes" if labels else "to train on"):
            estimator.fit(X, y)
        return
    predicted = estimator.fit(X, y).predict(X)
    assert estimator.classes_.tolist() == sorted(set(labels))
    kind = "O" if isinstance(labels[0], str) else np.array(labels).dtype.kind
    assert estimator.classes_.dtype.kind == kind
    assert predicted.shape == (len(X),)
    assert predicted.dtype == estimator.classes_.dtype
    assert set(predicted.tolist()) <= set(labels)
    assert 0 <= estimator.score(X, y) <= 1


@cases(0.05)
@given(data=st.data(), X=st.lists(texts, min_size=1, max_size=5), n_labels=st.integers(2, 4))
def test_fit_on_several_labels(tiny_bert, data, X, n_labels):
    row = st.lists(st.integers(0, 1), min_size=n_labels, max_size=n_labels)
    rows = data.draw(st.lists(row, min_size=len(X), max_size=len(X)))
    y = data.draw(st.sampled_from([list, np.array, pd.DataFrame, sparse.csr_matrix]))(rows)
    classifier = make("texts", tiny_bert)[0]
    if not np.any(rows):
        with pytest.raises(ValueError, match="needs a row with a label"):
            classifier.fit(X, y)
        return
    predicted, p = classifier.fit(X, y).predict(X), classifier.predict_proba(X)
    assert predicted.shape == p.shape == (len(X), n_labels)
    assert ((p >= 0) & (p <= 1)).all()
    np.testing.assert_array_equal(predicted, p > 0.5)
    assert 0 <= classifier.score(X, y) <= 1
