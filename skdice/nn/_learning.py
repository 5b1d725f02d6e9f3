"""Whether a fit has learned anything, so that one that has not can begin again."""

from typing import Any

import torch
from skorch.callbacks import Callback
from torch import Tensor

# Steps whose mean loss is that of the beginning.
_FIRST_STEPS = 5
# A loss above this share of that of the beginning has not fallen. Labels of which 45 % are wrong
# leave a loss of 0.993 times that.
_FALLEN = 0.995


class NotLearningError(ValueError):
    """The training loss has not fallen."""


class LearningCheck(Callback):
    """Keeps the losses of the first steps, to tell at the end of a run whether it learned anything.

    It did if its last epoch has a lower loss than these, and than the best that is the same for all
    items, ``constant``: one that is known. The first epoch tells less: with labels of which many
    are wrong, the loss is at its lowest soon, and little lower.
    """

    def __init__(self, constant: float | None) -> None:
        self.constant = constant
        self.first_losses_: list[Tensor] = []

    def on_batch_end(self, net: Any, loss: Any = None, **kwargs: Any) -> None:
        if len(self.first_losses_) < _FIRST_STEPS:
            self.first_losses_.append(loss)

    def check(self, last: float) -> None:
        """Raise a NotLearningError if the loss of the last epoch is about as at the beginning."""
        first = torch.stack(self.first_losses_).mean().item()
        if last > _FALLEN * first or (self.constant is not None and last > self.constant):
            constant = "" if self.constant is None else f", and {self.constant:.4f} without texts"
            raise NotLearningError(
                f"The training loss is {last:.4f} in the last epoch; it was {first:.4f} in the "
                f"first steps{constant}."
            )
