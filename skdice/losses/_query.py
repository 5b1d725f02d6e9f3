"""Where entities start, where they end, and which start belongs to which end: three losses."""

import math
from collections.abc import Sequence

import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from ._base import Loss

MATCH_CANDIDATES = ("all", "gold", "pred_and_gold", "pred_gold_random")
# Words that "pred_gold_random" takes as starts and ends besides.
_RANDOM_SHARE = 0.01


class QueryLoss(BaseEstimator, nn.Module):
    """Weighted mean of the losses of starts, ends and matches (BERT-MRC, Li et al., ACL 2020).

    It has the protocol of :class:`Loss` (``sums`` and ``value``, ``additive``).

    Parameters
    ----------
    loss : Loss
        Taken over single words (starts, ends) and over pairs of words (matches).
    span_weights : tuple of 3 floats
        Of the three losses; divided by their sum.
    match_candidates : {"all", "gold", "pred_and_gold", "pred_gold_random"}
        Pairs of words that the match loss is taken over: "all" of a window, those of a gold start
        and a gold end, of a predicted or gold start and end, or these and some random ones, drawn
        anew in each call of ``sums``.
    """

    separable = False

    def __init__(
        self,
        loss: Loss,
        span_weights: Sequence[float] = (1.0, 1.0, 0.1),
        match_candidates: str = "pred_gold_random",
    ) -> None:
        super().__init__()
        self.loss = loss
        self.span_weights = span_weights
        self.match_candidates = match_candidates

    def forward(
        self, logits: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Compute the loss.

        Parameters
        ----------
        logits : Tensor of shape (n_items, 2 + 2 size)
            Of each word: its scores as start and as end, and the two vectors whose product with
            those of other words is the score of a match: that of a start, that of an end.
        target : Tensor of shape (n_items, 3 + most), integers
            0 or 1: whether an entity starts there, and whether one ends there; the window, any
            number (words of a window lie side by side); the lengths in words of the entities that
            start there and end in the same window, filled up with 0.
        sample_weight : Tensor of shape (n_items,), optional
            The same for all words of a window.
        """
        return self.value(self.sums(logits, target, sample_weight))

    def sums(self, logits: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Compute what the loss needs to know of some windows, additive over windows."""
        target = target.long()
        return torch.cat(
            [
                self.loss.sums(logits[:, 0], target[:, 0], sample_weight),
                self.loss.sums(logits[:, 1], target[:, 1], sample_weight),
                self.loss.sums(*self._matches(logits, target, sample_weight)),
            ]
        )

    def value(self, sums: Tensor) -> Tensor:
        """Turn (added up) ``sums`` into the loss, a scalar tensor."""
        total = sum(self.span_weights)
        parts = zip(self.span_weights, sums.chunk(3))
        return torch.stack([weight / total * self.loss.value(part) for weight, part in parts]).sum()

    @property
    def memory(self) -> float | str:
        """About how many steps the sums are formed over in training."""
        return 0.0 if self.loss.separable else self.loss.memory

    @property
    def additive(self) -> bool:
        """Whether ``sums`` of parts add up to the ``sums`` of the whole."""
        return self.loss.additive

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
    """Return the scores of all pairs of a start and an end, of shape (n_rows, n_words, n_words).

    Parameters
    ----------
    start, end : Tensors of shape (n_rows, n_words, size)
    """
    return start @ end.transpose(1, 2) / math.sqrt(start.shape[2])
