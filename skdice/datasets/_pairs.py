"""Reader of pairs of texts: paraphrases, duplicate questions, records of the same thing."""

import csv
from typing import Any

import numpy as np

from .._parameters import check_option, not_allowed
from ._tables import is_integer, split_records, texts_and_labels
from ._text_files import LINE_END, FilePath, file_error, read_text, shorten, suffix_of

# Where both texts and the label stand: names in a header, or positions without one.
_LAYOUTS: dict[str, tuple[str | int, str | int, str | int]] = {
    "mrpc": ("#1 String", "#2 String", "Quality"),
    "bimpm": (1, 2, 0),
    "quora": ("question1", "question2", "is_duplicate"),
    "glue": ("sentence1", "sentence2", "label"),
    "er": (0, 1, 2),
}
_N_COLUMNS = {"bimpm": 4, "er": 3}


def read_pairs(
    path: FilePath,
    *,
    first: str | int | None = None,
    second: str | int | None = None,
    label: str | int | None = None,
    layout: str = "auto",
    encoding: str = "utf-8",
) -> tuple[list[tuple[str, str]], np.ndarray]:
    r"""Read pairs of texts and their labels from a TSV file, or a CSV file (``.csv``).

    Texts are kept as they are, and may be empty. Rows end in LF, CRLF or CR.
    Blank lines are skipped at the very end of the file only.

    Parameters
    ----------
    path : str or path-like
        The file, plain or compressed (``.gz``, ``.xz``).
    first, second, label : str, int or None, default=None
        The columns of both texts and of the label: names in the header of the file, or numbers if
        it has no header. Negative numbers count from the last column. None goes by `layout`.
    layout : {"auto", "mrpc", "bimpm", "quora", "glue", "er"}, default="auto"
        Where the texts and the label stand. Quotes are characters like any other, save in
        ``"quora"`` and in CSV files.

        - ``"mrpc"``: the header has ``#1 String``, ``#2 String`` and ``Quality``.
        - ``"bimpm"``: label, two texts and an id, without a header.
        - ``"quora"``: the header has ``question1``, ``question2`` and ``is_duplicate``. Fields may
          be quoted with ``"``, then they may have line breaks and doubled quotes in them.
        - ``"glue"``: the header has ``sentence1``, ``sentence2`` and ``label``.
        - ``"er"``: two texts and the label, without a header (entity resolution as in Ditto).
        - ``"auto"``: the layout whose columns are in the first line; else ``"bimpm"`` or ``"er"``
          if the first line has 4 or 3 columns and its label is an integer.
    encoding : str, default="utf-8"
        Encoding of the file. A byte order mark at its start is dropped.

    Returns
    -------
    X : list of tuple of (str, str)
    y : ndarray of shape (n_pairs,)
        The labels: of dtype int64 if all are integers, else objects of type str. Spaces around a
        label are dropped.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, a row has a wrong number of columns or an empty label, or the
        layout is unknown or cannot be told. Errors name the file and the line.
    """
    check_option("read_pairs", "layout", layout, ("auto", *_LAYOUTS))
    text = read_text(path, encoding=encoding)
    separator = "," if suffix_of(path) == ".csv" else "\t"
    columns: dict[str, Any] = {"first": first, "second": second, "label": label}
    if all(column is None for column in columns.values()):
        if layout == "auto":
            layout = _find_layout(path, LINE_END.split(text, maxsplit=1)[0], separator)
        columns = dict(zip(columns, _LAYOUTS[layout]))
    elif layout != "auto":
        raise not_allowed("read_pairs", "layout", "'auto' with first, second and label", layout)
    n_columns, is_quoted = _N_COLUMNS.get(layout), layout == "quora" or separator == ","
    records = split_records(path, text, separator, is_quoted=is_quoted, n_columns=n_columns)
    return texts_and_labels(path, "read_pairs", columns, records)


def _find_layout(path: FilePath, line: str, separator: str) -> str:
    """Return the layout whose columns the first line of a file has."""
    # The csv module refuses very long fields.
    fields = next(csv.reader([line[:100_000]])) if separator == "," else line.split(separator)
    # The file may quote the names in its header.
    names = {field.strip('"') for field in fields}
    for name, columns in _LAYOUTS.items():
        if names.issuperset(columns):
            return name
        if len(fields) == _N_COLUMNS.get(name) and is_integer(fields[int(columns[2])].strip(" ")):
            return name
    cut_at = "commas" if separator == "," else "TABs"
    known = "; ".join(f"{name!r} (columns {columns})" for name, columns in _LAYOUTS.items())
    problem = f"cannot tell the columns from {shorten(line)}, cut at {cut_at}"
    example = "first='left', second='right', label='match', or numbers if there is no header"
    raise file_error(path, 1, f"{problem}. Pass them, such as {example}; or layout=...: {known}.")
