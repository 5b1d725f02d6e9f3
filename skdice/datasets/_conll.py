"""Reader and writer of column files: one word a line, an empty line after each sentence."""

import os
import sys
from collections.abc import Iterable, Sequence
from numbers import Integral

from .._inputs import check_tags, check_token_lists
from .._typing import TagSequences, TokenLists
from ._files import read_lines, write_text
from ._spans import check_encodable

_DOCSTART = "-DOCSTART-"
_SEPARATOR_NAMES = {"\t": "a TAB", " ": "one space"}


def read_conll(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[int] = (0, -1),
    separator: str | None = None,
    encoding: str = "utf-8",
) -> tuple[list[list[str]], list[list[str]]]:
    r"""Read words and tags from a CoNLL-style column file.

    Each line holds one word and its annotations. A line with nothing but spaces and TABs ends a
    sentence, and so does a ``-DOCSTART-`` line, which is dropped. Everything else is data: columns
    are cut at the exact separator and lines at ``"\n"`` only (with one ``"\r"`` before it), so that
    words such as a no-break space, a zero-width space or U+2028 stay words. Tags are returned as
    they stand, in the tagging scheme of the file.

    Parameters
    ----------
    path : str or path-like
        The file, plain or compressed (``.gz``, ``.xz``).
    columns : sequence of two int, default=(0, -1)
        The columns of the word and of the tag. Negative numbers count from the last column.
    separator : str, default=None
        What stands between two columns. None means a TAB if any word line of the file has one,
        else one space.
    encoding : str, default="utf-8"
        Encoding of the file. A byte order mark at its start is dropped.

    Returns
    -------
    X : list of list of str
        The words of each sentence.
    y : list of list of str
        The tags of each sentence, one for each word.

    Raises
    ------
    FileNotFoundError
        If there is no file at `path`, or a directory.
    ValueError
        If a line has too few columns or an empty word or tag, if the file cannot be decoded or has
        no sentences, or if a parameter is invalid. Errors in the file name the file and the line.

    See Also
    --------
    write_conll : The other direction.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skdice.datasets import read_conll
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "train.conll"
    ...     _ = path.write_text("Anna NNP B-PER\nsmiles VBZ O\n\nHi UH O\n", encoding="utf-8")
    ...     X, y = read_conll(path)
    >>> X
    [['Anna', 'smiles'], ['Hi']]
    >>> y
    [['B-PER', 'O'], ['O']]
    """
    word_column, tag_column = _check_columns(columns)
    if separator is not None and (not isinstance(separator, str) or separator == ""):
        raise ValueError(
            "The 'separator' parameter of read_conll must be a non-empty str or None. "
            f"Got {separator!r} instead."
        )
    lines = read_lines(path, encoding=encoding)
    if separator is None:
        separator = _find_separator(lines)

    X: list[list[str]] = []
    y: list[list[str]] = []
    words: list[str] = []
    tags: list[str] = []
    number = 1
    for number, line in enumerate(lines, start=1):
        if _is_blank(line) or _is_docstart(line, separator):
            if words:
                X.append(words)
                y.append(tags)
                words, tags = [], []
            continue
        fields = line.split(separator)
        try:
            word, tag = fields[word_column], fields[tag_column]
        except IndexError:
            word = tag = ""
        if not word or not tag or word_column % len(fields) == tag_column % len(fields):
            problem = _describe_bad_line(fields, (word_column, tag_column), separator)
            raise ValueError(f"{os.fspath(path)}, line {number}: {problem}")
        # Words and tags recur: one object for each saves most of the memory of a large corpus.
        words.append(sys.intern(word))
        tags.append(sys.intern(tag))
    if words:
        X.append(words)
        y.append(tags)
    if not X:
        raise ValueError(
            f"{os.fspath(path)}, line {number}: the file ends without any sentence. Expected "
            "lines with one word and its tag, and an empty line after each sentence."
        )
    return X, y


