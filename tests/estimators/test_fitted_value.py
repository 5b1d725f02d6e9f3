"""What a fit has learned is one value; attributes that end in _ are parts of it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ..io.conftest import CASES, fit_once
from ..spies import internals

SET = [
    ("tagger", "threshold_", 0.25),
    ("tagger", "background_bias_", -1.5),
    ("queries", "threshold_", 0.25),
    ("questions", "null_threshold_", 1.5),
    ("texts", "threshold_", [0.2, 0.3, 0.5]),
    ("pairs", "threshold_", 0.25),
]


@pytest.fixture(scope="module")
def fitted(tiny_models):
    fit = fit_once(tiny_models)
    return lambda case: fit(case)[0]


@pytest.mark.parametrize("case, name, value", SET)
def test_a_decision_that_is_set_is_the_decision(fitted, case, name, value):
    estimator = fitted(case)
    before = getattr(estimator, name)
    for bad in (float("nan"), "high", None):
        with pytest.raises(ValueError, match=name):
            setattr(estimator, name, bad)
        np.testing.assert_array_equal(getattr(estimator, name), before)
    setattr(estimator, name, value)
    np.testing.assert_allclose(getattr(estimator, name), value)
    for task in (internals(estimator).task, internals(estimator).fitted.task):
        np.testing.assert_allclose(task.decision[name], value)
    setattr(estimator, name, before)


@pytest.mark.parametrize("case", CASES)
def test_what_was_learned_cannot_be_set(fitted, case):
    estimator = fitted(case)
    for name in ("net_", "history_", "loss_", "interrupted_"):
        with pytest.raises(AttributeError, match=name):
            setattr(estimator, name, None)
        assert not hasattr(clone(estimator), name)
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(clone(estimator), name)
    # Device and precision are chosen with a reason.
    choices = estimator.choices_.set_index("parameter").loc[["device", "precision"]]
    assert choices["value"].tolist() == ["cpu", "fp32"]
    assert choices["why"].str.endswith(".").all()
