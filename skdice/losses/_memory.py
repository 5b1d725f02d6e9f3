"""What a set loss knows of the steps before: a running mean of their sums."""

from typing import Any

import torch
from torch import Tensor


class SumsMemory:
    """Computes a set loss from the sums of several optimiser steps.

    F1 is a ratio of sums over a corpus. The mean of such ratios over many small steps is not the
    same, and where positives are rare, most steps have none at all. So a running mean u of the sums
    takes the place of the sums of one step: ``loss.value(memory(loss.sums(logits, target)))`` is
    the loss of the remembered steps. Its gradient is taken with respect to the sums of this step,
    at the point u.

    Parameters
    ----------
    n_steps : float
        About how many steps are remembered: the mean of all of them at first, then u moves by
        ``1 / n_steps`` of the way to the sums of each step. Values up to 1 use each step alone.

    Attributes
    ----------
    count : int
        Steps so far.
    mean : Tensor of shape (n_sums,) or None
        u; on the scale of one step, as is the smoothing gamma.

    Notes
    -----
    This is the compositional gradient of Wang, Fang & Liu (2017, "Stochastic compositional gradient
    descent"), which Qi et al. (2021) use for average precision. The gradients of the steps of an
    epoch, all taken at the weights at its start, add up to that of the whole corpus. Without memory
    they do not.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import DiceLoss, SumsMemory
    >>> loss, memory = DiceLoss(), SumsMemory(10)
    >>> step = torch.tensor([2.0, -1.0, 0.0]), torch.tensor([1, 0, 0])
    >>> loss.value(memory(loss.sums(*step)))
    tensor(0.1086)
    >>> without_positives = torch.tensor([0.5, -1.0, 0.0]), torch.tensor([0, 0, 0])
    >>> loss.value(memory(loss.sums(*without_positives)))
    tensor(0.2176)
    """

    def __init__(self, n_steps: float) -> None:
        self.n_steps = n_steps
        self.count = 0
        self.mean: Tensor | None = None

    def __call__(self, sums: Tensor) -> Tensor:
        """Remember the sums of a whole step; return u, through which the gradient goes to them."""
        if self.n_steps <= 1:
            return sums
        self.count += 1
        now = sums.detach()
        share = max(1 / self.count, 1 / self.n_steps)
        self.mean = now.clone() if self.mean is None else torch.lerp(self.mean.to(now), now, share)
        return self.mean + (sums - now)

    def state_dict(self) -> dict[str, Any]:
        """Return the state, from which a training can be resumed."""
        return {"count": self.count, "mean": self.mean}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that :meth:`state_dict` returned."""
        self.count = state["count"]
        self.mean = state["mean"]
