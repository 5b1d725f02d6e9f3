"""Tuning and comparing of estimators."""

from ._compare import compare_losses
from ._cross_val import cross_val_predict_proba
from ._decision import tune_decision
from ._loss_comparison import LossComparison
from ._search import DiceSearchCV
from ._space import suggest_loss
from ._split import StratifiedTagKFold

__all__ = [
    "DiceSearchCV",
    "LossComparison",
    "StratifiedTagKFold",
    "compare_losses",
    "cross_val_predict_proba",
    "suggest_loss",
    "tune_decision",
]
