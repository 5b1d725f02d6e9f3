"""From the logits of starts and ends to answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ._encoding import span_bounds
from ._questions import EncodedQuestions

# Cells (start, length) that are looked at together, at 8 bytes; the last question may add more.
_CELLS_AT_A_TIME = 2_000_000


class Answer(NamedTuple):
    """A part of a context that answers a question: ``context[start:end] == text``."""

    text: str
    start: int
    end: int
    score: float  # share among all spans and "no answer", in [0, 1]; not calibrated


class Candidates(NamedTuple):
    """The best spans of one question, best first."""

    spans: list[tuple[int, int, float]]  # start and end in characters, and score as of an Answer
    # By how much the logit of "no answer" exceeds that of the best span; inf without a span.
    no_answer: float


@dataclass(frozen=True)
class SpanDecoder:
    """Finds the best spans.

    The logit of a span is that of its start plus that of its end. Of the windows that share a span,
    the one in which it is most central counts. The logit of "no answer" is the lowest that any
    window has: a window that sees an answer speaks for all.
    """

    max_answer_length: int  # in pieces
    n_best: int  # spans of each question

    def decode(self, encoded: EncodedQuestions, logits: np.ndarray) -> list[Candidates]:
        """Return the candidates of each question, from logits of shape (n_items, 2)."""
        offsets = encoded.dataset.item_offsets
        low, high = span_bounds(encoded.dataset.text, encoded.window_start, encoded.window_stop)
        bounds = np.stack([encoded.window_stop, low, high], axis=1)
        bounds = np.repeat(bounds, encoded.dataset.items.lengths, axis=0)
        # Questions are decoded together if their first items lie in one block of n_items.
        n_items = max(1, _CELLS_AT_A_TIME // self.max_answer_length)
        starts = np.flatnonzero(np.diff(offsets[:-1] // n_items, prepend=-1)).tolist()
        candidates: list[Candidates] = []
        for first, last in pairwise([*starts, len(offsets) - 1]):
            candidates += self._best(encoded, logits, bounds, offsets[first : last + 1])
        return candidates

    def _best(
        self, encoded: EncodedQuestions, logits: np.ndarray, bounds: np.ndarray, offsets: np.ndarray
    ) -> Iterator[Candidates]:
        """Yield the candidates of the questions that have the items at these offsets."""
        items = slice(offsets[0], offsets[-1])
        logits, bounds = logits[items].astype(np.float64), bounds[items]
        # The logits of spans by first item and length - 1, -inf where there is none.
        n_more = np.arange(self.max_answer_length)
        piece = encoded.piece[items, None].astype(np.int64)
        # Where the window stops, and between which centres its spans lie.
        stop, low, high = bounds[:, :, None].transpose(1, 0, 2)
        centre = 2 * piece + n_more
        start = np.where(encoded.can_start[items], logits[:, 0], -np.inf)
        end = np.where(encoded.can_end[items], logits[:, 1], -np.inf)
        is_span = (piece >= 0) & (piece + n_more < stop) & (centre > low) & (centre <= high)
        is_span &= encoded.start[items, None] < self._following(encoded.end[items], 0)
        cells = np.where(is_span, start[:, None] + self._following(end, -np.inf), -np.inf)

        starts = offsets[:-1] - offsets[0]
        n_rows = len(starts)
        row = np.repeat(np.arange(n_rows), np.diff(offsets))
        is_null = encoded.piece[items] < 0
        null = np.minimum.reduceat(np.where(is_null, logits.sum(1), np.inf), starts)
        best_of_item = cells.max(1)
        best = np.maximum.reduceat(best_of_item, starts)
        top = np.maximum(best, null)
        total = np.add.reduceat(np.exp(cells - top[row, None]).sum(1), starts) + np.exp(null - top)

        # A span among the n best starts with one of the n items whose best spans are best.
        chosen = _first_of_rows(np.argsort(-best_of_item, kind="stable"), row, self.n_best)
        cell_row = np.repeat(row[chosen], self.max_answer_length)
        flat = cells[chosen].ravel()
        order = _first_of_rows(np.argsort(-flat, kind="stable"), cell_row, self.n_best)
        order = order[flat[order] > -np.inf]
        begin = chosen[order // self.max_answer_length]
        finish = begin + order % self.max_answer_length
        share = np.exp(flat[order] - top[cell_row[order]]) / total[cell_row[order]]
        start, end = encoded.start[items][begin], encoded.end[items][finish]
        spans = list(zip(start.tolist(), end.tolist(), share.tolist()))
        cut = np.searchsorted(cell_row[order], np.arange(n_rows + 1))
        for i in range(n_rows):
            yield Candidates(spans[cut[i] : cut[i + 1]], float(null[i] - best[i]))

    def _following(self, values: np.ndarray, fill: float) -> np.ndarray:
        """Return each value with those after it, of shape (n_values, max_answer_length)."""
        padding = np.full(self.max_answer_length - 1, fill, dtype=values.dtype)
        return sliding_window_view(np.concatenate([values, padding]), self.max_answer_length)


def pick_answers(
    candidates: Sequence[Candidates], contexts: Sequence[str], null_threshold: float
) -> list[str]:
    """Return the text of the best span of each question, "" if there is none or it is no answer."""
    return [
        ""
        if not found.spans or found.no_answer > null_threshold
        else context[found.spans[0][0] : found.spans[0][1]]
        for found, context in zip(candidates, contexts)
    ]


def _first_of_rows(order: np.ndarray, row: np.ndarray, n: int) -> np.ndarray:
    """Return the first n of each row in a given order, row by row."""
    order = order[np.argsort(row[order], kind="stable")]
    sorted_row = row[order]
    rank = np.arange(len(order)) - np.searchsorted(sorted_row, sorted_row)
    first: np.ndarray = order[rank < n]
    return first
