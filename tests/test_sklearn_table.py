"""The table of scikit-learn's tools in the guide: every row of it is tried."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from imblearn.pipeline import make_pipeline as make_sampling_pipeline
from imblearn.under_sampling import RandomUnderSampler
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import SelfTrainingClassifier

from skdice import DiceSpanExtractor, DiceTextClassifier, DiceTokenTagger
from skdice.datasets import make_questions

from .corpora import easy_corpus, easy_texts
from .io.conftest import make, scores

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "sklearn_tools.md"
FAST = {"loss": "dsc", "max_epochs": 1, "lr": 1e-3, "random_state": 0, "verbose": 0}
GRID = {"gamma": [0.5, 1.0]}
TEXTS, LABELS = easy_texts(16)
COLUMN = "classifiers, as a column"
ROWS = {
    "classifiers": (DiceTextClassifier, TEXTS, LABELS),
    COLUMN: (DiceTextClassifier, pd.DataFrame({"text": TEXTS}), LABELS),
    "taggers": (DiceTokenTagger, *easy_corpus(16)),
    "extractor": (DiceSpanExtractor, *make_questions(16, ratio=10, random_state=0)),
}


def fitted(make):
    def use(estimator, X, y):
        predicted = make(estimator).fit(X, y).predict(X)
        assert len(predicted) == len(y)
        return 0.0

    return use


TOOLS = {
    "cross_val_score": lambda e, X, y: cross_val_score(e, X, y, cv=2, error_score="raise"),
    "cross_val_predict": lambda e, X, y: len(cross_val_predict(e, X, y, cv=2)),
    'cross_val_predict(method="predict_proba")':
        lambda e, X, y: cross_val_predict(e, X, y, cv=2, method="predict_proba"),
    "GridSearchCV": fitted(lambda e: GridSearchCV(e, GRID, cv=2, error_score="raise")),
    "RandomizedSearchCV":
        fitted(lambda e: RandomizedSearchCV(e, GRID, n_iter=1, cv=2, error_score="raise")),
    "learning_curve":
        lambda *args: learning_curve(*args, cv=2, train_sizes=[1.0], error_score="raise")[2],
    "validation_curve":
        lambda *args: validation_curve(
            *args, cv=2, param_name="gamma", param_range=[0.5], error_score="raise")[1],
    "permutation_test_score":
        lambda *args: permutation_test_score(*args, cv=2, n_permutations=1)[0],
    "permutation_importance":
        lambda e, X, y: permutation_importance(clone(e).fit(X, y), X, y, n_repeats=1).importances,
    "Pipeline": fitted(lambda e: make_pipeline("passthrough", e)),
    "FrozenEstimator": lambda e, X, y: len(FrozenEstimator(clone(e).fit(X, y)).predict(X)),
    "TunedThresholdClassifierCV": fitted(lambda e: TunedThresholdClassifierCV(e, cv=2)),
    "FixedThresholdClassifier": fitted(FixedThresholdClassifier),
    "CalibratedClassifierCV": fitted(lambda e: CalibratedClassifierCV(e, cv=2)),
    "VotingClassifier": fitted(lambda e: VotingClassifier([("a", e)], voting="soft")),
    "StackingClassifier": fitted(lambda e: StackingClassifier([("a", e)], cv=2)),
    "BaggingClassifier": fitted(lambda e: BaggingClassifier(e, n_estimators=1, random_state=0)),
    "OneVsRestClassifier": fitted(OneVsRestClassifier),
    "OneVsOneClassifier": fitted(OneVsOneClassifier),
    "OutputCodeClassifier": fitted(lambda e: OutputCodeClassifier(e, random_state=0)),
    "SelfTrainingClassifier": fitted(SelfTrainingClassifier),
    "RandomUnderSampler":
        fitted(lambda e: make_sampling_pipeline(RandomUnderSampler(random_state=0), e)),
}  # fmt: skip


def read_table():
    """Return what the page says of each tool: "yes", "as a column" or "no" by kind of estimator."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    cells = [[cell.strip(" `") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    kinds = cells[0][1:4]
    return {row[0]: dict(zip(kinds, row[1:4], strict=True)) for row in cells[2:]}


def works(tool, kind, model):
    cls, X, y = ROWS[kind]
    try:
        values = TOOLS[tool](cls(model, **FAST), X, y)
    except (TypeError, ValueError):
        return False
    return bool(np.isfinite(np.asarray(values, dtype=float)).all())


def test_the_table_has_all_tools():
    assert list(read_table()) == list(TOOLS)


QUICK = ("cross_val_score", "GridSearchCV", "Pipeline")
CELLS = [
    pytest.param(tool, kind, said, marks=[pytest.mark.slow] * (tool not in QUICK))
    for tool, row in read_table().items()
    for kind, said in row.items()
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("tool, kind, said", CELLS)
def test_a_cell_of_the_table(tool, kind, said, tiny_bert):
    assert works(tool, kind, tiny_bert) == (said == "yes")
    if kind == "classifiers" and said != "yes":
        assert works(tool, COLUMN, tiny_bert) == (said == "as a column")


@pytest.mark.parametrize("tool", QUICK)
@pytest.mark.parametrize("case", ["pairs", "queries"])
def test_the_other_two_estimators(tool, case, tiny_bert):
    estimator, X, y = make(case, tiny_bert, loss="dsc")
    assert np.isfinite(np.asarray(TOOLS[tool](estimator, X, y), dtype=float)).all()


@pytest.mark.parametrize("case", ["pairs", "two texts", "questions"])
def test_weights_are_routed(tiny_bert, case):
    """Also to fits that begin with a regression, as the first two."""
    estimator, X, y = make(case, tiny_bert)
    weight = np.arange(len(y)) % 3 + 0.5
    expected = scores(clone(estimator).fit(X, y, weight), X)
    with sklearn.config_context(enable_metadata_routing=True):
        estimator.set_fit_request(sample_weight=True)
        pipeline = make_pipeline("passthrough", estimator).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(scores(pipeline[-1], X), expected)
