"""What the formats of annotation tools share: offsets, and counts of what is left out."""

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from .._inputs import Span, check_rows, check_span, check_texts, check_y, describe, list_rows
from ._json import show
from ._text_files import FilePath, check_encodable, shorten


class Mention(NamedTuple):
    """A span as it stands in a file, not checked yet."""

    place: str
    start: Any
    end: Any
    label: Any
    # The text of the span according to the file, if the file has it.
    text: str | None = None


def read_mentions(text: str, mentions: Sequence[Mention], *, is_utf16: bool = False) -> list[Span]:
    """Return the spans of a text, sorted and checked; their offsets may be UTF-16 code units."""
    units = {unit: i for i, unit in enumerate(utf16_offsets(text))} if is_utf16 else None
    return sorted(_read_mention(text, mention, units) for mention in mentions)


def utf16_offsets(text: str) -> list[int]:
    """Return how many UTF-16 code units stand before each character, and before the end."""
    return [0, *accumulate(1 + (char > "\uffff") for char in text)]


def _read_mention(text: str, mention: Mention, units: Mapping[int, int] | None) -> Span:
    """Check a mention; `units` says which character begins at a UTF-16 code unit."""
    place, start, end, label, expected = mention
    if type(start) is not int or type(end) is not int:
        got = f"{show(start)} and {show(end)}"
        raise ValueError(f"{place}: start and end must be integers. Got {got} instead.")
    if type(label) is not str or not label:
        raise ValueError(
            f"{place}: the label must be a string that is not empty. Got {show(label)} instead."
        )
    if units is not None and not text.isascii():
        if start not in units or end not in units:
            raise ValueError(
                f"{place}: offsets in UTF-16 code units must be at the edge of a character and in "
                f"the text. Got start {mention.start} and end {mention.end}, label {label!r}. The "
                "file may count characters instead."
            )
        start, end = units[start], units[end]
    if not 0 <= start < end <= len(text):
        raise ValueError(
            f"{place}: a span must have 0 <= start < end <= {len(text)}, the length of its text. "
            f"Got start {start} and end {end}, label {label!r}."
        )
    # Tools write a line end as a space or as a backslash and an n, and browsers merge white space.
    if expected not in (None, text[start:end]) and _squeeze(expected) != _squeeze(text[start:end]):
        raise ValueError(
            f"{place}: the text from {start} to {end} is {shorten(text[start:end])}, but the file "
            f"says {shorten(expected)}."
        )
    # Labels recur: one object for each saves memory.
    return start, end, sys.intern(label)


def _squeeze(text: str | None) -> str:
    """Leave out white space, and the backslash and n that stand for a line end."""
    return "".join((text or "").replace("\\n", "\n").split())


def warn_of_left_out(path: FilePath, left_out: Mapping[str, list[int]], n_texts: int) -> None:
    """Warn, in the name of the caller's caller, of what was left out, in which rows of a file.

    It is an error if no texts are left.
    """
    shown = "; ".join(
        f"{kind}: {len(rows)} ({list_rows(list(dict.fromkeys(rows)))})"
        for kind, rows in left_out.items()
    )
    if not n_texts:
        raise ValueError(f"{os.fspath(path)}: the file has no annotated text. {shown}")
    if shown:
        warnings.warn(f"{os.fspath(path)}: left out {shown}.", stacklevel=3)


def check_annotated(
    X: Any, y: Any, fields: Any = None
) -> tuple[list[str], list[list[Any]], list[dict[str, Any]]]:
    """Return texts to write, their spans, with a score if they have one, and their other fields."""
    texts = check_texts(X)
    for i, text in enumerate(texts):
        check_encodable(text, f"row {i} of X")
    rows = (
        [()] * len(texts) if y is None else check_y(y, len(texts), "lists of (start, end, label)")
    )
    spans = [_check_spans(row, text, i) for i, (text, row) in enumerate(zip(texts, rows))]
    if fields is None:
        return texts, spans, [{} for _ in texts]
    more = check_y(fields, len(texts), "dicts", name="fields")
    for i, row in enumerate(more):
        if not isinstance(row, Mapping):
            raise ValueError(f"Each row of fields must be a dict; row {i} is {describe(row)}.")
    return texts, spans, [dict(row) for row in more]


def _check_spans(spans: Any, text: str, i: int) -> list[Any]:
    checked: list[Any] = []
    for span in check_rows(spans, f"Row {i} of y", "(start, end, label)"):
        start, end, label = check_span(span, "y", f"row {i}", len(text), "characters")
        check_encodable(label, f"the label of a span in row {i} of y")
        scores = [span.get("score")] if isinstance(span, Mapping) else span[3:]
        checked.append((start, end, label, *(float(one) for one in scores if one is not None)))
    return sorted(checked)
