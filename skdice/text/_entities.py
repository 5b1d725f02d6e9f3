"""Entities: spans of words or characters with a label."""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .._inputs import list_some
from .._parameters import check_number

Splitter = Callable[[str], Sequence[tuple[int, int]]]
Threshold = float | Mapping[str, float]


class Entity(NamedTuple):
    """A labelled span.

    Attributes
    ----------
    start, end : int
        First position and the one after the last: of words, or of characters for raw text.
    label : str
    score : float
        In [0, 1]; not calibrated. Of a token tagger the mean probability of the tags of its words,
        so that long and short entities compare; of a query tagger the sigmoid of the lowest of its
        three logits.
    """

    start: int
    end: int
    label: str
    score: float


def check_threshold(threshold: Threshold | None, labels: Sequence[str]) -> dict[str, float]:
    """Return the lowest score of an entity to keep, for each label that has one.

    Raises
    ------
    ValueError
        If it is no number in [0, 1], or for another label.
    """
    if threshold is None:
        return {}
    if not isinstance(threshold, Mapping):
        threshold = dict.fromkeys(labels, threshold)
    unknown = [label for label in threshold if label not in labels]
    if unknown:
        raise ValueError(
            f"threshold has {unknown[0]!r}, which is no label of this tagger; it has "
            f"{list_some(labels)}."
        )
    for label, value in threshold.items():
        check_number("predict_spans", f"threshold of {label}", value, low=0, high=1, closed="both")
    return dict(threshold)


def keep_above(entities: Sequence[Entity], lowest: Mapping[str, float]) -> list[Entity]:
    """Return the entities whose score is not below that of their label."""
    return [entity for entity in entities if entity.score >= lowest.get(entity.label, 0.0)]


def split_words(text: str) -> list[tuple[int, int]]:
    """Return where the words of a raw text lie: the default splitter of ``predict_entities``.

    White space parts words, and every punctuation mark or symbol (Unicode categories P and S) is a
    word of its own. Marks and invisible characters stay with their word.

    Examples
    --------
    >>> text = "Oslo, e.g."
    >>> [text[start:end] for start, end in split_words(text)]
    ['Oslo', ',', 'e', '.', 'g', '.']
    """
    spans: list[tuple[int, int]] = []
    start = None
    for i, char in enumerate(text):
        alone = unicodedata.category(char)[0] in "PS"
        if alone or char.isspace():
            if start is not None:
                spans.append((start, i))
                start = None
            if alone:
                spans.append((i, i + 1))
        elif start is None:
            start = i
    if start is not None:
        spans.append((start, len(text)))
    return spans


def checked_split(splitter: Splitter, text: str, row: int) -> list[tuple[int, int]]:
    """Split a text and make sure that the spans are ascending, not empty and inside the text."""
    spans = list(splitter(text))
    before = 0
    for span in spans:
        if not _is_offsets(span) or not before <= span[0] < span[1] <= len(text):
            raise ValueError(
                f"The splitter must give ascending (start, end) offsets, start < end, inside the "
                f"text; for row {row} (length {len(text)}) it gave {span!r}."
            )
        before = span[1]
    return [(int(start), int(end)) for start, end in spans]


def _is_offsets(span: object) -> bool:
    if isinstance(span, np.ndarray):
        span = span.tolist()
    if not isinstance(span, tuple | list) or len(span) != 2:
        return False
    return all(isinstance(place, int | np.integer) for place in span)
