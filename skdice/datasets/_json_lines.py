"""Readers of JSON lines: an object for each row."""

import os

import numpy as np

from .._inputs import check_tags, check_token_lists
from ._json import get_field, read_objects
from ._tables import is_integer
from ._text_files import FilePath, file_error


def read_tagged_json(
    path: FilePath, *, tokens: str = "tokens", tags: str = "tags"
) -> tuple[list[list[str]], list[list[str]]]:
    """Read words and tags from JSON lines, such as ``{"tokens": ["Anna"], "tags": ["B-PER"]}``.

    Parameters
    ----------
    path : str or path-like
        The file, plain or compressed (``.gz``, ``.xz``). A list of such objects is read, too.
    tokens, tags : str, default="tokens" and "tags"
        The keys of the words and of their tags; others are left out.

    Returns
    -------
    X, y : list of list of str
        The words of each sentence, and one tag for each word.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, it has no rows, or a row is no such object. Errors name the row.
    """
    objects = list(read_objects(path))
    if not objects:
        raise file_error(path, 1, "the file ends without any row.")
    X, y = (
        [get_field(place, row, key, list) for _, place, row in objects] for key in (tokens, tags)
    )
    try:
        sentences = check_token_lists(X)
        return sentences, check_tags(y, sentences)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from error


def read_labeled_json(
    path: FilePath, *, text: str = "text", label: str = "label"
) -> tuple[list[str], np.ndarray]:
    """Read texts and their labels from JSON lines, such as ``{"text": "Hi", "label": "ham"}``.

    Parameters
    ----------
    path : str or path-like
        The file, plain or compressed (``.gz``, ``.xz``). A list of such objects is read, too.
    text, label : str, default="text" and "label"
        The keys of the text and of its label, a string or an integer; others are left out.

    Returns
    -------
    X : list of str
    y : ndarray of shape (n_texts,)
        The labels: of dtype int64 if they are integers, else objects of type str.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, it has no rows, or a row is no such object. Errors name the row.
    """
    X, y = [], []
    kinds: tuple[type, ...] = (str, int)
    for _, place, row in read_objects(path):
        X.append(get_field(place, row, text, str))
        y.append(get_field(place, row, label, *kinds))
        kinds = (type(y[0]),)  # All are of the kind of the first one.
        if kinds == (int,) and not is_integer(str(y[-1])):
            raise ValueError(f"{place}, {label!r}: the integer {y[-1]} needs more than 64 bits.")
    if not X:
        raise file_error(path, 1, "the file ends without any row.")
    return X, np.array(y, dtype=np.int64 if kinds == (int,) else object)
