"""Tables and pictures about imbalanced data, losses and training."""

from ._entity_confusion import EntityConfusionDisplay
from ._entity_curve import EntityPrecisionRecallDisplay
from ._error_view import TaggingErrors
from ._imbalance import imbalance_report
from ._loss_comparison import LossComparisonDisplay
from ._loss_derivative import LossDerivativeDisplay
from ._partial_matches import partial_match_report
from ._runtimes import compare_runtimes
from ._training_curve import TrainingCurveDisplay

__all__ = [
    "EntityConfusionDisplay",
    "EntityPrecisionRecallDisplay",
    "LossComparisonDisplay",
    "LossDerivativeDisplay",
    "TaggingErrors",
    "TrainingCurveDisplay",
    "compare_runtimes",
    "imbalance_report",
    "partial_match_report",
]
