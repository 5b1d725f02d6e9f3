"""Tables and pictures about imbalanced data, losses and training."""

from ._error_view import TaggingErrors
from ._imbalance import imbalance_report
from ._loss_comparison import LossComparisonDisplay
from ._loss_derivative import LossDerivativeDisplay
from ._training_curve import TrainingCurveDisplay

__all__ = [
    "LossComparisonDisplay",
    "LossDerivativeDisplay",
    "TaggingErrors",
    "TrainingCurveDisplay",
    "imbalance_report",
]
