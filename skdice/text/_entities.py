"""Entities: spans of words or characters with a label."""

import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

Splitter = Callable[[str], Sequence[tuple[int, int]]]


class Entity(NamedTuple):
    """A labelled span.

    Attributes
    ----------
    start, end : int
        First position and the one after the last: of words, or of characters for raw text.
    label : str
    score : float
        Mean probability of the tags of its words, in [0, 1]; not calibrated.
    """

    start: int
    end: int
    label: str
    score: float


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
