"""Reader of texts with one label each."""

import os
from collections import Counter
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from .._parameters import not_allowed
from ._tables import Record, is_integer, make_labels, split_records
from ._text_files import FilePath, file_error, first_line, read_text, suffix_of

_KNOWN_NAMES = {
    "text": ("text", "sentence", "tweet", "message", "review"),
    "label": ("label", "class", "category", "target"),
}


def read_labeled_text(
    path: FilePath,
    *,
    text: str | int | None = None,
    label: str | int | None = None,
    separator: str | None = None,
    encoding: str = "utf-8",
) -> tuple[list[str], np.ndarray]:
    r"""Read texts and their labels from a TSV or CSV file, or from lines ``<label> <text>``.

    Texts are kept as they are, and may be empty. Rows end in LF or CRLF, or all of them in CR.
    Blank lines are skipped at the very end of the file only.

    Parameters
    ----------
    path : str or path-like
        The file, plain or compressed (``.gz``, ``.xz``).
    text, label : str, int or None, default=None
        The columns of the text and of the label: names in the header of the file, or numbers, which
        alone say that the file has no header. Negative numbers count from the last column.

        None guesses. The first line is a header if it has a known name: ``text``, ``sentence``,
        ``tweet``, ``message`` or ``review`` for the text, ``label``, ``class``, ``category`` or
        ``target`` for the label, in lower or upper case. Then there must be just one of each. Any
        other file must have two columns, first the label, then the text, or the other way round if
        the first column has spaces, and the second one has none and repeats itself. It is refused
        if a label has a space in it, or if the first line seems to be a header: its label is the
        only one that occurs once. If only one of both parameters is None, the other column of two
        is also known.
    separator : str of length 1, default=None
        What stands between two columns. None means a comma for ``.csv`` files (also compressed),
        else a TAB if the first line has one, else a space. A space cuts each line only once, after
        the label. Fields may be quoted with ``"``, and then have line breaks and doubled quotes in
        them, unless the separator is a TAB or a space.
    encoding : str, default="utf-8"
        Encoding of the file. A byte order mark at its start is dropped.

    Returns
    -------
    X : list of str
    y : ndarray of shape (n_texts,)
        The labels: of dtype int64 if all are integers, else objects of type str. Spaces around a
        label are dropped.

    Raises
    ------
    ValueError
        If a row has another number of columns than the first one or an empty label, the columns
        cannot be found, or the file has no rows. Errors name the file and the line.
    """
    columns = {"text": text, "label": label}
    _check_parameters(columns, separator)
    content = read_text(path, encoding=encoding)
    if separator is None:
        other = "\t" if "\t" in first_line(content) else " "
        separator = "," if suffix_of(path) == ".csv" else other
    records = split_records(path, content, separator, is_quoted=separator not in "\t ")
    first = records[0][1]
    is_guess = text is None and label is None
    has_header = isinstance(text, str) or isinstance(label, str)
    has_header |= is_guess and any(find_known(name, first) for name in columns)
    try:
        text_column, label_column = _find_columns(first, columns, has_header)
    except ValueError as error:
        raise file_error(path, 1, f"{error} {_show(first)}") from None
    if separator == " " and label_column != 0:
        raise ValueError(
            f"{os.fspath(path)}: lines are cut at their first space only, so that the label must "
            f"come first. Got {text=} and {label=}; pass another separator."
        )
    if is_guess and not has_header:
        left, right = ([fields[c].strip(" ") for _, fields in records] for c in (0, 1))
        repeats = len(set(right)) < len(right)
        if any(" " in text for text in left) and not any(" " in x for x in right) and repeats:
            text_column, label_column = 0, 1
        _check_labels(path, records, label_column, separator)
    X = [fields[text_column] for _, fields in records[has_header:]]
    return X, make_labels(path, records, label_column, has_header=has_header)


def _check_parameters(columns: dict[str, Any], separator: Any) -> None:
    owner = "read_labeled_text"
    for name, column in columns.items():
        if not isinstance(column, str | Integral | None) or isinstance(column, bool):
            raise not_allowed(owner, name, "a str, an int or None", column)
    is_character = isinstance(separator, str) and len(separator) == 1 and separator not in '"\r\n'
    if separator is not None and not is_character:
        allowed = "one character, no quote or line end, or None"
        raise not_allowed(owner, "separator", allowed, separator)


def find_known(name: str, header: list[str]) -> list[int]:
    """Return the columns that have a known name of the text or the label."""
    return [i for i, field in enumerate(header) if field.lower() in _KNOWN_NAMES[name]]


def _find_columns(first: list[str], columns: dict[str, Any], has_header: bool) -> tuple[int, int]:
    """Return the columns of the text and of the label, given or told from the first line."""
    found = {
        name: _find_column(first, name, column)
        for name, column in columns.items()
        if column is not None
    }
    if len(first) == 2 and not found and not has_header:
        return 1, 0
    for name, other in (("text", "label"), ("label", "text")):
        known = find_known(name, first) if has_header else []
        if len(first) == 2 and columns[name] is None and columns[other] is not None:
            found[name] = 1 - found[other]
        elif name not in found and len(known) == 1:
            found[name] = known[0]
    missing = " and of the ".join(name for name in columns if name not in found)
    if missing:
        raise ValueError(f"cannot tell the column of the {missing}.")
    if found["text"] == found["label"]:
        text, label = columns.values()
        raise ValueError(
            f"the text and the label must be in different columns. Got {text=} and {label=}."
        )
    return found["text"], found["label"]


def _find_column(first: list[str], name: str, column: str | int) -> int:
    if isinstance(column, str):
        if first.count(column) != 1:
            raise ValueError(f"the header must have one column {column!r} ({name}={column!r}).")
        return first.index(column)
    if not -len(first) <= column < len(first):
        raise ValueError(f"there is no column {column} ({name}={column}).")
    return int(column) % len(first)


def _check_labels(path: FilePath, records: Sequence[Record], column: int, separator: str) -> None:
    """Refuse a guess where the first line, or the column of the labels, looks otherwise."""
    counts = Counter(fields[column] for _, fields in records)
    first = records[0][1]
    # A column name occurs once, and where labels occur more often nothing else should.
    is_only_single = [label for label, n in counts.items() if n == 1] == [first[column]]
    if is_only_single and len(counts) > 1 and not is_integer(first[column]):
        problem = f"the label {first[column]!r} occurs in this line only, as if it were a header"
        raise file_error(path, 1, f"{problem}. {_show(first)}")
    for number, fields in records:
        if " " in fields[column].strip(" "):
            problem = (
                "the column of the labels has several words, as if it were the text, not the label"
            )
            raise file_error(path, number, f"{problem}. {_show(first)}")
    if separator == " " and len(counts) > max(2, min(len(records) // 2, 100)):
        one, other, *_ = counts
        raise ValueError(
            f"{os.fspath(path)}: the texts seem to have no labels. The first words of "
            f"{len(records):,} lines are {len(counts):,} different ones, such as {one!r} and "
            f"{other!r}. Expected label, TAB and text in every line."
        )


def _show(first: list[str]) -> str:
    """Return the columns of the first line, and how to say which ones are to be read."""
    shown = ", ".join(repr(field[:30]) for field in first[:20])
    return (
        f"The columns of line 1 are {shown}. Say which ones to read: "
        f"read_labeled_text(path, text={len(first) - 1}, label=0) by numbers if the file has no "
        f"header, else by names, such as text={first[-1][:30]!r}, label={first[0][:30]!r}."
    )
