"""What a fit has learned is one value; attributes that end in _ are parts of it."""

import copy
import html
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skdice import DiceTextClassifier, DiceTokenTagger
from skdice.estimators import load_pretrained

from ..io.conftest import CASES, fit_once, make
from ..spies import internals

SET = [
    ("tagger", "threshold_", 0.25), ("tagger", "background_bias_", -1.5),
    ("queries", "threshold_", 0.25), ("questions", "null_threshold_", 1.5),
    ("texts", "threshold_", [0.2, 0.3, 0.5]), ("pairs", "threshold_", 0.25),
]  # fmt: skip


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
        np.testing.assert_allclose(task.decision_attributes[name], value)
    setattr(estimator, name, before)


@pytest.mark.parametrize("case, bad, message", [
    ("texts", 0, r"\(0, 1\]. Got 0 instead"),
    ("texts", [0, 0, 0.9], r"\(0, 1\]. Got 0 instead"),
    ("texts", np.array([0.5, 0.5, 0.0]), r"\(0, 1\]. Got 0.0 instead"),
    ("tagger", {"XYZ": 0.5}, "may have the labels 'LOC', 'PER'. Got 'XYZ' instead"),
    ("queries", {"XYZ": 0.5}, "may have the labels 'LOC', 'PER'. Got 'XYZ' instead"),
    ("tagger", {"PER": 2}, "threshold_ of PER"), ("queries", {"PER": None}, "threshold_ of PER"),
    ("pairs", [0.5, 0.5], r"one float in the range \[0, 1\]. Got 2 of them"),
    ("pairs", [0.5], "Got 1 of them"), ("pairs", 1.5, "Got 1.5"),
    ("labels", [0.5] * 3, "an array of 2, one for each of the labels. Got 3 of them"),
    ("labels", [[0.5, 0.5]], r"shape \(1, 2\)"), ("labels", [0.5, np.nan], "Got nan"),
    ("texts", [0.5, 0.5], "an array of 3, one for each of the classes. Got 2 of them"),
    ("texts", [0.5, [0.1], 0.2], r"Got \[0.1\]"),
])  # fmt: skip
def test_what_cannot_decide_is_refused(fitted, case, bad, message):
    estimator = fitted(case)
    before = estimator.threshold_
    with pytest.raises(ValueError, match=message):
        estimator.threshold_ = bad
    np.testing.assert_array_equal(estimator.threshold_, before)


def test_a_bias_and_a_threshold_that_cannot_decide_are_refused(fitted, tiny_bert):
    for bad in ({"XYZ": 0.5}, 1e308, {"PER": -1e308}):
        with pytest.raises(ValueError, match="background_bias_"):
            fitted("tagger").background_bias_ = bad
    with pytest.raises(ValueError, match="background_bias"):
        clone(fitted("tagger")).set_params(background_bias=1e308).check_parameters()
    X, y = [["a", "b"], ["c"]], [["VERB", "NOUN"], ["NOUN"]]  # No entities.
    tagger = DiceTokenTagger(tiny_bert, max_epochs=1, verbose=0).fit(X, y)
    for bad in (0.5, {"VERB": 0.5}):
        with pytest.raises(ValueError, match="Entities need chunk tags"):
            tagger.threshold_ = bad
    tagger.threshold_ = 0


@pytest.mark.parametrize("case", ["pairs", "labels"])
def test_always_and_never(fitted, case):
    """Of two classes, and of a label that is given or not, 0 and 1 are decisions."""
    estimator, X = copy.copy(fitted(case)), make(case, "")[1]
    for threshold in (0, 1):
        estimator.threshold_ = threshold
        assert (estimator.predict(X) == 1 - threshold).all()
        assert np.all(estimator.threshold_ == threshold)


@pytest.mark.parametrize("case, name, default", [
    ("tagger", "threshold_", 0), ("tagger", "background_bias_", 0), ("queries", "threshold_", 0.5),
])  # fmt: skip
def test_a_dict_is_completed_and_copied(fitted, case, name, default, tmp_path):
    estimator, X = copy.copy(fitted(case)), make(case, "")[1]
    given = {"PER": 0.9}
    setattr(estimator, name, given)
    given["LOC"] = given["XYZ"] = 7
    decision = getattr(estimator, name)
    assert dict(decision) == pytest.approx({"LOC": default, "PER": 0.9})
    with pytest.raises(TypeError, match="does not support item assignment"):
        decision["LOC"] = 0.3
    before = estimator.predict(X).tolist()
    setattr(estimator, name, decision)
    assert getattr(estimator, name) == pytest.approx(dict(decision))
    estimator.save_pretrained(tmp_path)
    assert load_pretrained(tmp_path).predict(X).tolist() == before
    setattr(estimator, name, {})
    assert set(getattr(estimator, name).values()) == {default}


def test_an_array_is_read_only(fitted):
    for case in ("texts", "labels"):
        with pytest.raises(ValueError, match="read-only"):
            fitted(case).threshold_[0] = 0.99


@pytest.mark.parametrize("case, method, name, value", [
    ("tagger", "predict", "decode", "fla"), ("queries", "predict_spans", "decode", "fla"),
    ("questions", "predict_spans", "n_best", 0),
    *((case, "predict", "batch_size", 0) for case in CASES),
    ("pairs", "predict_proba", "batch_size", 2.5), ("texts", "predict", "verbose", "no"),
    ("labels", "predict", "runtime", "tpu"),
])  # fmt: skip
def test_what_is_read_after_the_fit_is_checked(fitted, case, method, name, value):
    estimator, X = copy.copy(fitted(case)).set_params(**{name: value}), make(case, "")[1]
    with pytest.raises(ValueError, match=f"'{name}' parameter .* Got {value!r} instead"):
        getattr(estimator, method)(X)


def test_truncation_changes_the_next_fit(fitted):
    classifier = copy.copy(fitted("texts"))
    expected = classifier.predict_proba(["john " * 80])
    classifier.set_params(truncation="error")
    np.testing.assert_array_equal(classifier.predict_proba(["john " * 80]), expected)
    assert "A fitted classifier keeps" in " ".join(DiceTextClassifier.__doc__.split())


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


def test_choices_are_printed_with_whole_reasons(fitted, tmp_path):
    tagger = fitted("tagger")
    shown, reasons = str(tagger.choices_), tagger.choices_["why"]
    assert reasons.str.len().max() > 50, "pandas prints 50 characters"
    assert max(map(len, shown.splitlines())) <= 100
    assert [why for why in reasons if why not in " ".join(shown.split())] == []
    assert [why for why in reasons if html.escape(why) not in tagger.choices_._repr_html_()] == []
    tagger.save_pretrained(tmp_path / "saved")
    for copied in (pickle.loads(pickle.dumps(tagger)), load_pretrained(tmp_path / "saved")):
        assert str(copied.choices_) == shown
    assert type(tagger.choices_.copy()) is pd.DataFrame
    assert str(pickle.loads(pickle.dumps(tagger.choices_))) == shown
