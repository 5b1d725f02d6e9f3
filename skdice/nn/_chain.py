"""Tags in a linear chain: their probabilities among the allowed sequences."""

import math

import numpy as np
import torch
from torch import Tensor

from ..losses import accumulator
from ..text import offsets_from_lengths, ranges
from ._batching import Batch, PaddedShape

# Sentences are computed together as long as their words times the classes stay below this number.
_CELLS = 1_000_000
# Stands for the logarithm of 0, where -inf would have no gradient: below any sum of logits.
_IMPOSSIBLE = -1e30
# The lowest log-probability that is returned: probabilities underflow long before it.
_LOWEST = -1e4


class TagChain:
    """A linear-chain conditional random field whose transitions are allowed or not.

    A sequence whose transitions are all allowed scores the sum of the logits of its tags; any other
    has probability 0. There is nothing to learn. ``transitions`` come from
    :func:`skdice.text.allowed_transitions`; sentence i has the words ``offsets[i]:offsets[i + 1]``.
    """

    def __init__(self, transitions: tuple[np.ndarray, ...], offsets: np.ndarray) -> None:
        self._start, self._allowed, self._end = transitions
        self._offsets = offsets
        self._is_border = np.zeros(offsets[-1] + 1, dtype=bool)
        self._is_border[offsets] = True
        # From each tag to each, forwards and backwards; float64, or float32 on a device without it.
        self._follow = torch.from_numpy(np.stack([self._allowed, self._allowed.T]))

    def with_geometry(self, batch: Batch, padded: PaddedShape | None = None) -> Batch:
        """Return a batch on the CPU with the tensors that :meth:`train` needs.

        ``chain_order`` and ``chain_place`` are those of :func:`_places`. ``chain_edge``, of shape
        (2, n_windows, n_classes), says with which tags each window may begin and end: with all, if
        it begins or ends within a sentence. ``chain_is_broken``, (n_items,), is true for the items
        of windows whose gold tags are no allowed sequence.

        With ``padded``, the tensors are padded to this shape, and the added items are broken.
        """
        row, item, target = (batch[name].numpy() for name in ("row", "item", "target"))
        if not len(row):
            return batch
        is_first = np.diff(row, prepend=-1) != 0
        first = np.flatnonzero(is_first)
        lengths = np.diff(first, append=len(row))
        last = first + lengths - 1
        start = self._start | ~self._is_border[item[first], None]
        end = self._end | ~self._is_border[item[last] + 1, None]
        windows, window = np.arange(len(first)), np.repeat(np.arange(len(first)), lengths)
        is_broken = ~(start[windows, target[first]] & end[windows, target[last]])
        is_wrong = ~is_first[1:] & ~self._allowed[target[:-1], target[1:]]
        is_broken[window[1:][is_wrong]] = True
        is_broken = is_broken[window]
        edge = np.stack([start, end])
        if padded is not None:
            edge = _enlarged(edge, (2, padded.n_rows, edge.shape[2]), True)
            is_broken = _enlarged(is_broken, (padded.n_items,), True)
        order, place = _places(lengths, padded)
        return batch | {
            "chain_order": order,
            "chain_place": place,
            "chain_edge": torch.from_numpy(edge),
            "chain_is_broken": torch.from_numpy(is_broken),
        }

    def train(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the log-probabilities of the tags of each window, (n_items, n_classes).

        The batch comes from :meth:`with_geometry`. A window with broken tags keeps its logits.
        """
        if not len(logits):
            return logits
        geometry = (batch[f"chain_{name}"] for name in ("order", "place", "edge"))
        scores = self._log_probabilities(logits, *geometry)
        return torch.where(batch["chain_is_broken"][:, None], logits, scores)

    def predict(self, logits: np.ndarray) -> np.ndarray:
        """Return the log-probabilities of tags in their sentences, (n_words, n_classes)."""
        scores = np.empty(logits.shape, dtype=np.float32)
        first, lengths = self._offsets[:-1], np.diff(self._offsets)
        rows = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
        edge = torch.from_numpy(np.stack([self._start, self._end]))
        while len(rows):
            # The first one is the longest.
            n = max(1, _CELLS // int(lengths[rows[0]] * logits.shape[1]))
            block, rows = rows[:n], rows[n:]
            words = ranges(first[block], first[block] + lengths[block])
            order, place = _places(lengths[block])
            edges = edge[:, None].expand(-1, len(block), -1)
            of_block = torch.from_numpy(logits[words])
            scores[words] = self._log_probabilities(of_block, order, place, edges).numpy()
        return scores

    def _log_probabilities(
        self, logits: Tensor, order: Tensor, place: Tensor, edge: Tensor
    ) -> Tensor:
        """Sum over all allowed sequences, forwards and backwards at once.

        Probabilities are multiplied, and scaled to sum 1 after two words (the forward-backward
        algorithm, Rabiner 1989). A logit more than 212 below the highest one of its word counts as
        212 below it, so that no product vanishes. If no allowed sequence can tag a sentence, the
        probabilities are those of its logits.
        """
        gap = accumulator(logits - logits.detach().amax(1, keepdim=True))
        tiny = torch.finfo(gap.dtype).tiny
        # Numbers of float64 can be multiplied twice before they have to be scaled.
        n_unscaled = 2 if gap.dtype == torch.float64 else 1
        lowest = 0.9 / (n_unscaled + 1) * math.log(tiny)
        # The value is cut off, the gradient is not.
        gap = gap + (gap.clamp_min(lowest) - gap).detach()
        if self._follow.dtype != gap.dtype or self._follow.device != gap.device:
            self._follow = self._follow.to(gap)
        steps = gap.exp().index_select(0, order.flatten())
        before = [edge.to(gap.dtype)]
        for number, p in enumerate(steps.view(*order.shape, -1).unbind(2)[:-1], start=1):
            paths = torch.bmm(before[-1] * p, self._follow)
            if number % n_unscaled == 0:
                paths = paths / paths.detach().sum(-1, keepdim=True).clamp_min(tiny)
            before.append(paths)
        both = torch.stack(before, 2).flatten(0, 2).index_select(0, place.flatten())
        log_both = both.clamp_min(tiny).log().masked_fill(both == 0, _IMPOSSIBLE)
        scores = gap + log_both.view(2, *gap.shape).sum(0)
        is_possible = scores.amax(1, keepdim=True) > _IMPOSSIBLE / 2
        scores = torch.where(is_possible, scores, gap).log_softmax(1)
        return scores.clamp_min(_LOWEST).to(logits.dtype)


def _places(lengths: np.ndarray, padded: PaddedShape | None = None) -> tuple[Tensor, Tensor]:
    """Return where the words stand when each row is read forwards and backwards.

    ``order``, of shape (2, n_rows, longest), has the index of the word at each place, 0 behind the
    end of a row; ``place``, of shape (2, n_words), has the index of each word in the flat order.
    """
    n_words = int(lengths.sum())
    n_rows, longest = len(lengths), int(lengths.max())
    if padded is not None:
        n_rows, longest = padded.n_rows, padded.n_words
    row = np.repeat(np.arange(len(lengths)), lengths)
    column = np.arange(n_words) - offsets_from_lengths(lengths)[row]
    columns = np.stack([column, lengths[row] - 1 - column])
    place = (row + np.array([[0], [n_rows]])) * longest + columns
    order = np.zeros(2 * n_rows * longest, dtype=np.int64)
    order[place] = np.arange(n_words)
    if padded is not None:
        place = _enlarged(place, (2, padded.n_items), 0)
    return torch.from_numpy(order.reshape(2, n_rows, longest)), torch.from_numpy(place)


def _enlarged(values: np.ndarray, shape: tuple[int, ...], fill: int) -> np.ndarray:
    """Pad an array at its ends to a shape."""
    more = [(0, n - n_given) for n, n_given in zip(shape, values.shape)]
    return np.pad(values, more, constant_values=fill)
