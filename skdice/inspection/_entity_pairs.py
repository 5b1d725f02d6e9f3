"""Which predicted entity answers which gold one, and what is wrong with it."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..metrics import EntitySpan

ENTITY_KINDS = (
    "correct",
    "wrong label",
    "wrong border",
    "wrong border and label",
    "missed",
    "spurious",
)
TAG_KINDS = ("correct", "wrong")


class EntityPair(NamedTuple):
    """A gold entity with the predicted one that answers it; one of them may be missing.

    Attributes
    ----------
    gold, predicted : EntitySpan or None
    kind : str
        One of `ENTITY_KINDS` or `TAG_KINDS`.
    """

    gold: EntitySpan | None
    predicted: EntitySpan | None
    kind: str

    @property
    def start(self) -> int:
        """First word of either entity."""
        return min(span.start for span in self.spans)

    @property
    def end(self) -> int:
        """One past the last word of either entity."""
        return max(span.end for span in self.spans)

    @property
    def spans(self) -> list[EntitySpan]:
        """The one or two entities of the pair."""
        return [span for span in (self.gold, self.predicted) if span is not None]

    @property
    def label(self) -> str:
        """Label under which the pair is counted: the gold one, of a spurious entity its own."""
        return self.spans[0].label


def pair_entities(gold: Sequence[EntitySpan], predicted: Sequence[EntitySpan]) -> list[EntityPair]:
    """Pair the entities of a sentence so that the pairs have the most words in common.

    Entities that are the same are paired first, then those of the same words; only nested entities
    could be paired otherwise. Among pairings with equally many words in common, more equal labels
    are better, then more pairs, then earlier entities. Entities without a word in common are never
    paired.

    Parameters
    ----------
    gold, predicted : sequence of EntitySpan
        Each span once.

    Returns
    -------
    list of EntityPair
        Every entity is in exactly one pair; in the order of the words.
    """
    pairs = []
    for key in (lambda span: span, lambda span: span[:2]):
        same, gold, predicted = _pair_same(gold, predicted, key)
        pairs += same
    rows, columns = _most_overlap(gold, predicted)
    pairs += [(gold[i], predicted[j]) for i, j in zip(rows, columns)]
    missed = [span for i, span in enumerate(gold) if i not in rows]
    spurious = [span for j, span in enumerate(predicted) if j not in columns]
    answered = [EntityPair(*pair, _compare(*pair)) for pair in pairs]
    answered += [EntityPair(span, None, "missed") for span in missed]
    answered += [EntityPair(None, span, "spurious") for span in spurious]
    return sorted(answered, key=lambda pair: (pair.start, pair.gold is None))


def pair_tags(true_tags: Sequence[str], pred_tags: Sequence[str]) -> list[EntityPair]:
    """Pair the gold and the predicted tag of each word of a sentence.

    Parameters
    ----------
    true_tags, pred_tags : sequence of n_words str

    Returns
    -------
    list of n_words EntityPair
    """
    return list(_each_word(true_tags, pred_tags))


def _each_word(true_tags: Sequence[str], pred_tags: Sequence[str]) -> Iterator[EntityPair]:
    for i, (true_tag, pred_tag) in enumerate(zip(true_tags, pred_tags)):
        kind = "correct" if true_tag == pred_tag else "wrong"
        yield EntityPair(EntitySpan(i, i + 1, true_tag), EntitySpan(i, i + 1, pred_tag), kind)


def _compare(gold: EntitySpan, predicted: EntitySpan) -> str:
    if gold == predicted:
        return "correct"
    if gold[:2] == predicted[:2]:
        return "wrong label"
    return "wrong border" if gold.label == predicted.label else "wrong border and label"


def _pair_same(
    gold: Sequence[EntitySpan],
    predicted: Sequence[EntitySpan],
    key: Callable[[EntitySpan], tuple[object, ...]],
) -> tuple[list[tuple[EntitySpan, EntitySpan]], list[EntitySpan], list[EntitySpan]]:
    """Pair the entities with the same key; return the pairs and what is left of either side."""
    pairs, left, rest = [], [], list(predicted)
    for span in gold:
        same = next((other for other in rest if key(other) == key(span)), None)
        if same is None:
            left.append(span)
        else:
            rest.remove(same)
            pairs.append((span, same))
    return pairs, left, rest


def _most_overlap(
    gold: Sequence[EntitySpan], predicted: Sequence[EntitySpan]
) -> tuple[list[int], list[int]]:
    """Return the indices of the gold and of the predicted entities that are paired."""
    if not gold or not predicted:
        return [], []
    overlap = np.array([[_n_common(g, p) for p in predicted] for g in gold])
    same_label = np.array([[g.label == p.label for p in predicted] for g in gold])
    # A word in common outweighs all labels, these the number of pairs, and that all positions.
    most_pairs = min(overlap.shape)
    positions = np.add.outer(np.arange(len(gold)), np.arange(len(predicted)))
    score = (overlap * (most_pairs + 1) + same_label) * (most_pairs + 1) + 1
    score = score * (most_pairs * sum(overlap.shape) + 1) - positions
    rows, columns = linear_sum_assignment(np.where(overlap > 0, score, 0), maximize=True)
    is_pair = overlap[rows, columns] > 0
    return rows[is_pair].tolist(), columns[is_pair].tolist()


def _n_common(first: EntitySpan, second: EntitySpan) -> int:
    return max(0, min(first.end, second.end) - max(first.start, second.start))
