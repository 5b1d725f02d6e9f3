"""Reader of texts with one label each."""

import os
from collections import Counter
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path

import numpy as np

from ._files import read_text
from ._tables import Record, drop_header, is_integer, make_labels, split_records

_KNOWN_NAMES = {
    "text": ("text", "sentence", "tweet", "message", "review"),
    "label": ("label", "class", "category", "target"),
}


def read_labeled_text(
    path: str | os.PathLike[str],
    *,
    text: str | int | None = None,
    label: str | int | None = None,
    separator: str | None = None,
    encoding: str = "utf-8",
) -> tuple[list[str], np.ndarray]:
    r"""Read texts and their labels from a TSV or CSV file, or from lines ``<label> <text>``.

    Texts are kept as they are, and may be empty. Rows end at ``"\n"`` only (with one ``"\r"``
    before it). Nothing is skipped but blank lines at the very end of the file.

    Parameters
    ----------
    path : str or path-like
        The file, plain or compressed (``.gz``, ``.xz``).
    text, label : str, int or None, default=None
        The columns of the text and of the label: names in the header of the file, or numbers of
        columns in a file without a header. Negative numbers count from the last column.

        None guesses. The first line is a header if it has a known name: ``text``, ``sentence``,
        ``tweet``, ``message`` or ``review`` for the text, ``label``, ``class``, ``category`` or
        ``target`` for the label, in lower or upper case. Then there must be just one of each. Any
        other file must have two columns, first the label, then the text; it is refused if a label
        has a space in it, or if the first line seems to be a header: its label is the only one that
        occurs once. If only one of both parameters is None, the other column of two is also known.
    separator : str of length 1, default=None
        What stands between two columns. None means a comma for ``.csv`` files (also ``.csv.gz``
        and ``.csv.xz``), else a TAB if the first line has one, else a space. A space cuts each line
        only once, after the label. Fields may be quoted with ``"``, and then have line breaks and
        doubled quotes in them, unless the separator is a TAB or a space.
    encoding : str, default="utf-8"
        Encoding of the file. A byte order mark at its start is dropped.

    Returns
    -------
    X : list of str
        The texts.
    y : ndarray of shape (n_texts,)
        The labels: of dtype int64 if all are integers, else objects of type str. Spaces around a
        label are dropped.

    Raises
    ------
    FileNotFoundError
        If there is no file at `path`, or a directory.
    ValueError
        If a row has another number of columns than the first one or an empty label, if the columns
        are not in the file or cannot be guessed, if the file cannot be decoded or has no rows, or
        if a parameter is invalid. Errors in the file name the file and the line.

    See Also
    --------
    read_pairs : Two texts for each label.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skdice.datasets import read_labeled_text
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "messages.tsv"
    ...     _ = path.write_text("ham\tSee you at 8.\nspam\tYou won!\n", encoding="utf-8")
    ...     X, y = read_labeled_text(path)
    >>> X
    ['See you at 8.', 'You won!']
    >>> y
    array(['ham', 'spam'], dtype=object)

    With a header, the columns have names:

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "tweets.csv"
    ...     _ = path.write_text('id,body,mood\n7,"Hello, you",1\n', encoding="utf-8")
    ...     read_labeled_text(path, text="body", label="mood")
    (['Hello, you'], array([1]))
    """
    _check_parameters(text, label, separator)
    content = read_text(path, encoding=encoding)
    if separator is None:
        separator = _find_separator(path, content)
    records = split_records(path, content, separator, is_quoted=separator not in "\t ")
    first = records[0][1]
    has_header = _has_header(first, text, label)
    find = _find_by_name if has_header else _find_by_position
    text_column, label_column = find(path, first, text, label)
    if text_column == label_column:
        raise ValueError(
            f"{os.fspath(path)}: the text and the label must be in different columns. Got "
            f"{text=} and {label=}. {_list_columns(first)}"
        )
    if separator == " " and label_column != 0:
        raise ValueError(
            f"{os.fspath(path)}: lines are cut at their first space only, so that the label must "
            f"come first. Got {text=} and {label=}; pass another separator."
        )
    if has_header:
        records = drop_header(path, records)
    elif text is None and label is None:
        _check_first_label(path, records)
    X = [fields[text_column] for _, fields in records]
    return X, make_labels(path, records, label_column, has_header=has_header)


def _check_parameters(
    text: str | int | None, label: str | int | None, separator: str | None
) -> None:
    for name, column in (("text", text), ("label", label)):
        is_int = isinstance(column, Integral) and not isinstance(column, bool)
        if not (column is None or isinstance(column, str) or is_int):
            raise ValueError(
                f"The {name!r} parameter of read_labeled_text must be a str, an int or None. "
                f"Got {column!r} instead."
            )
    if text is not None and label is not None and isinstance(text, str) != isinstance(label, str):
        raise ValueError(
            "The 'text' and 'label' parameters of read_labeled_text must both be names (of a file "
            f"with a header) or both be numbers (without one). Got {text=} and {label=} instead."
        )
    is_valid = isinstance(separator, str) and len(separator) == 1 and separator not in '"\r\n'
    if separator is not None and not is_valid:
        raise ValueError(
            "The 'separator' parameter of read_labeled_text must be one character, no quote or "
            f"line end, or None. Got {separator!r} instead."
        )


