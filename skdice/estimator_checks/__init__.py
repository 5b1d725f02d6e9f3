"""The contract of the text estimators, as checks that anyone can run on an estimator."""

from ._checks import check_text_estimator, text_estimator_checks

__all__ = ["check_text_estimator", "text_estimator_checks"]
