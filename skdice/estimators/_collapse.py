"""A warning for fits that end without finding anything in their own training rows."""

import warnings
from typing import Any

from ..losses._set import SetLoss

# As large as was of any use in our measurements.
_LARGE_MEMORY = 30


def warn_of_collapse(what: str, loss: Any) -> None:
    """Warn that a fit found nothing in the training rows of the epoch that is kept.

    ``what`` says what it never predicts, or predicts alone; the loss is what it was trained with.
    """
    helps = ["more epochs or another lr"]
    if loss.class_weight is None:
        helps.insert(0, "class weights (K=3)" if isinstance(loss, SetLoss) else "loss='wce'")
    is_pooled = isinstance(loss, SetLoss) and loss.level == "batch"
    if is_pooled and float(loss.memory) < _LARGE_MEMORY:
        helps.insert(0, f"a larger memory (memory={_LARGE_MEMORY})")
    warnings.warn(
        f"This fit {what}, in the training rows of its epoch that is kept. What helps: "
        f"{', '.join(helps)}.",
        UserWarning,
        stacklevel=6,
    )
