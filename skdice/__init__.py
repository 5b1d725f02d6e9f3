"""scikit-learn estimators for imbalanced text: transformers trained with F1-oriented losses."""

from ._version import __version__
from .estimators import (
    DicePairClassifier,
    DiceQueryTagger,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
)
from .inspection import imbalance_report
from .model_selection import DiceSearchCV, compare_losses, suggest_loss

__all__ = [
    "DicePairClassifier",
    "DiceQueryTagger",
    "DiceSearchCV",
    "DiceSpanExtractor",
    "DiceTextClassifier",
    "DiceTokenTagger",
    "__version__",
    "compare_losses",
    "imbalance_report",
    "suggest_loss",
]
