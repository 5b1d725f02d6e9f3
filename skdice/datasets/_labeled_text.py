"""Reader of texts with one label each."""

import numpy as np

from .._parameters import not_allowed
from ._tables import split_records, texts_and_labels
from ._text_files import LINE_END, FilePath, file_error, read_text, shorten, suffix_of

# What the column of the text, and that of the label, may be called in a header.
_TEXT_NAMES = ("text", "sentence", "tweet", "message", "review")
_LABEL_NAMES = ("label", "class", "category", "target")


def read_labeled_text(
    path: FilePath,
    *,
    text: str | int | None = None,
    label: str | int | None = None,
    separator: str | None = None,
    encoding: str = "utf-8",
) -> tuple[list[str], np.ndarray]:
    r"""Read texts and their labels from a TSV or CSV file, or from lines ``<label> <text>``.

    Texts are kept as they are, and may be empty. Rows end in LF, CRLF or CR.
    Blank lines are skipped at the very end of the file only.

    Parameters
    ----------
    path : str or path-like
        The file, plain or compressed (``.gz``, ``.xz``).
    text, label : str, int or None, default=None
        The columns of the text and of the label: two names in the header of the file, or two
        numbers if it has no header. Negative numbers count from the last column.

        By default, the first line is a header if it has a known name: ``text``, ``sentence``,
        ``tweet``, ``message`` or ``review`` for the text, ``label``, ``class``, ``category`` or
        ``target`` for the label, in lower or upper case. Then there must be just one of each. Any
        other file must have two columns, first the label, then the text, and no label with a space
        in it.
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
    is_character = isinstance(separator, str) and len(separator) == 1 and separator not in '"\r\n'
    if separator is not None and not is_character:
        allowed = "one character, no quote or line end, or None"
        raise not_allowed("read_labeled_text", "separator", allowed, separator)
    content = read_text(path, encoding=encoding)
    if separator is None:
        other = "\t" if "\t" in LINE_END.split(content, maxsplit=1)[0] else " "
        separator = "," if suffix_of(path) == ".csv" else other
    records = split_records(path, content, separator, is_quoted=separator not in "\t ")
    first = records[0][1]
    is_default = text is None and label is None
    if is_default:
        text, label = _find_known(path, first)
    columns = {"text": text, "label": label}
    X, y = texts_and_labels(path, "read_labeled_text", columns, records)
    if separator == " " and label not in (0, -2, first[0]):
        problem = f"lines are cut at their first space, so the label must come first. Got {label=}."
        raise file_error(path, 1, f"{problem} Pass another separator.")
    if is_default and label == 0:
        for number, (value, _) in records:
            if " " in value.strip(" "):
                problem = f"the label {shorten(value)} has a space in it, as if it were the text"
                raise file_error(path, number, f"{problem}. {_show(first)}")
    return [one for (one,) in X], y


def _find_known(path: FilePath, first: list[str]) -> tuple[str, str] | tuple[int, int]:
    """Return the columns of the text and of the label if none are given."""
    texts = [name for name in first if name.lower() in _TEXT_NAMES]
    labels = [name for name in first if name.lower() in _LABEL_NAMES]
    if len(texts) == len(labels) == 1:
        return texts[0], labels[0]
    if texts or labels or len(first) != 2:
        problem = "cannot tell the column of the text and that of the label"
        raise file_error(path, 1, f"{problem}. {_show(first)}")
    return 1, 0


def _show(first: list[str]) -> str:
    """Return the columns of the first line, and how to say which ones are to be read."""
    return (
        f"The columns of line 1 are {', '.join(repr(field[:30]) for field in first[:20])}. Pass "
        "those of the text and the label, names in a header such as text='body', label='mood', or "
        "numbers in a file without one, such as text=1, label=0."
    )
