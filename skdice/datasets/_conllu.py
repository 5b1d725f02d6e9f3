"""Reader of CoNLL-U files, the format of Universal Dependencies."""

import os
import re
import sys

from .._parameters import check_option
from ._files import read_lines, shorten

# The package conllu has no numbers of lines, cuts words at two spaces and takes short lines and IDs
# in any order; it also needs four times as long.
_COLUMNS = {"upos": 3, "xpos": 4}
_N_COLUMNS = 10
_WORD = re.compile(r"[1-9][0-9]*")
_MULTI_WORD = re.compile(r"([1-9][0-9]*)-([1-9][0-9]*)")
_EMPTY_NODE = re.compile(r"(0|[1-9][0-9]*)\.[1-9][0-9]*")


def read_conllu(
    path: str | os.PathLike[str], *, tag: str = "upos"
) -> tuple[list[list[str]], list[list[str]]]:
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
    X : list of list of str
        The words of each sentence.
    y : list of list of str
        The tags of each sentence, one for each word.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, if a line has not exactly 10 columns, its ID does not follow from
        the lines before or its word has no tag (``_``), if the file cannot be decoded or has no
        sentences, or if `tag` is invalid. Errors in the file name the file and the line.

    See Also
    --------
    split_into_characters : From tagged words to tagged characters.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skdice.datasets import read_conllu
    >>> rows = ["1-2 Don't _ _", "1 Do AUX VBP", "2 n't PART RB", "3 ! PUNCT ."]
    >>> rows = [row.split() for row in rows]
    >>> table = [[i, word, "_", upos, xpos] + ["_"] * 5 for i, word, upos, xpos in rows]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "train.conllu"
    ...     _ = path.write_text("\n".join(map("\t".join, table)), encoding="utf-8")
    ...     read_conllu(path)
    ([['Do', "n't", '!']], [['AUX', 'PART', 'PUNCT']])
    """
    check_option("read_conllu", "tag", tag, _COLUMNS)
    X: list[list[str]] = []
    y: list[list[str]] = []
    words: list[str] = []
    tags: list[str] = []
    last = 0  # word of the multi-word tokens so far
    lines = read_lines(path)
    # An empty line after the last one ends the last sentence, whether the file has it or not.
    for number, line in enumerate([*lines, ""], start=1):
        try:
            if not line.strip(" \t"):
                if last > len(words):
                    raise ValueError(
                        f"the sentence ends with the word {len(words)}, inside a multi-word token "
                        f"that goes to the word {last}."
                    )
                if words:
                    X.append(words)
                    y.append(tags)
                words, tags, last = [], [], 0
            elif not line.startswith("#"):
                fields = line.split("\t")
                if len(fields) != _N_COLUMNS:
                    s = "" if len(fields) == 1 else "s"
                    raise ValueError(
                        f"got {len(fields)} column{s} in {shorten(line)}, expected {_N_COLUMNS}, "
                        "separated by a TAB."
                    )
                covered = _read_id(fields[0], len(words), last)
                if covered is None:
                    # Words and tags recur: one object for each saves most of the memory.
                    words.append(sys.intern(fields[1]))
                    tags.append(sys.intern(_read_tag(fields, tag)))
                else:
                    last = covered
        except ValueError as error:
            line_number = min(number, len(lines))
            raise ValueError(f"{os.fspath(path)}, line {line_number}: {error}") from None
    if not X:
        raise ValueError(
            f"{os.fspath(path)}, line {len(lines)}: the file ends without any sentence. Expected "
            "CoNLL-U: lines of 10 columns separated by TABs, and an empty line after each sentence."
        )
    return X, y


def _read_id(node: str, n_words: int, last: int) -> int | None:
    """Check the ID of a line; for one without a word, return the last multi-word token's end.

    So far the sentence has `n_words`, and its multi-word tokens go to the word `last`.
    """
    following = n_words + 1
    if _WORD.fullmatch(node):
        if int(node) == following:
            return None
    elif multi_word := _MULTI_WORD.fullmatch(node):
        start, end = map(int, multi_word.groups())
        if last < start == following <= end:
            return end
    elif (empty_node := _EMPTY_NODE.fullmatch(node)) and int(empty_node[1]) == n_words:
        return last
    hint = " Is the empty line before the sentence missing?" if node == "1" else ""
    raise ValueError(
        f"got the ID {shorten(node)}, expected the word {following}, a multi-word token that "
        f"starts with it and with no other one ({following}-{following + 1}), or an empty node "
        f"after the word before ({n_words}.1).{hint}"
    )


def _read_tag(fields: list[str], tag: str) -> str:
    """Return the tag; a word without one has none to be learned or scored."""
    if not fields[1]:
        raise ValueError("the word (column 2) is empty.")
    value = fields[_COLUMNS[tag]]
    if value in ("", "_"):
        other = "xpos" if tag == "upos" else "upos"
        raise ValueError(
            f"the word {shorten(fields[1])} has no {tag} tag (column {_COLUMNS[tag] + 1} is "
            f"{value!r}). Every word needs one; perhaps the file has {other} tags: tag={other!r}."
        )
    return value
