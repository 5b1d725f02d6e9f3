"""Tables and pictures about imbalanced data, losses and predictions."""

from ._attributions import word_attributions
from ._entity_displays import EntityConfusionDisplay, EntityPrecisionRecallDisplay
from ._imbalance import imbalance_report
from ._loss_displays import LossComparisonDisplay, LossDerivativeDisplay
from ._tagging_errors import TaggingErrors

__all__ = [
    "EntityConfusionDisplay",
    "EntityPrecisionRecallDisplay",
    "LossComparisonDisplay",
    "LossDerivativeDisplay",
    "TaggingErrors",
    "imbalance_report",
    "word_attributions",
]
