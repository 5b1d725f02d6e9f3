"""Where entities start, where they end, and which start belongs to which end: three losses."""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from ._base import CombinedLoss, Loss

Candidates = Literal["all", "gold", "pred_and_gold", "pred_gold_random"]
# Words that "pred_gold_random" takes as starts and ends besides.
_RANDOM_SHARE = 0.01


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
