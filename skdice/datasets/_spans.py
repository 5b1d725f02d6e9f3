"""What the formats of annotation tools share: offsets, and counts of what is left out."""

import json
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from .._inputs import Span, check_rows, check_span, check_texts, check_y, describe, list_rows
from ._json import show
from ._text_files import FilePath, check_encodable, shorten


def utf16_offsets(text: str) -> list[int]:
    """Return how many UTF-16 code units stand before each character, and before the end."""
    return [0, *accumulate(1 + (char > "\uffff") for char in text)]


def check_mention(
    place: str, text: str, span: Sequence[Any], units: Mapping[int, int] | None, shown: str | None
) -> Span:
    """Return start, end and label of a span in a file; it must lie in its text.

    ``units`` says which character begins at a UTF-16 code unit, if offsets count these. ``shown``
    is the text of the span, if the file has it.
    """
    start, end, label = span
    problem = ""
    if not type(start) is type(end) is int or type(label) is not str or not label:
        problem = "start and end must be integers, the label must be a string that is not empty"
    elif units is not None and not units.keys() >= {start, end}:
        edge = "must be at the edge of a character and in the text"
        problem = f"offsets in UTF-16 code units {edge}; the file may count characters instead"
    else:
        start, end = (start, end) if units is None else (units[start], units[end])
        inside = text[start:end]
        if not 0 <= start < end <= len(text):
            problem = f"a span must have 0 <= start < end <= {len(text)}, the length of its text"
        elif shown is not None and _squeeze(shown) != _squeeze(inside):
            problem = f"the text there is {shorten(inside)}, but the file says {shorten(shown)}"
    if problem:
        got = f"start {show(span[0])} and end {show(span[1])}, label {show(label)}"
        raise ValueError(f"{place}: {problem}. Got {got}.")
    # Labels recur: one object for each saves memory.
    return start, end, sys.intern(label)


def _squeeze(text: str) -> str:
    """Leave out white space, which browsers merge, and line ends written as a backslash and n."""
    return "".join(text.replace("\\n", "\n").split())


def warn_of_left_out(path: FilePath, left_out: Mapping[str, list[int]], n_texts: int) -> None:
    """Warn the caller's caller of what was left out of a file; without any text it is an error."""
    rows_of = {kind: list_rows(sorted({*rows})) for kind, rows in left_out.items()}
    shown = "; ".join(f"{kind}: {len(left_out[kind])} ({rows})" for kind, rows in rows_of.items())
    if not n_texts:
        raise ValueError(f"{os.fspath(path)}: the file has no annotated text. {shown}")
    if shown:
        warnings.warn(f"{os.fspath(path)}: left out {shown}.", stacklevel=3)


def check_annotated(
    X: Any, y: Any, fields: Any = None, reserved: Sequence[str] = ()
) -> tuple[list[str], list[list[Any]], list[dict[str, Any]]]:
    """Return texts to write, their spans, with a score if they have one, and their other fields."""
    texts = check_texts(X)
    for i, text in enumerate(texts):
        check_encodable(text, f"row {i} of X")
    n = len(texts)
    rows = [()] * n if y is None else check_y(y, n, "lists of (start, end, label)")
    spans = [_check_spans(row, text, i) for i, (text, row) in enumerate(zip(texts, rows))]
    more = [{}] * n if fields is None else check_y(fields, n, "dicts", name="fields")
    for i, row in enumerate(more):
        if not isinstance(row, Mapping):
            raise ValueError(f"Each row of fields must be a dict; row {i} is {describe(row)}.")
        if taken := [name for name in reserved if name in row]:
            raise ValueError(f"Row {i} of fields has {taken[0]!r}, which the tool uses itself.")
        try:
            json.dumps(dict(row), allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError) as error:
            raise ValueError(f"Row {i} of fields cannot be JSON: {error}.") from error
    return texts, spans, [dict(row) for row in more]


def _check_spans(spans: Any, text: str, i: int) -> list[Any]:
    checked: list[Any] = []
    for span in check_rows(spans, f"Row {i} of y", "(start, end, label)"):
        start, end, label = check_span(span, "y", f"row {i}", len(text), "characters")
        check_encodable(label, f"the label of a span in row {i} of y")
        scores = [span.get("score")] if isinstance(span, Mapping) else span[3:]
        checked.append((start, end, label, *(float(one) for one in scores if one is not None)))
    return sorted(checked)
