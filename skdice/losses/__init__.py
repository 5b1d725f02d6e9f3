"""The losses of "Dice Loss for Data-imbalanced NLP Tasks" (Li et al., ACL 2020)."""

from ._base import Loss
from ._base import accumulator as accumulator
from ._combined import Candidates as Candidates
from ._combined import CombinedLoss as CombinedLoss
from ._combined import QueryLoss as QueryLoss
from ._combined import SpanLoss as SpanLoss
from ._combined import is_over_positions as is_over_positions
from ._combined import match_scores as match_scores
from ._cross_entropy import (
    CrossEntropyLoss,
    FocalLoss,
    WeightedCrossEntropyLoss,
    log_class_weight,
)
from ._dice import DiceLoss, SelfAdjustingDiceLoss, TverskyLoss
from ._named import LOSS_NAMES, loss_parameters, make_loss
from ._named import LOSS_PARAMETERS as LOSS_PARAMETERS
from ._named import LossName as LossName
from ._named import check_loss_classes as check_loss_classes
from ._named import check_named as check_named
from ._set import SetLoss, SumsMemory

__all__ = [
    "LOSS_NAMES",
    "CrossEntropyLoss",
    "DiceLoss",
    "FocalLoss",
    "Loss",
    "SelfAdjustingDiceLoss",
    "SetLoss",
    "SumsMemory",
    "TverskyLoss",
    "WeightedCrossEntropyLoss",
    "log_class_weight",
    "loss_parameters",
    "make_loss",
]