def _find_separator(path: str | os.PathLike[str], content: str) -> str:
    name = Path(path).name.lower().removesuffix(".gz").removesuffix(".xz")
    if name.endswith(".csv"):
        return ","
    return "\t" if "\t" in content.split("\n", 1)[0] else " "


def _has_header(first: list[str], text: str | int | None, label: str | int | None) -> bool:
    if text is None and label is None:
        return bool(_find_known("text", first) or _find_known("label", first))
    return isinstance(text, str) or isinstance(label, str)


def _find_known(name: str, header: list[str]) -> list[int]:
    return [i for i, field in enumerate(header) if field.lower() in _KNOWN_NAMES[name]]


def _find_by_name(
    path: str | os.PathLike[str],
    header: list[str],
    text: str | int | None,
    label: str | int | None,
) -> tuple[int, int]:
    found: dict[str, int | None] = {}
    for name, column in (("text", text), ("label", label)):
        if column is None:
            known = _find_known(name, header)
            found[name] = known[0] if len(known) == 1 else None
        elif header.count(str(column)) == 1:
            found[name] = header.index(str(column))
        else:
            raise ValueError(
                f"{os.fspath(path)}, line 1: the header must have one column {column!r} "
                f"({name}={column!r}). {_list_columns(header)}"
            )
    if len(header) == 2 and (text is None) != (label is None):
        given, guessed = ("label", "text") if text is None else ("text", "label")
        found[guessed] = 1 - (found[given] or 0)
    if found["text"] is None or found["label"] is None:
        missing = " and ".join(name for name, column in found.items() if column is None)
        text_name = header[-1 if found["text"] is None else found["text"]]
        label_name = header[0 if found["label"] is None else found["label"]]
        raise ValueError(
            f"{os.fspath(path)}, line 1: cannot tell the column of the {missing}. "
            f"{_list_columns(header)} Name both, such as in read_labeled_text(path, "
            f"text={text_name!r}, label={label_name!r}), or pass their numbers if the file has no "
            f"header, such as text={len(header) - 1}, label=0."
        )
    return found["text"], found["label"]


def _find_by_position(
    path: str | os.PathLike[str],
    first: list[str],
    text: str | int | None,
    label: str | int | None,
) -> tuple[int, int]:
    n_columns = len(first)
    found: dict[str, int] = {}
    for name, column in (("text", text), ("label", label)):
        if column is not None:
            if not -n_columns <= int(column) < n_columns:
                raise ValueError(
                    f"{os.fspath(path)}, line 1: there is no column {column} ({name}={column}). "
                    f"{_list_columns(first)}"
                )
            found[name] = int(column) % n_columns
    if len(found) < 2 and n_columns != 2:
        raise ValueError(
            f"{os.fspath(path)}, line 1: cannot tell the columns of the text and the label. "
            f"{_list_columns(first)} {_show_calls(first)}"
        )
    if not found:
        return 1, 0
    text_column = found["text"] if "text" in found else 1 - found["label"]
    return text_column, found["label"] if "label" in found else 1 - text_column


def _check_first_label(path: str | os.PathLike[str], records: Sequence[Record]) -> None:
    """Refuse a guess where the first line, or the first column of all lines, looks otherwise."""
    counts = Counter(fields[0] for _, fields in records)
    first = records[0][1]
    # A column name occurs once, and where labels occur more often nothing else should.
    is_only_single = [label for label, n in counts.items() if n == 1] == [first[0]]
    if is_only_single and len(counts) > 1 and not is_integer(first[0]):
        problem = f"the label {first[0]!r} occurs in this line only, as if it were a header"
        number = 1
    else:
        number = next((number for number, fields in records if " " in fields[0].strip(" ")), 0)
        problem = "the first column has several words, as if it were the text, not the label"
    if number:
        raise ValueError(
            f"{os.fspath(path)}, line {number}: {problem}. {_list_columns(first)} "
            f"{_show_calls(first)}"
        )


def _list_columns(first: list[str]) -> str:
    shown = [field if len(field) <= 30 else f"{field[:27]}..." for field in first[:20]]
    more = ", ..." if len(first) > 20 else ""
    return f"The columns of line 1 are {', '.join(map(repr, shown))}{more}."


def _show_calls(first: list[str]) -> str:
    text = first[-1] if len(first[-1]) <= 30 else "text"
    label = first[0] if len(first[0]) <= 30 else "label"
    return (
        "Say which ones they are: if the file has no header by numbers, such as in "
        f"read_labeled_text(path, text={len(first) - 1}, label=0), else by names, such as in "
        f"read_labeled_text(path, text={text!r}, label={label!r})."
    )
