"""The estimators, one a file."""

from ._tagger import DiceTokenTagger

__all__ = ["DiceTokenTagger"]
