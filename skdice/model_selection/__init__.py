"""Tuning and comparing of estimators."""

from ._decision import tune_decision

__all__ = ["tune_decision"]
