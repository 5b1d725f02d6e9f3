"""Where an answer starts and where it ends: two losses over the positions of a window, averaged."""

from typing import Any

import torch
from torch import Tensor

from ._base import CombinedLoss, accumulator
from ._cross_entropy import CrossEntropyLoss


def is_over_positions(loss: Any) -> bool:
    """Whether a loss is taken over the positions of a window; no subclass of cross-entropy is."""
    return type(loss) is CrossEntropyLoss


class SpanLoss(CombinedLoss):
    """Mean of the loss of the starts and the loss of the ends of answers.

    :class:`CrossEntropyLoss` is taken over the positions of each window (one softmax, of which one
    position is right), every other loss over single positions (a sigmoid each).

    The logits, of shape (n_items, 2), are the scores of the positions as start and as end. The
    target, of shape (n_items, 3), says whether the answer starts there and whether it ends there (0
    or 1, or ``loss.ignore_index`` for both), and has the window of the position, any number. The
    positions of a window lie side by side and have one start and one end, unless all are ignored.
    """

    def sums(self, logits: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        if is_over_positions(self.loss):
            start, end = (
                self._softmax_sums(logits[:, i], target[:, i], target[:, 2], sample_weight)
                for i in (0, 1)
            )
        else:
            start, end = (
                self.loss.sums(logits[:, i], target[:, i].long(), sample_weight) for i in (0, 1)
            )
        # Both means have the same divisor.
        return (start + end) / 2 if self.separable else torch.cat([start, end])

    def value(self, sums: Tensor) -> Tensor:
        if self.separable:
            return self.loss.value(sums)
        start, end = sums.chunk(2)
        return (self.loss.value(start) + self.loss.value(end)) / 2

    def total_weight(self, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Return what the mean over some windows is divided by, a scalar tensor; it adds up."""
        start = target[:, 0]
        if is_over_positions(self.loss):
            right = (start == 1).float()
            return (right if sample_weight is None else right * sample_weight).sum()
        return self.loss.total_weight(start, sample_weight)

    @property
    def separable(self) -> bool:
        """Whether the loss is a weighted mean, divided by ``sums[1]``."""
        return self.loss.separable

    def _softmax_sums(
        self, logits: Tensor, target: Tensor, window: Tensor, sample_weight: Tensor | None
    ) -> Tensor:
        if logits.dtype in (torch.float16, torch.bfloat16):
            logits = logits.float()
        logits = logits.masked_fill(target == self.loss.ignore_index, 0.0)
        starts_window = torch.ones_like(window)
        starts_window[1:] = window[1:] != window[:-1]
        index = starts_window.cumsum(0) - 1
        # As many places as there are positions: the number of windows would have to be waited for.
        top = torch.full_like(logits, -torch.inf).scatter_reduce(0, index, logits.detach(), "amax")
        exponential = accumulator((logits - top[index]).exp())
        total = torch.zeros_like(exponential).index_add(0, index, exponential)
        log_total = (total[index].log() + top[index]).to(logits.dtype)
        weight = (target == 1).to(logits.dtype)
        if sample_weight is not None:
            weight = weight * sample_weight
        losses = (log_total - logits) * weight
        return torch.stack([losses.sum(), weight.sum()])