def write_conll(path: str | os.PathLike[str], X: TokenLists, y: TagSequences) -> None:
    """Write words and tags such that :func:`read_conll` reads the same.

    Each line has a word, a space and its tag; an empty line follows each sentence.

    Parameters
    ----------
    path : str or path-like
        The file, which is replaced. It is compressed if its suffix is ``.gz`` or ``.xz``.
    X : list of list of str
        The words of each sentence.
    y : list of list of str
        The tags of each sentence, one for each word.

    Raises
    ------
    ValueError
        If a sentence has no words, a word or tag is empty or has a space, a TAB or a line end in
        it, or a word is ``-DOCSTART-``. The error names the row. Other white space, such as a
        no-break space, is data.

    See Also
    --------
    read_conll : The other direction.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skdice.datasets import read_conll, write_conll
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "train.conll"
    ...     write_conll(path, [["Anna", "smiles"], ["Hi"]], [["B-PER", "O"], ["O"]])
    ...     read_conll(path)
    ([['Anna', 'smiles'], ['Hi']], [['B-PER', 'O'], ['O']])
    """
    sentences = check_token_lists(X)
    tags = check_tags(y, sentences)
    lines = []
    for i, (words, word_tags) in enumerate(zip(sentences, tags)):
        if not words:
            raise ValueError(f"Column files have no empty sentences; row {i} of X has no words.")
        for j, (word, tag) in enumerate(zip(words, word_tags)):
            _check_field(word, f"position {j} of row {i} of X")
            _check_field(tag, f"position {j} of row {i} of y")
            if word == _DOCSTART:
                raise ValueError(
                    f"{_DOCSTART} ends a sentence and is no word; position {j} of row {i} of X is."
                )
        lines += [f"{word} {tag}\n" for word, tag in zip(words, word_tags)] + ["\n"]
    content = "".join(lines)
    # A byte order mark that begins the first word would be taken as that of the file.
    write_text(path, f"\ufeff{content}" if content.startswith("\ufeff") else content)


def _check_field(field: str, where: str) -> None:
    if not field or any(char in field for char in " \t\r\n"):
        raise ValueError(
            "Words and tags of column files must not be empty or have a space, TAB or line end in "
            f"them; {where} is {field!r}."
        )
    check_encodable(field, where)


def _check_columns(columns: Sequence[int]) -> tuple[int, int]:
    valid = (
        isinstance(columns, list | tuple)
        and len(columns) == 2
        and all(isinstance(c, Integral) and not isinstance(c, bool) for c in columns)
        and columns[0] != columns[1]
    )
    if not valid:
        raise ValueError(
            "The 'columns' parameter of read_conll must be two different ints, the columns of the "
            f"word and of the tag. Got {columns!r} instead."
        )
    return int(columns[0]), int(columns[1])


def _is_blank(line: str) -> bool:
    return not line.strip(" \t")


def _is_docstart(line: str, separator: str) -> bool:
    if not line.startswith(_DOCSTART):
        return False
    rest = line[len(_DOCSTART) :]
    return rest == "" or rest.startswith((" ", "\t", separator))


def _find_separator(lines: Iterable[str]) -> str:
    has_tab = any("\t" in s and not _is_blank(s) and not _is_docstart(s, "\t") for s in lines)
    return "\t" if has_tab else " "


def _describe_bad_line(fields: list[str], columns: tuple[int, int], separator: str) -> str:
    """Say what is wrong with a line that has no usable word and tag."""
    n_fields = len(fields)
    shown = repr(separator.join(fields))
    if len(shown) > 80:
        shown = shown[:76] + "...'"
    between = _SEPARATOR_NAMES.get(separator, repr(separator))
    got = f"got {n_fields} column{'' if n_fields == 1 else 's'} in {shown}"
    n_needed = max(c + 1 if c >= 0 else -c for c in columns)
    if n_fields < n_needed:
        return f"{got}, expected at least {n_needed}, separated by {between}, for {columns=}."
    if columns[0] % n_fields == columns[1] % n_fields:
        return (
            f"{got}, where columns {columns[0]} and {columns[1]} are the same one. Expected a word "
            f"and a tag, separated by {between}."
        )
    name, column = ("word", columns[0]) if not fields[columns[0]] else ("tag", columns[1])
    return f"{got}, where the {name} (column {column}) is empty. Expected {between} in between."
