"""Any words, texts, questions and labels: predictions and fits that are what they promise to be."""

from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from ..corpora import easy_corpus
from ..io import conftest
from ..quick import quick

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*are longer than max_length"),
    pytest.mark.filterwarnings("ignore:.*are longer than what"),
    pytest.mark.filterwarnings("ignore:A column-vector y was passed"),
]
MAX_LENGTH = {"tagger": 16, "queries": 16, "questions": 56, "texts": 24, "labels": 24, "pairs": 24}
ODD_WORDS = ["", " ", "\u200b", "\x00", "\ufeff", "[CLS]", "[SEP]", "<s>", "\ud800", "a" * 200]


def text(max_size):
    """Return a strategy of texts over all of Unicode, lone surrogates included."""
    return st.text(st.characters(exclude_categories=()), max_size=max_size)


def examples(n):
    return settings(
        max_examples=n, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


words = text(12) | st.sampled_from([*ODD_WORDS, "john", "oslo"])
sentences = st.lists(st.lists(words, max_size=40), max_size=5)
# Short ones, and some that are longer than the models can read.
texts = (
    text(80)
    | st.lists(words, max_size=60).map(" ".join)
    | st.sampled_from([*ODD_WORDS, "the [SEP] in oslo [PAD]", "oslo " * 300, "\u0301" * 50])
)
# Questions and contexts without a character are refused, as any question longer than a window is.
contexts = texts.filter(str.strip)
# Eight characters are 32 bytes, and those 33 pieces at most.
questions = text(8).filter(str.strip) | st.sampled_from(["city ?", "[SEP]", "\x00", "\ud800"])


def make(case, model, **params):
    return conftest.make(case, model, lr=1e-2, max_length=MAX_LENGTH[case], **params)


@pytest.fixture(scope="module")
def fitted(tiny_models):
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
    check_entities(tagger.set_params(decode="nested").predict_spans(X), X, nested=True)
    assert any(tagger.predict_spans(easy_corpus(16)[0])), "there are entities to check"
    check_entities(tagger.set_params(decode="flat").predict_spans(X), X)
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


# The tokenizers are WordPiece and byte-level BPE.
@pytest.mark.parametrize("family", quick(["roberta"], ["bert", "roberta"]))
@pytest.mark.parametrize("case, rows, check", [
    ("tagger", sentences, check_tagger),
    ("queries", sentences, check_query_tagger),
    ("questions", st.lists(st.tuples(questions, contexts), max_size=4), check_answers),
    ("texts", st.lists(texts, max_size=5), check_labels),
    ("pairs", st.lists(st.tuples(texts, texts), max_size=5), check_labels),
])  # fmt: skip
@examples(10)
@given(data=st.data())
def test_predictions(fitted, case, rows, check, family, data):
    check(fitted(case, family), data.draw(rows))


STRANGE = ["", " ", "\u200b", "\ud800 [SEP]", "oslo " * 300, "john"]
LABELS = {
    "texts": ["spam", "", "\x00", "a\x00", "\ud800", "spam"],
    "integers": [-(2**63), 2**63 - 1, 0, 0, 1, 1],
    "large integers": [2**53, 2**53 + 1] * 3,
    "numbers": [-3.0, 0.0, 2.0, 0.0, 2.0, 2.0],
    "small integers": [np.int8(i % 2) for i in range(6)],
    "booleans": [True, False, True, True, False, True],
    "booleans of numpy": [np.bool_(i % 2) for i in range(6)],
    "a column": pd.DataFrame({"label": ["b", "a", "b", "a", "b", "a"]}, index=range(7, 13)),
    # Arrow's strings have no lone surrogates.
    "categories": pd.Categorical(pd.Series(["\ud800", "a"] * 3, dtype=object)),
}


@pytest.mark.parametrize("kind", LABELS)
def test_fit_on_labels(tiny_bert, kind):
    case = ("texts", "pairs")[list(LABELS).index(kind) % 2]
    X = list(zip(STRANGE, STRANGE[::-1])) if case == "pairs" else STRANGE
    labels = np.ravel(np.asarray(LABELS[kind], dtype=object)).tolist()
    classifier = make(case, tiny_bert)[0].fit(X, LABELS[kind])
    predicted = classifier.predict(X)
    assert classifier.classes_.tolist() == sorted(set(labels))
    dtype = object if isinstance(labels[0], str) else np.array(labels).dtype
    assert classifier.classes_.dtype.kind == np.dtype(dtype).kind
    assert predicted.shape == (len(X),)
    assert predicted.dtype == classifier.classes_.dtype
    assert set(predicted.tolist()) <= set(labels)
    assert 0 <= classifier.score(X, LABELS[kind]) <= 1


@pytest.mark.parametrize("form", [list, sparse.csr_matrix])
def test_fit_on_several_labels(tiny_bert, form):
    y = form([[0, 0, 1], [1, 0, 0], [0, 0, 0], [1, 0, 1], [0, 0, 1], [1, 0, 0]])
    classifier = make("labels", tiny_bert)[0].fit(STRANGE, y)
    predicted, p = classifier.predict(STRANGE), classifier.predict_proba(STRANGE)
    assert predicted.shape == p.shape == (6, 3)
    assert ((p >= 0) & (p <= 1)).all()
    np.testing.assert_array_equal(predicted, p > 0.5)
    assert 0 <= classifier.score(STRANGE, y) <= 1
