"""Reader of CoNLL-U files, the format of Universal Dependencies."""

import re
import sys

from .._parameters import check_option
from ._text_files import FilePath, count_columns, file_error, read_lines, shorten, words_and_tags

_COLUMNS = {"upos": 3, "xpos": 4}


def read_conllu(path: FilePath, *, tag: str = "upos") -> tuple[list[list[str]], list[list[str]]]:
    r"""Read words and part-of-speech tags from a CoNLL-U file.

    The words are the syntactic ones, those that have tags: of ``don't``, written as the multi-word
    token ``1-2`` over the words ``1`` and ``2``, come ``do`` and ``n't``. Lines of multi-word
    tokens, empty nodes (``8.1``) and comments are skipped. Words are returned as they stand, also
    those with spaces in them.

    Parameters
    ----------
    path : str or path-like
        The file in UTF-8, plain or compressed (``.gz``, ``.xz``).
    tag : {"upos", "xpos"}, default="upos"
        Which tags to read: the universal ones (column 4) or those of the language (column 5).

    Returns
    -------
    X, y : list of list of str
        The words of each sentence, and one tag for each word.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, a line has not exactly 10 columns, its ID does not follow from the
        lines before or its word has no tag (``_``). Errors name the file and the line.
    """
    check_option("read_conllu", "tag", tag, _COLUMNS)
    rows: list[list[tuple[str, str]]] = [[]]
    lines = read_lines(path)
    for number, line in enumerate(lines, start=1):
        if not line.strip(" \t"):
            rows.append([])
            continue
        if line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 10:
            raise file_error(path, number, count_columns(fields, "\t", "10"))
        node, word, value = fields[0], fields[1], fields[_COLUMNS[tag]]
        if re.fullmatch(r"\d+[-.]\d+", node):  # A multi-word token or an empty node.
            continue
        problem = ""
        if node != str(len(rows[-1]) + 1):
            hint = " Is the empty line before the sentence missing?" if node == "1" else ""
            problem = f"got the ID {shorten(node)}, expected the word {len(rows[-1]) + 1}.{hint}"
        elif not word:
            problem = "the word (column 2) is empty."
        elif value in ("", "_"):
            other = "xpos" if tag == "upos" else "upos"
            got = f"no {tag} tag (column {_COLUMNS[tag] + 1} is {value!r})"
            advice = f"perhaps the file has {other} tags: tag={other!r}"
            problem = f"the word {shorten(word)} has {got}; {advice}."
        if problem:
            raise file_error(path, number, problem)
        # Words and tags recur: one object for each saves most of the memory.
        rows[-1].append((sys.intern(word), sys.intern(value)))
    return words_and_tags(path, rows, len(lines), "lines of 10 columns (CoNLL-U)")
