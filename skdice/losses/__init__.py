"""The losses of "Dice Loss for Data-imbalanced NLP Tasks" (Li et al., ACL 2020)."""

from ._base import IGNORE_INDEX, Loss, accumulator
from ._combined import (
    CombinedLoss,
    MatchCandidates,
    QueryLoss,
    SpanLoss,
    is_over_positions,
    match_scores,
)
from ._cross_entropy import (
    CrossEntropyLoss,
    FocalLoss,
    WeightedCrossEntropyLoss,
    class_weights,
    log_class_weight,
)
from ._dice import DiceLoss, SelfAdjustingDiceLoss, SetLoss, SumsMemory, TverskyLoss
from ._named import (
    LOSS_NAMES,
    LOSS_PARAMETERS,
    LossName,
    check_loss,
    check_loss_classes,
    loss_parameters,
    make_loss,
)

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
