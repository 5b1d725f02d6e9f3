"""What a fit has learned is one value; attributes that end in _ are parts of it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ..io.conftest import CASES, make
from ..spies import internals

SET = [
    ("tagger", "threshold_", 0.25),
    ("tagger", "background_bias_", -1.5),
    ("queries", "threshold_", 0.25),
    ("questions", "null_threshold_", 1.5),
    ("texts", "threshold_", [0.2, 0.3, 0.5]),
    ("pairs", "threshold_", 0.25),
]
NAN = float("nan")


@pytest.fixture(scope="module")
def fitted(tiny_bert):
    """Return an estimator by its case, fitted once."""
    estimators = {}

    def get(case):
        if case not in estimators:
            estimator, X, y = make(case, tiny_bert)
            estimators[case] = estimator.fit(X, y)
        return estimators[case]

    return get


@pytest.mark.parametrize("case, name, value", SET)
def test_a_decision_that_is_set_is_the_decision(fitted, case, name, value):
    estimator = fitted(case)
    before = getattr(estimator, name)
    setattr(estimator, name, value)
    np.testing.assert_allclose(getattr(estimator, name), value)
    np.testing.assert_allclose(internals(estimator).task.decision[name], value)
    np.testing.assert_allclose(internals(estimator).fitted.task.decision[name], value)
    setattr(estimator, name, before)


@pytest.mark.parametrize("case, name", [row[:2] for row in SET])
@pytest.mark.parametrize("bad", [NAN, "high", None])
def test_what_is_no_decision_is_refused(fitted, case, name, bad):
    estimator = fitted(case)
    before = getattr(estimator, name)
    with pytest.raises(ValueError, match=name):
        setattr(estimator, name, bad)
    np.testing.assert_array_equal(getattr(estimator, name), before)


@pytest.mark.parametrize("case", CASES)
def test_what_was_learned_cannot_be_set(fitted, case):
    estimator = fitted(case)
    for name in ("net_", "history_", "loss_", "interrupted_"):
        with pytest.raises(AttributeError, match=name):
            setattr(estimator, name, None)
        assert not hasattr(clone(estimator), name)
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(clone(estimator), name)


@pytest.mark.parametrize("case", CASES)
def test_device_and_precision_are_chosen_with_a_reason(fitted, case):
    choices = fitted(case).choices_.set_index("parameter")
    assert choices.loc["device", "value"] == "cpu"
    assert choices.loc["precision", "value"] == "fp32"
    assert choices.loc[["device", "precision"], "why"].str.endswith(".").all()
