"""Reader and writer of column files: one word a line, an empty line after each sentence."""

import sys
from collections import Counter
from collections.abc import Sequence
from numbers import Integral

from .._inputs import check_tags, check_token_lists
from .._parameters import not_allowed
from .._typing import TagSequences, TokenLists
from ._text_files import (
    FilePath,
    check_encodable,
    count_columns,
    file_error,
    read_lines,
    words_and_tags,
    write_text,
)

_DOCSTART = "-DOCSTART-"


def read_conll(
    path: FilePath,
    *,
    columns: Sequence[int] = (0, -1),
    separator: str | None = None,
    encoding: str = "utf-8",
) -> tuple[list[list[str]], list[list[str]]]:
    r"""Read words and tags from a CoNLL-style column file.

    Each line holds one word and its annotations. A line with nothing but spaces and TABs ends a
    sentence, and so does a ``-DOCSTART-`` line, which is dropped. Columns are cut at the exact
    separator, and lines end in LF, CRLF or CR. Words are returned as they stand, and tags, in the
    scheme of the file, without spaces around them.

    Parameters
    ----------
    path : str or path-like
        The file, plain or compressed (``.gz``, ``.xz``).
    columns : sequence of two int, default=(0, -1)
        The columns of the word and of the tag. Negative numbers count from the last column.
    separator : str, default=None
        What stands between two columns. None means a TAB if a line of a word has one, else a space;
        then it is an error if most lines look like those of texts.
    encoding : str, default="utf-8"
        Encoding of the file. A byte order mark at its start is dropped.

    Returns
    -------
    X, y : list of list of str
        The words of each sentence, and one tag for each word.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, a line has too few columns or an empty word or tag, the file has
        no sentences, or a parameter is invalid. Errors name the file and the line.
    """
    is_pair = isinstance(columns, list | tuple) and len(set(columns)) == len(columns) == 2
    if not is_pair or not all(isinstance(c, Integral) and type(c) is not bool for c in columns):
        allowed = "two different ints, the columns of the word and of the tag"
        raise not_allowed("read_conll", "columns", allowed, columns)
    word_column, tag_column = columns
    if separator is not None and (not isinstance(separator, str) or separator == ""):
        raise not_allowed("read_conll", "separator", "a non-empty str or None", separator)
    lines = read_lines(path, encoding=encoding)
    if is_guessed := separator is None:
        has_tab = any("\t" in line and not _is_gap(line, "\t") for line in lines)
        separator = "\t" if has_tab else " "
    rows: list[list[tuple[str, str]]] = [[]]
    forms = Counter[int]()  # of lines: how many columns, or spaces in word and tag
    for number, line in enumerate(lines, start=1):
        if _is_gap(line, separator):
            rows.append([])
            continue
        fields = line.split(separator)
        try:
            word, tag = fields[word_column], fields[tag_column].strip(" ")
        except IndexError:
            word = tag = ""
        if not word or not tag or word_column % len(fields) == tag_column % len(fields):
            expected = f"a word (column {word_column}) and a tag (column {tag_column}), not empty"
            raise file_error(path, number, count_columns(fields, separator, expected))
        spaces = word.count(" ") + tag.count(" ")
        forms[len(list(filter(None, fields))) if separator == " " else spaces] += 1
        # Words and tags recur: one object for each saves most of the memory of a large corpus.
        rows[-1].append((sys.intern(word), sys.intern(tag)))
    n, expected = sum(forms.values()), "one word and its tag in each line"
    usual = max(forms.values(), default=0) if separator == " " else forms[0]
    if is_guessed and n > 1 and 2 * usual < n:  # A word may have spaces; most do not.
        found = f"most of its {n:,} lines have spaces in the word or the tag"
        if separator == " ":
            found = f"its {n:,} lines have {min(forms)} to {max(forms)} columns"
        problem = f"this is no CoNLL file: {found}. Expected {expected}; if it is one, pass"
        raise file_error(path, 1, f"{problem} {separator=}.")
    return words_and_tags(path, rows, len(lines), expected)


def write_conll(path: FilePath, X: TokenLists, y: TagSequences) -> None:
    """Write words and tags to a file from which :func:`read_conll` reads the same.

    Each line has a word, a space and its tag; an empty line follows each sentence.

    Parameters
    ----------
    path : str or path-like
        The file, which is replaced. It is compressed if its suffix is ``.gz`` or ``.xz``.
    X, y : list of list of str
        The words of each sentence, and one tag for each word.

    Raises
    ------
    ValueError
        If a sentence has no words, or a word or tag is empty, ``-DOCSTART-``, or has a space, a TAB
        or a line end in it. The error names the row. Other white space is data.
    """
    sentences = check_token_lists(X)
    lines = []
    for i, (words, tags) in enumerate(zip(sentences, check_tags(y, sentences))):
        if not words:
            raise ValueError(f"Column files have no empty sentences; row {i} of X has no words.")
        for j, (word, tag) in enumerate(zip(words, tags)):
            for field, name in ((word, "X"), (tag, "y")):
                where = f"position {j} of row {i} of {name}"
                if field in ("", _DOCSTART) or any(char in field for char in " \t\r\n"):
                    what = f"not be empty, {_DOCSTART} or have a space, TAB or line end in them"
                    got = f"{where} is {field!r}"
                    raise ValueError(f"Words and tags of column files must {what}; {got}.")
                check_encodable(field, where)
            lines.append(f"{word} {tag}\n")
        lines.append("\n")
    content = "".join(lines)
    # A byte order mark that begins the first word would be taken as that of the file.
    write_text(path, f"\ufeff{content}" if content.startswith("\ufeff") else content)


def _is_gap(line: str, separator: str) -> bool:
    """Whether a line ends a sentence."""
    rest = line.removeprefix(_DOCSTART)
    is_mark = rest != line and (rest == "" or rest.startswith((" ", "\t", separator)))
    return is_mark or not line.strip(" \t")
