"""joblib's worker processes: in one file, for they take seconds to start, and tests share them.

Fits come first, for joblib replaces workers that grow later on; what kills them comes last.
"""

import os

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from skdice import DicePairClassifier
from skdice.model_selection import compare_losses

from .corpora import easy_pairs
from .model_selection.searched import X, Y, make_search, trials_of

pytestmark = pytest.mark.slow
FAST = {"max_epochs": 1, "lr": 2e-3, "batch_size": 8, "random_state": 0, "verbose": 0}
FAST |= {"precision": "fp32"}  # As the tests have it in this process.


def test_cross_validation(tiny_bert):
    X, y = easy_pairs(24)
    estimator = DicePairClassifier(tiny_bert, **FAST)
    one = cross_val_score(estimator, X, y, cv=2)
    np.testing.assert_array_equal(cross_val_score(estimator, X, y, cv=2, n_jobs=2), one)


@pytest.mark.parametrize("storage", ["{}/study.journal", "sqlite:///{}/study.db"])
def test_search(storage, tmp_path):
    X, y = make_classification(60, random_state=0)
    space = lambda trial: {"C": trial.suggest_float("C", 0.01, 10, log=True)}  # noqa: E731
    how = {"estimator": LogisticRegression(), "space": space, "n_jobs": 2, "n_trials": 8}
    search = make_search(storage.format(tmp_path), **how).fit(X, y)
    assert len(search.cv_results_["params"]) == len(set(search.cv_results_["param_C"])) in (8, 9)
    workers = {trial.user_attrs["worker"]["pid"] for trial in search.study_.trials}
    assert os.getpid() not in workers
    assert search.best_score_ == search.study_.best_value
    assert search.best_params_ == {"C": search.best_estimator_.C}


def test_compare_losses(tiny_bert, tmp_path):
    classifier = DicePairClassifier(tiny_bert, **FAST)
    rows = *easy_pairs(24), *easy_pairs(20, seed=1)
    options = {"losses": ("ce", "dice"), "seeds": (0, 1), "verbose": 0}
    one = compare_losses(classifier, *rows, **options)
    two = compare_losses(classifier, *rows, **options, n_jobs=2, cache_dir=tmp_path)
    columns = ["loss", "seed", "precision", "recall", "f1"]
    pd.testing.assert_frame_equal(one.frame[columns], two.frame[columns])
    pd.testing.assert_frame_equal(one.table(), two.table())
    assert len(list(tmp_path.rglob("output.pkl"))) == 4
    # Fails in fit, in another process; every loss before it is fine.
    losses = {"ce": "ce", "bad": {"loss": "ce", "class_weight": {7: 1.0}}}
    with pytest.raises(ValueError, match="class_weight has no label of y: it has 7") as caught:
        compare_losses(classifier, *rows, losses=losses, seeds=(0,), n_jobs=2, verbose=0)
    assert "This happened with loss 'bad' and seed 0." in caught.value.__notes__


def test_an_interrupt_in_a_search(tmp_path):
    # Made here, so that it is pickled by value.
    class Interrupted(ClassifierMixin, BaseEstimator):
        def __init__(self, x=0.0):
            self.x = x

        def fit(self, X, y):
            raise KeyboardInterrupt("enough")

        def score(self, X, y):
            return 0.0

    storage = tmp_path / "study.journal"
    search = make_search(storage, estimator=Interrupted(), n_jobs=2, error_score=np.nan)
    with pytest.raises(KeyboardInterrupt, match="enough"):
        search.fit(X, Y)
    trials = trials_of(storage)
    # joblib kills the other worker, perhaps in mid-trial.
    assert "FAIL" in {trial.state.name for trial in trials} <= {"FAIL", "RUNNING"}
    assert not any("error" in trial.user_attrs for trial in trials), "they do not count"
