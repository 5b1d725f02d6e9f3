"""Rows and labels of text files with columns."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from .._parameters import not_allowed
from ._text_files import FilePath, count_columns, file_error, shorten, split_lines

# The line on which a row begins, and its columns; none for a blank line.
Record = tuple[int, list[str]]

_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_INT64 = np.iinfo(np.int64)


def split_records(
    path: FilePath, text: str, separator: str, *, is_quoted: bool, n_columns: int | None = None
) -> list[Record]:
    """Cut the text of a file into rows of one number of columns, that of the first row by default.

    A space only cuts once, after a label. Blank lines at the end are dropped. Fields may be quoted
    with ``"`` if `is_quoted`, as in CSV files. There is at least one row.
    """
    if is_quoted:
        records = _parse_quoted(path, text, separator)
    else:
        lines = split_lines(text)
        n_cuts = 1 if separator == " " else -1
        rows = [line.split(separator, n_cuts) if line.strip(" ") else [] for line in lines]
        records = list(enumerate(rows, start=1))
    n_lines = records[-1][0] if records else 1
    while records and not records[-1][1]:
        records.pop()
    if not records:
        raise file_error(path, n_lines, "the file ends without any row.")
    if n_columns is None:
        # A file that begins with a blank line is wrong there, not in its other lines.
        n_columns = max(len(records[0][1]), 1)
    for number, fields in records:
        if len(fields) != n_columns:
            problem = count_columns(fields, separator, str(n_columns))
            raise file_error(path, number, problem if fields else "got a blank line.")
    return records


def _parse_quoted(path: FilePath, text: str, separator: str) -> list[Record]:
    # Not pandas.read_csv: it fills short rows, counts no lines, takes text after closing quotes.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    records = []
    number = 1
    # The limit belongs to the whole process, so it is raised for this file and restored.
    limit = csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    try:
        for fields in reader:
            is_blank = len(fields) == 1 and not fields[0].strip(" ")
            records.append((number, [] if is_blank else fields))
            number = reader.line_num + 1
    except csv.Error as error:
        where = f"at the latest in line {reader.line_num} ({error})"
        problem = f"the row that begins here is badly quoted, {where}."
        raise file_error(path, number, problem) from None
    finally:
        csv.field_size_limit(limit)
    return records


def texts_and_labels(
    path: FilePath, owner: str, columns: Mapping[str, Any], records: Sequence[Record]
) -> tuple[list[Any], np.ndarray]:
    """Return the texts of each row and its label, which is in the last one of the columns.

    A column's name makes the first row a header. Labels are int64 if all are integers, else str.
    """
    places = _find_columns(path, owner, columns, records[0][1])
    has_header = any(isinstance(column, str) for column in columns.values())
    records = records[has_header:]
    if not records:
        raise file_error(path, 1, "the file ends after its header.")
    *_, label_place = places
    labels = [fields[label_place].strip(" ") for _, fields in records]
    for (number, _), label in zip(records, labels):
        if not label:
            raise file_error(path, number, f"the label (column {label_place}) is empty.")
    are_integers = [is_integer(label) for label in labels]
    if not has_header and len(labels) > 1 and not are_integers[0] and all(are_integers[1:]):
        problem = f"the label is {shorten(labels[0])}, while all others are integers"
        raise file_error(path, 1, f"{problem}. It seems to be a header: pass the columns by name.")
    texts = [tuple(fields[place] for place in places[:-1]) for _, fields in records]
    return texts, np.array(labels, dtype=np.int64 if all(are_integers) else object)


def _find_columns(
    path: FilePath, owner: str, columns: Mapping[str, Any], first: list[str]
) -> list[int]:
    """Return the places of columns, which are given by their names in the first row or numbers."""
    for name, column in columns.items():
        if not isinstance(column, str | Integral) or isinstance(column, bool):
            allowed = "a str or an int, as must be the other columns, or all None"
            raise not_allowed(owner, name, allowed, column)
    places = []
    for column in columns.values():
        is_name = isinstance(column, str)
        if not (first.count(column) == 1 if is_name else -len(first) <= column < len(first)):
            problem = f"there must be one column {column!r}. Got the columns"
            raise file_error(path, 1, f"{problem} {shorten(', '.join(first))}.")
        places.append(first.index(column) if is_name else column % len(first))
    if len(set(places)) < len(places):
        raise file_error(path, 1, f"{owner} needs different columns. Got {columns}.")
    return places


def is_integer(label: str) -> bool:
    """Whether a label is an int64 that is written exactly like it."""
    return bool(_INTEGER.fullmatch(label)) and _INT64.min <= int(label) <= _INT64.max
