"""Rows and labels of text files with columns."""

import csv
import io
import os
import re
from collections.abc import Sequence

import numpy as np

from ._files import count_columns, file_error, shorten

# The line on which a row begins, and its columns; none for a blank line.
Record = tuple[int, list[str]]

_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_LONE_CR = re.compile(r"\r(?!\n|\Z)")
_INT64 = np.iinfo(np.int64)


def split_records(
    path: str | os.PathLike[str],
    text: str,
    separator: str,
    *,
    is_quoted: bool,
    n_columns: int | None = None,
) -> list[Record]:
    """Cut the text of a file into rows of one number of columns, that of the first row by default.

    A space only cuts once, after a label. Blank lines at the end are dropped. Fields may be quoted
    with ``"`` if `is_quoted`, as in CSV files. There is at least one row.
    """
    records = _parse_quoted(path, text, separator) if is_quoted else _parse_lines(text, separator)
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
            problem = "got a blank line."
            if fields:
                line = separator.join(fields)
                problem = count_columns(fields, line, separator, str(n_columns))
            raise file_error(path, number, problem)
    return records


def _parse_lines(text: str, separator: str) -> list[Record]:
    n_cuts = 1 if separator == " " else -1
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    rows = [line.split(separator, n_cuts) if line.strip(" ") else [] for line in lines]
    return list(enumerate(rows, start=1))


def _parse_quoted(path: str | os.PathLike[str], text: str, separator: str) -> list[Record]:
    # Not pandas.read_csv: it fills short rows, has no numbers of lines, takes text after a closing
    # quote, and either ends rows at a lone CR or leaves the CR of "\r\n" in the last column.
    # To the csv module a lone CR ends a row, but only there: it stands aside while that reads.
    mark = next(chr(code) for code in range(0xE000, 0xF900) if chr(code) not in text)
    lines = io.StringIO(_LONE_CR.sub(mark, text), newline="\n")
    reader = csv.reader(lines, delimiter=separator, strict=True)
    records = []
    number = 1
    # The limit is one for the whole process: a text may be longer, others' limit must stay.
    limit = csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    try:
        for fields in reader:
            fields = [field.replace(mark, "\r") for field in fields]
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


def make_labels(
    path: str | os.PathLike[str], records: Sequence[Record], column: int, *, has_header: bool
) -> np.ndarray:
    """Return the labels in a column: of dtype int64 if all are integers, else of type str.

    Without rows after a header it is an error, as is a first label that seems to be one.
    """
    records = records[has_header:]
    if not records:
        raise file_error(path, 1, "the file ends after its header.")
    labels = [fields[column].strip(" ") for _, fields in records]
    for (number, _), label in zip(records, labels):
        if not label:
            raise file_error(path, number, f"the label (column {column}) is empty.")
    are_integers = [is_integer(label) for label in labels]
    if all(are_integers):
        return np.array(labels, dtype=np.int64)
    if not has_header and len(labels) > 1 and not are_integers[0] and all(are_integers[1:]):
        problem = (
            f"the label is {shorten(labels[0])}, while all others are integers. The line seems to "
            "be a header, but the columns are to be read without one."
        )
        raise file_error(path, 1, problem)
    return np.array(labels, dtype=object)


def is_integer(label: str) -> bool:
    """Whether int64 can hold a label such that it is written the same again."""
    return bool(_INTEGER.fullmatch(label)) and _INT64.min <= int(label) <= _INT64.max
