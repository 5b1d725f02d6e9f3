"""Checks that all metrics share: sentences of tags."""

from __future__ import annotations

from .._inputs import check_rows, describe, list_items, names_hint
from .._typing import TagSequences


def check_tags(tags: object, name: str) -> list[str]:
    """Return the tags of one sentence as a list of non-empty strings.

    Parameters
    ----------
    tags : list, tuple, Series or 1-D array of str
        One tag per word.
    name : str
        What error messages call the sentence.

    Returns
    -------
    list of str

    Raises
    ------
    TypeError
        If `tags` is a bare string or no sequence, or if a tag is not a string.
    ValueError
        If a tag is the empty string.
    """
    values = list_items(tags)
    if values is None:
        raise TypeError(
            f"{name} must be a list of tags (list, tuple, Series or 1-D array), one per word; "
            f"got {describe(tags)}."
        )
    for position, tag in enumerate(values):
        if not isinstance(tag, str):
            raise TypeError(
                f"{name}: tag {position} must be a string; got {describe(tag)}.{names_hint(tag)}"
            )
        if not tag:
            raise ValueError(
                f"{name}: tag {position} must not be empty; a word outside any entity has the "
                "tag 'O'."
            )
    return values


def check_tag_sequences(
    y_true: TagSequences, y_pred: TagSequences
) -> tuple[list[list[str]], list[list[str]]]:
    """Return both corpora as lists of lists of str with equal shapes.

    Parameters
    ----------
    y_true, y_pred : list, tuple, Series or array of lists of str
        One list of tags per sentence.

    Returns
    -------
    y_true, y_pred : list of list of str

    Raises
    ------
    TypeError
        If an argument is no sequence, a sentence no list of tags, or a tag no string.
    ValueError
        If the numbers of sentences or the lengths of a sentence differ, or a tag is empty.
    """
    true_rows, pred_rows = _check_tags(y_true, "y_true"), _check_tags(y_pred, "y_pred")
    if len(true_rows) != len(pred_rows):
        raise ValueError(
            "y_true and y_pred must have the same number of sentences; "
            f"got {len(true_rows)} and {len(pred_rows)}."
        )
    for row, (true_tags, pred_tags) in enumerate(zip(true_rows, pred_rows)):
        if len(true_tags) != len(pred_tags):
            raise ValueError(
                "y_true and y_pred must have the same number of tags in every sentence; "
                f"row {row} has {len(true_tags)} and {len(pred_tags)}."
            )
    return true_rows, pred_rows


def _check_tags(sentences: object, name: str) -> list[list[str]]:
    rows = check_rows(sentences, name, "lists of tags, one per sentence")
    return [check_tags(tags, f"row {row} of {name}") for row, tags in enumerate(rows)]
