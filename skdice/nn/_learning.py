"""Whether a fit learns anything, so that one that does not can begin again."""

from typing import Any

from skorch.callbacks import Callback
from torch import Tensor

# Steps whose mean loss is that of the beginning.
_FIRST_STEPS = 5
# A loss above this share of that of the beginning has not fallen.
_LEARNING = 0.97


class NotLearningError(ValueError):
    """The training loss has not fallen."""


class LearningCheck(Callback):
    """Raises a NotLearningError at the end of an epoch if the loss is about as at the beginning."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.first_: list[Tensor] = []

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        if net.history[-1]["epoch"] != self.epoch:
            return
        first, *_, last = net.history[:, "train_loss"]
        if last > _LEARNING * first:
            raise NotLearningError(f"The training loss fell from {first:.4f} to {last:.4f} only.")
