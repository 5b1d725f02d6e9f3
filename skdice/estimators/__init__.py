"""The estimators, one a file."""

from ._base import Internals, TextEstimator
from ._pair import DicePairClassifier
from ._query import DiceQueryTagger
from ._saving import load_pretrained
from ._span import DiceSpanExtractor
from ._tagger import DiceTokenTagger
from ._text import DiceTextClassifier

__all__ = [
    "DicePairClassifier",
    "DiceQueryTagger",
    "DiceSpanExtractor",
    "DiceTextClassifier",
    "DiceTokenTagger",
    "load_pretrained",
]
