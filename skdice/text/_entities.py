"""Entities: spans of words or characters with a label."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .._inputs import list_some
from .._parameters import check_number

Threshold = float | Mapping[str, float]


class Entity(NamedTuple):
    """A labelled span of words, or of characters for raw text; ``end`` is exclusive.

    The score is in [0, 1] and not calibrated. Of a token tagger it is the mean probability of the
    tags of its words, so that long and short entities compare; of a query tagger the sigmoid of the
    lowest of its three logits.
    """

    start: int
    end: int
    label: str
    score: float


def check_threshold(threshold: Threshold | None, labels: Sequence[str]) -> dict[str, float]:
    """Return the lowest score of an entity to keep, for each label that has one.

    A threshold that is no number in [0, 1], or for another label, is a ValueError.
    """
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
