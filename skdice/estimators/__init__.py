"""The estimators, one a file."""

from ._checks import check_text_estimator, text_estimator_checks
from ._tagger import DiceTokenTagger

__all__ = ["DiceTokenTagger", "check_text_estimator", "text_estimator_checks"]
