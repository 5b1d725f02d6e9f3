"""Entities: spans of words or characters with a label."""

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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
    spans: list[Any] = list(splitter(text))
    before = 0
    for span in spans:
        start, end = span
        if not before <= start < end <= len(text):
            raise ValueError(
                f"The splitter must give ascending (start, end) offsets, start < end, inside the "
                f"text; for row {row} (length {len(text)}) it gave {tuple(span)!r}."
            )
        before = end
    return [(int(start), int(end)) for start, end in spans]
