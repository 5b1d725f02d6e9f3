"""Scores belong to a row: batch size, order and the other rows do not touch them."""

import copy
from functools import cache

import numpy as np
import pytest

from ..io.conftest import CASES, make
from ..spies import internals

# RoBERTa has byte-level pieces, XLNet is padded on the left.
FAMILIES = ["roberta", "xlnet"]
FAST = {"loss": "dsc", "max_epochs": 2, "lr": 2e-3}
# Longer than a window of each estimator.
LONG = "the city of oslo was near rome and anna met john in paris today " * 3
STRANGE = ["", "\u200b", "😀 日本", "[SEP] <sep> </s>", "x" * 40]
WORDS = [LONG.split(), [], ["mary"], LONG.split() * 2]
MORE_ROWS = {
    "tagger": [*WORDS, STRANGE],
    "pairs": [(LONG, "oslo"), ("john", LONG), (LONG, LONG), *zip(STRANGE, STRANGE[::-1])],
    "texts": [LONG, *STRANGE],
    "labels": [LONG, *STRANGE],
    "questions": [("city ?", LONG), ("met ?", "oslo"), ("met ?", LONG * 2)],
    "queries": WORDS,
}
# Extractors and query taggers give all spans, so that ranks among them play no part.
PARAMETERS = {
    "tagger": {"stride": 4},
    "questions": {"max_length": 24, "n_best": 10**5},
    "queries": {"max_length": 24, "decode": "nested"},
}

pytestmark = pytest.mark.filterwarnings("ignore:.* were cut:UserWarning")


@pytest.fixture(scope="module", params=FAMILIES)
def fitted(request, tiny_models):
    """Return an estimator with its rows, of which some are longer than a window."""

    @cache
    def fit(case):
        parameters = {**FAST, "max_length": 16, **PARAMETERS.get(case.removeprefix("two "), {})}
        estimator, *rows = make(case, tiny_models(request.param), **parameters)
        estimator.fit(*rows)
        if case == "queries":
            estimator.threshold_ = 0.0
        return estimator, [*CASES[case][1](8, seed=1)[0], *MORE_ROWS[case.removeprefix("two ")]]

    return fit


@pytest.fixture(params=sorted(CASES.keys() - {"two texts"}))  # Its rows are equal.
def case(request, fitted):
    return fitted(request.param)


def row_scores(estimator, X, batch_size=8):
    """Return the probabilities of each row, or the score of each of its spans."""
    estimator = copy.copy(estimator).set_params(batch_size=batch_size)
    if hasattr(estimator, "predict_proba"):
        return list(estimator.predict_proba(X))
    return [{span[:-1]: span.score for span in spans} for spans in estimator.predict_spans(X)]


def values_of(row):
    return np.array(list(row.values())) if isinstance(row, dict) else row


def assert_same(got, expected):
    for one, other in zip(got, expected, strict=True):
        if isinstance(other, dict):
            assert set(one) == set(other)
            one = {span: one[span] for span in other}
        np.testing.assert_allclose(values_of(one), values_of(other), rtol=0, atol=1e-5)


@pytest.mark.parametrize("batch_size", [1, 64])
def test_order_batch_size_and_longer_rows_do_not_count(case, batch_size):
    estimator, X = case
    order = np.random.default_rng(0).permutation(len(X))
    longest = max(X, key=lambda row: len(str(row)))
    rows = [longest] * 9 + [X[i] for i in order]
    expected = row_scores(estimator, X)
    got = row_scores(estimator, rows, batch_size)
    assert_same(got[9:], [expected[i] for i in order])
    # All this would hold of a constant, too.
    values = np.concatenate([values_of(row).ravel() for row in expected])
    assert np.ptp(values) > 0.002
    assert len(np.unique(values.round(4))) > len(X)


@pytest.mark.parametrize("scale", [1, 1e9])
def test_rows_sum_to_one(case, scale):
    estimator, X = case
    module = estimator.net_.module_
    with module.register_forward_hook(lambda module, inputs, output: output * scale):
        rows = [values_of(row) for row in row_scores(estimator, X)]
    if not hasattr(estimator, "predict_proba"):
        scores = np.concatenate(rows)
        assert ((scores >= 0) & (scores <= 1)).all()
        return
    p = np.concatenate([np.atleast_2d(row) for row in rows])
    assert p.dtype == np.float64
    assert p.shape[1] == len(estimator.classes_)
    assert ((p >= 0) & (p <= 1)).all()
    if not getattr(internals(estimator).task, "is_multilabel", False):
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert (np.minimum(p, 1 - p).mean() < 0.01) == (scale > 1)
