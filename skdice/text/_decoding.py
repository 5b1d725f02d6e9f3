"""From the logits of taggers and query taggers to tags, probabilities and entities."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import expit, softmax

from .._inputs import list_some
from .._parameters import check_number
from ..metrics import find_entities
from ._encoding import span_bounds
from ._queries import EncodedQueries
from ._tags import best_sequences

Threshold = float | Mapping[str, float]
# Biases to try, as shares of the largest one, and the least that this one is.
_STEPS = np.arange(-40, 41) / 40
_SHORTEST_REACH = 4.0


class Entity(NamedTuple):
    """A labelled span of words, or of characters for raw text; ``end`` is exclusive.

    The score is in [0, 1] and not calibrated. For a token tagger it is the mean probability of the
    tags of its words, so that long and short entities compare. For a query tagger it is the sigmoid
    of the lowest of its three logits.
    """

    start: int
    end: int
    label: str
    score: float


def check_threshold(threshold: Threshold | None, labels: Sequence[str]) -> dict[str, float]:
    """Return the checked lowest score of each label for which one is given."""
    if threshold is None:
        return {}
    threshold = by_label(threshold, labels)
    unknown = [label for label in threshold if label not in labels]
    if unknown:
        raise ValueError(
            f"threshold has {unknown[0]!r}, which is no label of this tagger; it has "
            f"{list_some(labels)}."
        )
    for label, value in threshold.items():
        check_number("predict_spans", f"threshold of {label}", value, low=0, high=1, closed="both")
    return dict(threshold)


def by_label(threshold: Threshold, labels: Sequence[str]) -> Mapping[str, float]:
    """Return a threshold for each label."""
    return threshold if isinstance(threshold, Mapping) else dict.fromkeys(labels, threshold)


def keep_above(entities: Sequence[Entity], lowest: Mapping[str, float]) -> list[Entity]:
    """Return the entities whose score is not below that of their label."""
    return [entity for entity in entities if entity.score >= lowest.get(entity.label, 0.0)]


@dataclass(frozen=True)
class TagDecoder:
    """Decides on tags.

    All methods take ``logits`` of shape (n_words, n_classes) and the ``offsets`` of the sentences
    in them, of shape (n_sentences + 1,).
    """

    classes: np.ndarray
    # Which tags may follow which; None gives the best tag of each word.
    transitions: tuple[np.ndarray, ...] | None
    background: int | None  # the class "O"
    # Added to the logit of the background. By label: subtracted from the logits of its tags.
    bias: float | Mapping[str, float] = 0.0
    # By label; the words of entities with a lower score are "O".
    lowest: Mapping[str, float] = field(default_factory=dict)

    def tags(self, logits: np.ndarray, offsets: np.ndarray) -> list[list[str]]:
        best = best_sequences(self.shifted(logits), offsets, self.transitions)
        words = self.classes[best].tolist()
        tags = [words[start:stop] for start, stop in pairwise(offsets)]
        if self.lowest:
            for row, entities in zip(tags, self.entities(logits, offsets)):
                inside = {i for entity in entities for i in range(entity.start, entity.end)}
                row[:] = [tag if i in inside else "O" for i, tag in enumerate(row)]
        return tags

    def probabilities(self, logits: np.ndarray, offsets: np.ndarray) -> list[np.ndarray]:
        """Return the softmax for each sentence, of shape (n_words, n_classes)."""
        p = softmax(self.shifted(logits).astype(np.float64), axis=1)
        return [p[start:stop] for start, stop in pairwise(offsets)]

    def entities(self, logits: np.ndarray, offsets: np.ndarray) -> list[list[Entity]]:
        """Return the entities of each sentence, positions in words."""
        logits = self.shifted(logits)
        best = best_sequences(logits, offsets, self.transitions)
        p = softmax(logits.astype(np.float64), axis=1)[np.arange(len(best)), best]
        tags = self.classes[best].tolist()
        rows = []
        for first, last in pairwise(offsets):
            found = [
                Entity(start, end, label, float(p[first:last][start:end].mean()))
                for start, end, label in find_entities(tags[first:last])
            ]
            rows.append(keep_above(found, self.lowest))
        return rows

    def biases(self, logits: np.ndarray) -> list[float]:
        """Return the biases to try, in the order of preference among equally good ones.

        The largest one gives up nearly all entities, at any scale of the logits.
        """
        if self.background is None:
            return [0.0]
        lead = np.delete(logits, self.background, axis=1).max(1) - logits[:, self.background]
        lead = lead[lead > 0]
        reach = max(_SHORTEST_REACH, float(np.quantile(lead, 0.98)) if len(lead) else 0.0)
        return sorted(np.round(_STEPS * reach, 2).tolist(), key=abs)

    def shifted(self, logits: np.ndarray) -> np.ndarray:
        """Return logits with the bias of the background, or those of the labels."""
        if self.background is None or not self.bias:
            return logits
        logits = logits.copy()
        if isinstance(self.bias, Mapping):
            logits -= np.array([self.bias.get(tag[2:], 0.0) for tag in self.classes], logits.dtype)
        else:
            logits[:, self.background] += self.bias
        return logits


def find_spans(
    encoded: EncodedQueries, logits: np.ndarray, labels: Sequence[str], threshold: Threshold
) -> list[list[tuple[float, Entity]]]:
    """Return the spans of each sentence whose start, end and match exceed a threshold.

    A span in several windows is taken from the one in which it is most central. The logits are of
    shape (n_items, 2 + 2 size), see :class:`skdice.losses._combined.QueryLoss`; ``labels`` are
    those of the queries. The lowest of the three logits is compared to the threshold and returned
    with the entity, whose score is its sigmoid.
    """
    data = encoded.dataset
    size = (logits.shape[1] - 2) // 2
    row = data.text * len(labels) + encoded.query  # Windows of one row share spans.
    low, high = span_bounds(row, encoded.window_start, encoded.window_stop)
    cuts = by_label(threshold, labels)
    found: list[list[tuple[float, Entity]]] = [[] for _ in range(data.n_texts)]
    for w, (first, last) in enumerate(pairwise(data.items.offsets.tolist())):
        here, label = slice(first, last), labels[encoded.query[w]]
        starts = first + np.flatnonzero(logits[here, 0] > cuts[label])
        ends = first + np.flatnonzero(logits[here, 1] > cuts[label])
        if not len(starts) or not len(ends):
            continue
        match = logits[starts, 2 : 2 + size] @ logits[ends, 2 + size :].T / size**0.5
        lowest = np.minimum(match, np.minimum(logits[starts, None, 0], logits[ends, 1]))
        centre = encoded.place[starts, None] + encoded.place[ends]
        is_span = (lowest > cuts[label]) & (starts[:, None] <= ends)
        is_span &= (centre > low[w]) & (centre <= high[w])
        for i, j in zip(*np.nonzero(is_span)):
            start, end = int(encoded.word[starts[i]]), int(encoded.word[ends[j]]) + 1
            logit = float(lowest[i, j])
            entity = Entity(start, end, label, float(expit(logit)))
            found[data.text[w]].append((logit, entity))
    return [sorted(spans, key=lambda span: span[1][:3]) for spans in found]


def best_disjoint(spans: Sequence[tuple[float, Entity]]) -> list[tuple[float, Entity]]:
    """Return the spans without overlap that have the highest scores in total.

    Of equally good sets the one with earlier spans is taken.
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
