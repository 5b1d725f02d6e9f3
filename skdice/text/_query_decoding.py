"""From the logits of starts, ends and matches to entities."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from scipy.special import expit

from ._entities import Entity
from ._queries import EncodedQueries
from ._windows import span_bounds


def find_spans(
    encoded: EncodedQueries,
    logits: np.ndarray,
    labels: Sequence[str],
    threshold: float | Mapping[str, float],
) -> list[list[tuple[float, Entity]]]:
    """Return the spans of each sentence whose start, end and match exceed a threshold.

    Of windows that share a span the one in which it is most central counts.

    Parameters
    ----------
    encoded : EncodedQueries
    logits : ndarray of shape (n_items, 2 + 2 size)
        See :class:`skdice.losses._query.QueryLoss`.
    labels : sequence of n_queries str
    threshold : float or mapping of label to float
        For the lowest of the three logits.

    Returns
    -------
    list of lists of (logit, Entity)
        The logit is the lowest of the three, the score its sigmoid.
    """
    data = encoded.dataset
    size = (logits.shape[1] - 2) // 2
    row = data.text * len(labels) + encoded.query  # Windows of one row share spans.
    low, high = span_bounds(row, encoded.window_start, encoded.window_stop)
    found: list[list[tuple[float, Entity]]] = [[] for _ in range(data.n_texts)]
    for w, (first, last) in enumerate(pairwise(data.items.offsets.tolist())):
        here, label = slice(first, last), labels[encoded.query[w]]
        cut = threshold[label] if isinstance(threshold, Mapping) else threshold
        starts = first + np.flatnonzero(logits[here, 0] > cut)
        ends = first + np.flatnonzero(logits[here, 1] > cut)
        if not len(starts) or not len(ends):
            continue
        match = logits[starts, 2 : 2 + size] @ logits[ends, 2 + size :].T / size**0.5
        lowest = np.minimum(match, np.minimum(logits[starts, None, 0], logits[ends, 1]))
        centre = encoded.place[starts, None] + encoded.place[ends]
        is_span = (lowest > cut) & (starts[:, None] <= ends)
        is_span &= (centre > low[w]) & (centre <= high[w])
        for i, j in zip(*np.nonzero(is_span)):
            start, end = int(encoded.word[starts[i]]), int(encoded.word[ends[j]]) + 1
            logit = float(lowest[i, j])
            entity = Entity(start, end, label, float(expit(logit)))
            found[data.text[w]].append((logit, entity))
    return [sorted(spans, key=_order) for spans in found]


def best_disjoint(spans: Sequence[tuple[float, Entity]]) -> list[tuple[float, Entity]]:
    """Return the spans without overlap that have the highest scores in total.

    Of equally good sets the one with earlier spans is taken.

    Examples
    --------
    >>> whole = (2.2, Entity(0, 4, "ORG", 0.9))
    >>> parts = [(0.4, Entity(0, 2, "PER", 0.6)), (0.4, Entity(2, 4, "LOC", 0.6))]
    >>> [entity.label for _, entity in best_disjoint([whole, *parts])]
    ['PER', 'LOC']
    """
    ordered = sorted(spans, key=lambda span: (span[1].end, span[1].start, span[1].label))
    ends = [entity.end for _, entity in ordered]
    total = [0.0]
    before = []  # How many of the ordered spans end before each one starts.
    for i, (_, entity) in enumerate(ordered):
        before.append(bisect_right(ends, entity.start, hi=i))
        total.append(max(total[i], total[before[i]] + entity.score))
    chosen = []
    i = len(ordered)
    while i:
        if total[i] > total[i - 1]:
            chosen.append(ordered[i - 1])
            i = before[i - 1]
        else:
            i -= 1
    return chosen[::-1]


def _order(span: tuple[float, Entity]) -> tuple[int, int, str]:
    _, entity = span
    return entity.start, entity.end, entity.label
