"""Labels of rows, and which of them is the positive one."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from .._inputs import describe, list_some
from ._rows import Labels


def read_labels(y: Labels, n_rows: int) -> list[Hashable]:
    """Return the labels as Python values, one for each row of X.

    Raises
    ------
    TypeError
        If `y` is no list, tuple, Series or one-dimensional array.
    ValueError
        If the number of labels is not `n_rows`, or a label is missing or cannot be a label.
    """
    labels: list[Any]
    if isinstance(y, np.ndarray | pd.Series):
        if y.ndim != 1:
            raise TypeError(f"y must have one dimension, a label per row; got shape {y.shape}.")
        labels = y.tolist()
    elif isinstance(y, list | tuple):
        labels = list(y)
    else:
        raise TypeError(f"y must be a list, tuple, Series or array of labels; got {describe(y)}.")
    if len(labels) != n_rows:
        raise ValueError(
            f"X and y must have the same number of rows; got {n_rows} and {len(labels)}."
        )
    for i, label in enumerate(labels):
        if not pd.api.types.is_scalar(label) or pd.isna(label):
            raise ValueError(
                f"A label must be a str, a number or a bool; row {i} of y is {describe(label)}."
            )
    return labels


def find_positive_label(labels: Sequence[Hashable], pos_label: Hashable | None) -> Hashable:
    """Return the positive label: the given one, or the larger of exactly two.

    Raises
    ------
    ValueError
        If `pos_label` is no label of y, or is None and y does not have two labels.
    """
    if pos_label is not None:
        check_label(labels, pos_label, "pos_label")
        return pos_label
    return find_larger_label(labels, "pos_label=None", "Pass pos_label")


def find_larger_label(labels: Sequence[Hashable], setting: str, advice: str) -> Hashable:
    """Return the larger of exactly two labels.

    Parameters
    ----------
    labels : sequence of label
    setting : str
        The parameter and its value that need it, for the error.
    advice : str
        What to do without it, for the error.

    Raises
    ------
    ValueError
        If there are more or fewer labels, or the two cannot be ordered.
    """
    distinct = set(labels)
    rule = f"{setting} takes the larger of exactly two labels for the positive one"
    if len(distinct) != 2:
        raise ValueError(f"{rule}; y has {len(distinct)}: {_list_labels(labels)}. {advice}.")
    try:
        return sorted(distinct)[1]  # type: ignore[type-var]
    except TypeError as error:
        raise ValueError(f"{rule}; {_list_labels(labels)} cannot be ordered. {advice}.") from error


def check_label(labels: Sequence[Hashable], label: Hashable, name: str) -> None:
    """Raise a ValueError unless `label` is one of the labels; `name` is the parameter's."""
    if not pd.api.types.is_scalar(label) or label not in set(labels):
        raise ValueError(
            f"{name} must be a label of y, one of {_list_labels(labels)}; got {label!r}."
        )


def _list_labels(labels: Sequence[Hashable]) -> str:
    """Return the distinct labels for an error, the first few of them."""
    return list_some(sorted(set(labels), key=repr), most=5)
