"""Spans of raw texts, as annotation tools have them."""

import sys
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from .._inputs import Span, check_rows, check_span, check_texts
from ._files import shorten

# The last character that is one UTF-16 code unit.
_LAST_OF_ONE_UNIT = "\uffff"


class Mention(NamedTuple):
    """A span as it stands in a file, not checked yet."""

    place: str
    start: Any
    end: Any
    label: Any
    # What the file says stands there, if it does.
    text: str | None = None


def find_spans(text: str, mentions: Sequence[Mention], *, is_utf16: bool = False) -> list[Span]:
    """Return the spans of a text, sorted, after all checks.

    Parameters
    ----------
    text : str
    mentions : sequence of Mention
    is_utf16 : bool, default=False
        Whether offsets count UTF-16 code units. If not, they count characters; but they are taken
        as code units where only so all spans have the text that the file says, because older
        versions of some tools wrote those.
    """
    _check_types(mentions)
    problem = _find_problem(text, mentions)
    if has_astral(text) and (is_utf16 or (problem and all(m.text is not None for m in mentions))):
        converted, problem_of_units = _from_utf16(text, mentions)
        problem_of_units = problem_of_units or _find_problem(text, converted)
        if is_utf16 or not problem_of_units:
            mentions, problem = converted, problem_of_units
    if problem:
        raise ValueError(problem)
    # Labels recur: one object for each saves memory.
    return sorted((m.start, m.end, sys.intern(m.label)) for m in mentions)


def has_astral(text: str) -> bool:
    """Whether some character takes two UTF-16 code units."""
    return not text.isascii() and max(text) > _LAST_OF_ONE_UNIT


def count_utf16(text: str) -> list[int]:
    """Return how many UTF-16 code units stand before each character, and in the whole text."""
    return [0, *accumulate(1 + (char > _LAST_OF_ONE_UNIT) for char in text)]


def check_texts_and_spans(X: Any, y: Any) -> tuple[list[str], list[list[Any]]]:
    """Return texts and spans that can be written; spans keep their score if they have one."""
    texts = check_encodable_texts(X)
    rows = check_rows(y, "y", "lists of (start, end, label)")
    check_same_length(texts, rows)
    spans = []
    for i, (text, row) in enumerate(zip(texts, rows)):
        checked: list[Any] = []
        for span in check_rows(row, f"Row {i} of y", "(start, end, label)"):
            start, end, label = check_span(span, "y", f"row {i}")
            check_encodable(label, f"the label of a span in row {i} of y")
            if end > len(text):
                raise ValueError(
                    f"A span must lie in its text; row {i} has {len(text)} characters and the span "
                    f"{(start, end, label)}."
                )
            checked.append((start, end, label, *map(float, span[3:])))
        spans.append(sorted(checked))
    return texts, spans


def check_encodable_texts(X: Any) -> list[str]:
    """Return raw texts that can be written."""
    texts = check_texts(X)
    for i, text in enumerate(texts):
        check_encodable(text, f"row {i} of X")
    return texts


def check_encodable(text: str, where: str) -> None:
    """Refuse what UTF-8 cannot hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"Texts must be such that UTF-8 can hold them; {where} has half of a surrogate pair, "
            f"{text[error.start]!r}, at {error.start}."
        ) from error


def check_same_length(X: Sequence[Any], y: Sequence[Any]) -> None:
    """Refuse X and y of different lengths."""
    if len(X) != len(y):
        raise ValueError(
            f"X and y must have the same number of rows; got {len(X)} and {len(y)} rows."
        )


def _from_utf16(text: str, mentions: Sequence[Mention]) -> tuple[list[Mention], str]:
    """Return mentions with offsets in characters, and what is wrong if there is no such offset."""
    characters = {unit: i for i, unit in enumerate(count_utf16(text))}
    converted = []
    for mention in mentions:
        start, end = characters.get(mention.start), characters.get(mention.end)
        if start is None or end is None:
            return [], (
                f"{mention.place}: offsets in UTF-16 code units must be at the edge of a character "
                f"and at most {max(characters)}, the length of "
                f"the text. Got start {mention.start} and end {mention.end}, label "
                f"{mention.label!r}. The file may count characters instead."
            )
        converted.append(mention._replace(start=start, end=end))
    return converted, ""


def _check_types(mentions: Sequence[Mention]) -> None:
    for place, start, end, label, _ in mentions:
        if type(start) is not int or type(end) is not int:
            raise ValueError(
                f"{place}: start and end must be integers. Got {start!r} and {end!r} instead."
            )
        if type(label) is not str or not label:
            raise ValueError(
                f"{place}: the label must be a string that is not empty. Got {label!r} instead."
            )


def _find_problem(text: str, mentions: Sequence[Mention]) -> str:
    """Say what is wrong with the first bad mention; nothing if all are good."""
    for place, start, end, label, expected in mentions:
        if not 0 <= start < end <= len(text):
            return (
                f"{place}: a span must have 0 <= start < end <= {len(text)}, the length of its "
                f"text. Got start {start} and end {end}, label {label!r}."
            )
        if expected is not None and not _is_same(text[start:end], expected):
            return (
                f"{place}: the text from {start} to {end} is {shorten(text[start:end])}, but the "
                f"file says {shorten(expected)}."
            )
    return ""


def _is_same(text: str, expected: str) -> bool:
    # Tools write a line end as a space or as a backslash and an n, and browsers merge white space.
    return text == expected or _squeeze(text) == _squeeze(expected)


def _squeeze(text: str) -> str:
    return "".join(text.replace("\\n", "\n").split())
