"""scikit-learn estimators for imbalanced text: transformers trained with F1-oriented losses."""

from .estimators import (
    DicePairClassifier,
    DiceQueryTagger,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
)
from .inspection import imbalance_report

__all__ = [
    "DicePairClassifier",
    "DiceQueryTagger",
    "DiceSpanExtractor",
    "DiceTextClassifier",
    "DiceTokenTagger",
    "imbalance_report",
]
__version__ = "0.1.0.dev0"
