"""Where an answer starts and where it ends: two losses over the positions of a window, averaged."""

import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from ._base import Loss, accumulator


class SpanLoss(BaseEstimator, nn.Module):
    """Mean of the loss of the starts and the loss of the ends of answers.

    It has the protocol of :class:`Loss` (``sums`` and ``value``, ``separable``, ``additive``).

    Parameters
    ----------
    loss : Loss
        :class:`CrossEntropyLoss` is taken over the positions of each window (one softmax, of which
        one position is right), every other loss over single positions (a sigmoid each).
    """

    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self.loss = loss

    def forward(
        self, logits: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Compute the loss.

        Parameters
        ----------
        logits : Tensor of shape (n_items, 2)
            Scores of the positions, as start and as end.
        target : Tensor of shape (n_items, 3), integers
            0 or 1: whether the answer starts there, and whether it ends there, or
            ``loss.ignore_index`` for both; the window of the position, any number. The positions of
            a window lie side by side and have one start and one end, unless all are ignored.
        sample_weight : Tensor of shape (n_items,), optional
            The same for all positions of a window.
        """
        return self.value(self.sums(logits, target, sample_weight))

    def sums(self, logits: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Compute what the loss needs to know of some windows, additive over windows."""
        if self.loss.is_over_positions:
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
        """Turn (added up) ``sums`` into the loss, a scalar tensor."""
        if self.separable:
            return self.loss.value(sums)
        start, end = sums.chunk(2)
        return (self.loss.value(start) + self.loss.value(end)) / 2

    def total_weight(self, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Return what the mean over some windows is divided by, a scalar tensor; it adds up."""
        start = target[:, 0]
        if self.loss.is_over_positions:
            right = (start == 1).float()
            return (right if sample_weight is None else right * sample_weight).sum()
        return self.loss.total_weight(start, sample_weight)

    @property
    def memory(self) -> float | str:
        """About how many steps the sums are formed over in training."""
        return self.loss.memory

    @property
    def additive(self) -> bool:
        """Whether ``sums`` of parts add up to the ``sums`` of the whole."""
        return self.loss.additive

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
