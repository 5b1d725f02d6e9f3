"""Losses that are means of another one: over starts and ends, and over matches of these."""

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from ._base import Loss, accumulator
from ._cross_entropy import CrossEntropyLoss

Candidates = Literal["all", "gold", "pred_and_gold", "pred_gold_random"]
# Words that "pred_gold_random" takes as starts and ends besides.
_RANDOM_SHARE = 0.01


class CombinedLoss(BaseEstimator, nn.Module):
    """Base of the means of what one ``loss`` gives for several columns of logits.

    They have the protocol of :class:`Loss`, but for its parameters.
    """

    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self.loss = loss

    def forward(
        self, logits: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Compute the loss; weights are the same for all items of a window."""
        return self.value(self.sums(logits, target, sample_weight))

    sums: ClassVar[Callable[..., Tensor]]
    value: ClassVar[Callable[..., Tensor]]

    @property
    def additive(self) -> bool:
        """Whether ``sums`` of parts add up to the ``sums`` of the whole."""
        return self.loss.additive

    @property
    def memory(self) -> float | str:
        """About how many steps the sums are formed over in training."""
        return 0.0 if self.loss.separable else self.loss.memory


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


class QueryLoss(CombinedLoss):
    """Weighted mean of the losses of starts, ends and matches (BERT-MRC, Li et al., ACL 2020).

    The loss is taken over single words (starts, ends) and over pairs of words (matches):
    ``match_candidates`` are "all" pairs of a window, those of a "gold" start and a gold end, of a
    predicted or gold start and end, or these and some random ones, drawn anew in each call of
    ``sums``. ``span_weights`` are divided by their sum.

    The logits, of shape (n_items, 2 + 2 size), are the scores of each word as start and as end, and
    the two vectors whose product with those of other words is the score of a match: that of a
    start, that of an end. The target, of shape (n_items, 3 + most), says whether an entity starts
    there and whether one ends there (0 or 1); the window, any number (words of a window lie side by
    side); and the lengths in words of the entities that start there and end in the same window,
    filled up with 0.
    """

    separable = False

    def __init__(
        self,
        loss: Loss,
        span_weights: Sequence[float] = (1.0, 1.0, 0.1),
        match_candidates: str = "pred_gold_random",
    ) -> None:
        super().__init__(loss)
        self.span_weights = span_weights
        self.match_candidates = match_candidates

    def sums(self, logits: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        target = target.long()
        sums = [self.loss.sums(logits[:, i], target[:, i], sample_weight) for i in (0, 1)]
        return torch.cat([*sums, self.loss.sums(*self._matches(logits, target, sample_weight))])

    def value(self, sums: Tensor) -> Tensor:
        total = sum(self.span_weights)
        parts = zip(self.span_weights, sums.chunk(3))
        return torch.stack([weight / total * self.loss.value(part) for weight, part in parts]).sum()

    def _matches(
        self, logits: Tensor, target: Tensor, sample_weight: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return scores, targets and weights of the candidate pairs."""
        window = target[:, 2]
        is_first = torch.ones_like(window, dtype=torch.bool)
        is_first[1:] = window[1:] != window[:-1]
        row = is_first.cumsum(0) - 1
        first = is_first.nonzero().squeeze(1)
        column = torch.arange(len(row), device=row.device) - first[row]
        n_rows, length = len(first), int(column.max()) + 1 if len(column) else 0

        def padded(values: Tensor) -> Tensor:
            out = values.new_zeros((n_rows, length, *values.shape[1:]))
            return out.index_put((row, column), values)

        start_vector, end_vector = (padded(vector) for vector in logits[:, 2:].chunk(2, dim=1))
        scores = match_scores(start_vector, end_vector)
        gold = torch.zeros_like(scores, dtype=torch.bool)
        for lengths in target[:, 3:].unbind(1):
            item = lengths.nonzero().squeeze(1)
            gold[row[item], column[item], column[item] + lengths[item] - 1] = True
        starts, ends = (padded(self._boundaries(logits[:, i], target[:, i])) for i in (0, 1))
        pairs = (starts.unsqueeze(2) & ends.unsqueeze(1)).triu()
        weight = None
        if sample_weight is not None:
            weight = padded(sample_weight).unsqueeze(2).expand_as(scores)[pairs]
        return scores[pairs], gold[pairs].long(), weight

    def _boundaries(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return which words are taken as starts (or as ends) of candidate pairs."""
        if self.match_candidates == "all":
            return torch.ones_like(target, dtype=torch.bool)
        chosen = target == 1
        if self.match_candidates != "gold":
            chosen = chosen | (logits.detach() > 0)
        if self.match_candidates == "pred_gold_random":
            chosen = chosen | (torch.rand(target.shape, device=target.device) < _RANDOM_SHARE)
        return chosen


def match_scores(start: Tensor, end: Tensor) -> Tensor:
    """Return the scores, (n_rows, n_words, n_words), of all pairs of a start and an end."""
    return start @ end.transpose(1, 2) / math.sqrt(start.shape[2])
