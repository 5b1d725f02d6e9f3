"""Losses of windows of text: for the starts and ends of spans, and for pairs of the two."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from ._base import Loss, accumulator
from ._cross_entropy import CrossEntropyLoss

MatchCandidates = Literal["all", "gold", "pred_and_gold", "pred_gold_random"]
# The share of all words that "pred_gold_random" adds as starts, and as ends.
_RANDOM_SHARE = 0.01


class WindowTarget(NamedTuple):
    """The targets of the items of some windows; an item is a position of a context, or a word."""

    # (n_items, 2): whether a span starts there, and ends there; 0, 1 or ignore_index for both.
    border: Tensor
    row: Tensor  # (n_items,): the window of each item, 0, 1, ...; a window's items are adjacent.
    # With queries only: ``place``, (n_items,), is the number of each word in its window; ``match``,
    # (n_windows, longest, longest), says whether words i and j are start and end of an entity.
    place: Tensor | None = None
    match: Tensor | None = None


# Logits, targets and weights that one call of a loss takes.
Part = tuple[Tensor, Tensor, Tensor | None]


class CombinedLoss(BaseEstimator, nn.Module):
    """Base of losses that are the weighted mean of one ``loss`` over several parts of the logits.

    They have the methods of :class:`Loss`, but not its parameters; targets are a `WindowTarget`.
    """

    span_weights: Sequence[float]  # of the parts in the mean

    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self.loss = loss

    @staticmethod
    def target(batch: Mapping[str, Tensor]) -> WindowTarget:
        return WindowTarget(batch["target"], batch["row"], batch.get("place"), batch.get("match"))

    def parts(
        self, logits: Tensor, target: WindowTarget, sample_weight: Tensor | None
    ) -> list[Part]:
        """Return the arguments of the loss for each part: the starts, the ends, others."""
        return [
            (logits[:, i], target.border[:, i].long(), _weight_of(i, sample_weight)) for i in (0, 1)
        ]

    def total_weight(self, target: WindowTarget, sample_weight: Tensor | None = None) -> Tensor:
        raise NotImplementedError  # A loss that is separable has it.

    def forward(
        self, logits: Tensor, target: WindowTarget, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Compute the loss.

        Weights have the shape (n_items,), with one weight for all items of a window, or
        (n_items, n_parts).
        """
        return self.value(self.sums(logits, target, sample_weight))

    def sums(
        self, logits: Tensor, target: WindowTarget, sample_weight: Tensor | None = None
    ) -> Tensor:
        parts = self.parts(logits, target, sample_weight)
        return torch.cat([self.loss.sums(*part) for part in parts])

    def value(self, sums: Tensor) -> Tensor:
        parts = zip(self.span_weights, sums.chunk(len(self.span_weights)))
        total = sum(self.span_weights)
        return torch.stack([weight / total * self.loss.value(part) for weight, part in parts]).sum()

    @property
    def additive(self) -> bool:
        return self.loss.additive

    @property
    def separable(self) -> bool:
        return False

    @property
    def memory(self) -> float | str:
        return 0.0 if self.loss.separable else self.loss.memory


def is_over_positions(loss: Any) -> bool:
    """Whether a loss is a softmax over the positions of a window: cross-entropy, no subclass."""
    return type(loss) is CrossEntropyLoss


class SpanLoss(CombinedLoss):
    """Mean of the loss of the starts and the loss of the ends of answers.

    :class:`CrossEntropyLoss` has one softmax over the positions of each window, and one position is
    right. Every other loss has a sigmoid for each position. The logits, of shape (n_items, 2), are
    the scores of the positions as start and as end.
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
        # The starts and the ends have the same divisor.
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
        # One place for each position is enough: there are at most as many windows.
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

    Starts and ends are scores of single words, matches are scores of pairs of words.
    ``match_candidates`` says which pairs count: "all" pairs of a window; "gold" takes a gold start
    and a gold end; "pred_and_gold" a predicted or gold start and end; "pred_gold_random" adds some
    random words, drawn anew in each call of ``sums``. ``span_weights`` are divided by their sum.

    The logits, of shape (n_items, 2 + 2 size), are the score of each word as start, its score as
    end, and two vectors: the product of the first vector of a start with the second vector of an
    end is the score of their match.
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
        """Return scores, targets and weights of all pairs of words; most targets are ignored."""
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
        """Tell for each word whether it is the start (or the end) of candidate pairs."""
        if self.match_candidates == "all":
            return torch.ones_like(target, dtype=torch.bool)
        chosen = target == 1
        if self.match_candidates != "gold":
            chosen = chosen | (logits.detach() > 0)
        if self.match_candidates == "pred_gold_random":
            chosen = chosen | (torch.rand(target.shape, device=target.device) < _RANDOM_SHARE)
        return chosen


def _weight_of(part: int, sample_weight: Tensor | None) -> Tensor | None:
    """Return the weights of the items in a part."""
    if sample_weight is None or sample_weight.ndim == 1:
        return sample_weight
    return sample_weight[:, part]


def match_scores(start: Tensor, end: Tensor) -> Tensor:
    """Return the scores, (n_rows, n_words, n_words), of all pairs of a start and an end."""
    return start @ end.transpose(1, 2) / math.sqrt(start.shape[2])
