"""From logits to tags, probabilities and entities; which tag may follow which, and its letters."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from .._inputs import list_some
from .._parameters import check_number
from ..metrics import SPELLINGS, find_entities, parse_tag
from ._encoding import span_bounds
from ._queries import EncodedQueries

Threshold = float | Mapping[str, float]
# Biases to try, as shares of the largest one, and the least that this one is.
_STEPS = np.arange(-40, 41) / 40
_SHORTEST_REACH = 4.0
# Sentences are decoded together as long as their tables have fewer numbers than this.
_VITERBI_CELLS = 1_000_000


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
    threshold = dict(by_label(threshold, labels))
    for label, value in threshold.items():
        if label not in labels:
            raise ValueError(
                f"threshold has {label!r}, which is no label of this tagger; it has "
                f"{list_some(labels)}."
            )
        check_number("predict_spans", f"threshold of {label}", value, low=0, high=1, closed="both")
    return threshold


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
            # In IOB1 alone no sentence starts with a B.
            starts = [True] if self.transitions is None else self.transitions[0]
            parting = {tag for tag, may in zip(self.classes, starts) if tag[0] == "B" and not may}
            for row, entities in zip(tags, self.entities(logits, offsets)):
                inside = {i for entity in entities for i in range(entity.start, entity.end)}
                row[:] = [tag if i in inside else "O" for i, tag in enumerate(row)]
                # The B of an IOB1 entity whose neighbour is left out is an I.
                row[:] = [
                    f"I{tag[1:]}" if tag in parting and before[2:] != tag[2:] else tag
                    for before, tag in pairwise(["O", *row])
                ]
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


def spelled_roles(tags: Iterable[str]) -> dict[str, str]:
    """Return the letters that chunk tags have in place of I, E and S: in BMES ``{"I": "M"}``.

    With them :func:`write_tags` writes BMES and BILOU, which :func:`infer_scheme` calls IOBES.
    """
    letters = {tag[0] for tag in tags}
    roles: dict[str, str] = {}
    for scheme in ("BMES", "BILOU"):
        other = {role: a for role, a in zip("BIES", SPELLINGS[scheme]) if role != a}
        if letters & set(other.values()):
            roles |= other
    return roles


def write_tags(
    spans: Iterable[Any], n_words: int, scheme: str, roles: Mapping[str, str] | None = None
) -> list[str]:
    """Return the tags of a sentence of ``n_words``, given its disjoint entities in order.

    ``spans`` are (start, end, label), and may have a score. ``roles`` has the letters to write in
    place of those of the scheme, as :func:`spelled_roles` finds them.
    """
    letters = dict(zip("BIES", SPELLINGS[scheme]))
    has_ends = "E" in letters
    letters.update(roles or {})
    tags = ["O"] * n_words
    for start, end, label, *_ in spans:
        names = ["I"] * (end - start)
        if has_ends:
            names[0], names[-1] = ("B", "E") if end - start > 1 else ("S", "S")
        elif scheme == "IOB2" or tags[start - 1][2:] == label:
            names[0] = "B"  # IOB1 writes B only to part two entities of one label.
        tags[start:end] = [f"{letters[name]}-{label}" for name in names]
    return tags


def allowed_transitions(classes: Sequence[str], scheme: str) -> tuple[np.ndarray, ...]:
    """Return which chunk tags may start a sentence, follow one another, and end it, as bools.

    The first and the last array have the shape (n_classes,), the other one (n_classes, n_classes):
    ``follow[a, b]`` says that class b may come right after class a.
    """
    # The end of a sentence allows what a following O allows, the start what a preceding one does.
    role, label = np.array([parse_tag(tag) for tag in (*classes, "O")], dtype=object).T
    before, same_label = role[:, None], label[:, None] == label
    if scheme in ("IOB1", "IOB2"):
        # In IOB1 a B only parts two chunks of one label; in IOB2 an I only goes on with one.
        bound = "B" if scheme == "IOB1" else "I"
        follow = (role != bound) | (same_label & (before != "O"))
    else:
        goes_on = same_label & np.isin(role, ["I", "E"])
        follow = np.where(np.isin(before, ["B", "I"]), goes_on, np.isin(role, ["O", "B", "S"]))
    return follow[-1, :-1], follow[:-1, :-1], follow[:-1, -1]


def best_sequences(
    scores: np.ndarray, offsets: np.ndarray, transitions: tuple[np.ndarray, ...] | None
) -> np.ndarray:
    """Return the classes with the highest total score among the well-formed sequences.

    ``scores`` are logits or log-probabilities of shape (n_words, n_classes), ``transitions`` come
    from :func:`allowed_transitions`. Sentence i has the words ``offsets[i]:offsets[i + 1]``; one
    that no sequence of these classes can tag gets the best class of each word, as all do without
    transitions.
    """
    best: np.ndarray = scores.argmax(1)
    if transitions is None:
        return best
    start, follow, end = transitions
    # Where the best class of every word makes a well-formed sequence, that is the best sequence.
    lengths = np.diff(offsets)
    first, last = offsets[:-1][lengths > 0], offsets[1:][lengths > 0] - 1
    is_bad = ~follow[np.roll(best, 1), best]
    is_bad[first] = ~start[best[first]]
    is_bad[last] |= ~end[best[last]]
    rows = np.unique(np.repeat(np.arange(len(lengths)), lengths)[is_bad])
    rows = rows[np.argsort(-lengths[rows], kind="stable")]
    while len(rows):
        # The first one is the longest.
        cells = (lengths[rows[0]] + len(start)) * len(start)
        block, rows = np.split(rows, [max(1, _VITERBI_CELLS // cells)])
        _viterbi(scores, offsets, block, transitions, best)
    return best


def _viterbi(
    scores: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
    transitions: tuple[np.ndarray, ...],
    best: np.ndarray,
) -> None:
    """Write the best sequences of some sentences, the longest first, into ``best``."""
    start, follow, end = (np.where(part, 0.0, -np.inf) for part in transitions)
    first, lengths = offsets[rows], np.diff(offsets)[rows]
    total = scores[first] + start
    came_from = np.zeros((lengths[0], *total.shape), dtype=np.int32)
    for t in range(1, lengths[0]):
        n = int((lengths > t).sum())
        paths = total[:n, :, None] + follow
        came_from[t, :n] = paths.argmax(1)
        total[:n] = paths.max(1) + scores[first[:n] + t]
    total += end
    for i, length in enumerate(lengths):
        tag = int(total[i].argmax())
        if total[i, tag] == -np.inf:
            continue
        for t in range(length - 1, -1, -1):
            best[first[i] + t] = tag
            tag = came_from[t, i, tag]
