"""Losses of windows: of starts and ends of spans in them, and of matches of the two."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from ._base import Loss, accumulator
from ._cross_entropy import CrossEntropyLoss

MatchCandidates = Literal["all", "gold", "pred_and_gold", "pred_gold_random"]
# The share of words that "pred_gold_random" takes as starts, and as ends, besides.
_RANDOM_SHARE = 0.01


class WindowTarget(NamedTuple):
    """What is right for the items of some windows: positions of contexts, or words."""

    # (n_items, 2): whether a span starts there, and ends there; 0, 1 or ignore_index for both.
    border: Tensor
    row: Tensor  # (n_items,): the window of each, 0, 1, ...; those of one lie side by side.
    # Of queries only: the number of each word in its window, 0, 1, ..., (n_items,), and whether the
    # words i and j are start and end of an entity, (n_windows, longest, longest), bool.
    place: Tensor | None = None
    match: Tensor | None = None


# Logits, targets and weights that one call of a loss takes.
Part = tuple[Tensor, Tensor, Tensor | None]


class CombinedLoss(BaseEstimator, nn.Module):
    """Base of the weighted means of what one ``loss`` gives for several parts of the logits.

    They have the protocol of :class:`Loss`, but for its parameters; targets are a `WindowTarget`.
    """

    span_weights: Sequence[float]  # of the parts in the mean

    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self.loss = loss

    @staticmethod
    def target(batch: Mapping[str, Tensor]) -> WindowTarget:
        """Return the target that a batch has."""
        return WindowTarget(batch["target"], batch["row"], batch.get("place"), batch.get("match"))

    def parts(
        self, logits: Tensor, target: WindowTarget, sample_weight: Tensor | None
    ) -> list[Part]:
        """Return what the loss is taken of, part by part: first the starts and the ends."""
        return [
            (logits[:, i], target.border[:, i].long(), _weight_of(i, sample_weight)) for i in (0, 1)
        ]

    def total_weight(self, target: WindowTarget, sample_weight: Tensor | None = None) -> Tensor:
        """Return what a separable loss of some windows is divided by, a scalar; it adds up."""
        raise NotImplementedError

    def forward(
        self, logits: Tensor, target: WindowTarget, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Compute the loss.

        Weights are those of the items, the same in all of a window, or of each part of the items,
        (n_items, n_parts).
        """
        return self.value(self.sums(logits, target, sample_weight))

    def sums(
        self, logits: Tensor, target: WindowTarget, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Compute what the loss needs to know of some windows, additive over windows."""
        parts = self.parts(logits, target, sample_weight)
        return torch.cat([self.loss.sums(*part) for part in parts])

    def value(self, sums: Tensor) -> Tensor:
        """Turn (added up) ``sums`` into the loss, a scalar tensor."""
        parts = zip(self.span_weights, sums.chunk(len(self.span_weights)))
        total = sum(self.span_weights)
        return torch.stack([weight / total * self.loss.value(part) for weight, part in parts]).sum()

    @property
    def additive(self) -> bool:
        """Whether ``sums`` of parts add up to the ``sums`` of the whole."""
        return self.loss.additive

    @property
    def separable(self) -> bool:
        """Whether the loss is one weighted mean, divided by ``sums[1]``."""
        return False

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
    position is right), every other loss over single positions (a sigmoid each). The logits, of
    shape (n_items, 2), are the scores of the positions as start and as end.
    """

    span_weights = (1.0, 1.0)

    def sums(
        self, logits: Tensor, target: WindowTarget, sample_weight: Tensor | None = None
    ) -> Tensor:
        if not self.separable:
            return super().sums(logits, target, sample_weight)
        parts = self.parts(logits, target, sample_weight)
        if is_over_positions(self.loss):
            start, end = (self._softmax_sums(*part, target.row) for part in parts)
        else:
            start, end = (self.loss.sums(*part) for part in parts)
        # Both means have the same divisor.
        return (start + end) / 2

    def value(self, sums: Tensor) -> Tensor:
        return self.loss.value(sums) if self.separable else super().value(sums)

    def total_weight(self, target: WindowTarget, sample_weight: Tensor | None = None) -> Tensor:
        start, sample_weight = target.border[:, 0], _weight_of(0, sample_weight)
        if is_over_positions(self.loss):
            right = (start == 1).float()
            return (right if sample_weight is None else right * sample_weight).sum()
        return self.loss.total_weight(start, sample_weight)

    @property
    def separable(self) -> bool:
        return self.loss.separable

    def _softmax_sums(
        self, logits: Tensor, target: Tensor, sample_weight: Tensor | None, row: Tensor
    ) -> Tensor:
        if logits.dtype in (torch.float16, torch.bfloat16):
            logits = logits.float()
        logits = logits.masked_fill(target == self.loss.ignore_index, 0.0)
        # There are as many places as positions: there are no more windows than that.
        top = torch.full_like(logits, -torch.inf).scatter_reduce(0, row, logits.detach(), "amax")
        exponential = accumulator((logits - top[row]).exp())
        total = torch.zeros_like(exponential).index_add(0, row, exponential)
        log_total = (total[row].log() + top[row]).to(logits.dtype)
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
    start, that of an end.
    """

    def __init__(
        self,
        loss: Loss,
        span_weights: Sequence[float] = (1.0, 1.0, 0.1),
        match_candidates: str = "pred_gold_random",
    ) -> None:
        super().__init__(loss)
        self.span_weights = span_weights
        self.match_candidates = match_candidates

    def parts(
        self, logits: Tensor, target: WindowTarget, sample_weight: Tensor | None
    ) -> list[Part]:
        borders = super().parts(logits, target, sample_weight)
        return [*borders, self._matches(logits, target, _weight_of(2, sample_weight))]

    def _matches(self, logits: Tensor, target: WindowTarget, sample_weight: Tensor | None) -> Part:
        """Return scores, targets and weights of all pairs of words; the loss ignores most."""
        _, row, place, match = target
        assert place is not None
        assert match is not None
        index, shape = (row, place), match.shape

        def padded(values: Tensor) -> Tensor:
            return values.new_zeros((*shape[:2], *values.shape[1:])).index_put(index, values)

        start_vector, end_vector = (padded(vector) for vector in logits[:, 2:].chunk(2, dim=1))
        starts, ends = (padded(self._boundaries(logits[:, i], target.border[:, i])) for i in (0, 1))
        is_candidate = (starts.unsqueeze(2) & ends.unsqueeze(1)).triu()
        gold = match.long().masked_fill(~is_candidate, self.loss.ignore_index)
        weight = None
        if sample_weight is not None:
            weight = padded(sample_weight).unsqueeze(2).expand(shape).flatten()
        return match_scores(start_vector, end_vector).flatten(), gold.flatten(), weight

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


def _weight_of(part: int, sample_weight: Tensor | None) -> Tensor | None:
    """Return the weights of the items in one part."""
    if sample_weight is None or sample_weight.ndim == 1:
        return sample_weight
    return sample_weight[:, part]


def match_scores(start: Tensor, end: Tensor) -> Tensor:
    """Return the scores, (n_rows, n_words, n_words), of all pairs of a start and an end."""
    return start @ end.transpose(1, 2) / math.sqrt(start.shape[2])
