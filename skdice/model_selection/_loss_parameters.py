"""The parameters that belong to the loss of an estimator."""

from collections.abc import Mapping
from typing import Any

from ..estimators._loss import LOSS_PARAMETERS as NAMED_LOSS_PARAMETERS

LOSS_PARAMETERS = (*NAMED_LOSS_PARAMETERS, "K")


def switch_loss(parameters: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a loss and its parameters; None for each loss parameter that is not among them.

    What an estimator was given for one loss means another thing to the next one.
    """
    return dict.fromkeys(f"{prefix}{name}" for name in LOSS_PARAMETERS) | dict(parameters)
