"""Texts and pairs of texts in the containers of the user: read, taken from and added to."""

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from .._inputs import as_python, check_pairs, describe

Row: TypeAlias = str | tuple[str, str]
# Those from which rows can be taken and put together again.
Labels: TypeAlias = Sequence[Hashable] | np.ndarray | pd.Series
Rows: TypeAlias = Sequence[Row] | np.ndarray | pd.Series | pd.DataFrame
# What goes in comes out in a container of the same kind.
SomeRows = TypeVar("SomeRows", bound=Rows)
SomeLabels = TypeVar("SomeLabels", bound=Labels)
_Some = TypeVar("_Some", bound=Rows | Labels)
# The texts of a row: one, or the two of a pair.
Texts: TypeAlias = tuple[str, ...]

_ALLOWED = (
    "a list, tuple, Series or array of str or of 2-tuples of str, an (n, 2) array or a two-column "
    "DataFrame"
)


def check_container(X: object) -> None:
    """Raise a TypeError unless `X` is a container of rows that this module can take rows from."""
    if not isinstance(X, list | tuple | np.ndarray | pd.Series | pd.DataFrame):
        raise TypeError(f"X must be {_ALLOWED}; got {describe(X)}.")
    if isinstance(X, np.ndarray) and X.ndim not in (1, 2):
        raise TypeError(f"X must be {_ALLOWED}; got an array of shape {X.shape}.")


def read_rows(X: Rows) -> list[Texts]:
    """Return the texts of every row.

    Parameters
    ----------
    X : list, tuple, Series or array of str or of 2-tuples, (n, 2) array or two-column DataFrame

    Returns
    -------
    list of tuple of str
        All of length 1 (texts), or all of length 2 (pairs).

    Raises
    ------
    TypeError
        If `X` is of another kind.
    ValueError
        If a row is neither a str nor a 2-tuple of str, or if `X` has both.
    """
    X = as_python(X)
    check_container(X)
    if isinstance(X, np.ndarray | pd.DataFrame) and X.ndim == 2:
        return list(check_pairs(X))
    rows = [read_row(row, f"row {i} of X") for i, row in enumerate(X)]
    for i, texts in enumerate(rows):
        if len(texts) != len(rows[0]):
            kinds = {1: "a text", 2: "a pair"}
            raise ValueError(
                f"The rows of X must be all texts or all pairs; row 0 is {kinds[len(rows[0])]} "
                f"and row {i} is {kinds[len(texts)]}."
            )
    return rows


def read_row(row: object, where: str) -> Texts:
    """Return the texts of one row; `where` is what errors call it."""
    if isinstance(row, str):
        return (str(row),)
    if isinstance(row, tuple) and len(row) == 2 and all(isinstance(text, str) for text in row):
        return (str(row[0]), str(row[1]))
    raise ValueError(f"A row must be a str or a 2-tuple of str; {where} is {describe(row)}.")


def make_row(texts: Texts) -> Row:
    """Return the row of these texts: the text itself, or the pair."""
    return texts[0] if len(texts) == 1 else (texts[0], texts[1])


def take_rows(rows: _Some, index: Sequence[int]) -> _Some:
    """Return some of the rows, in that order and in a new container of the same kind."""
    taken: Any
    if isinstance(rows, pd.Series | pd.DataFrame):
        taken = rows.iloc[list(index)].copy()
    elif isinstance(rows, np.ndarray):
        taken = rows[np.asarray(index, dtype=np.intp)]
    else:
        taken = [rows[i] for i in index]
        taken = tuple(taken) if isinstance(rows, tuple) else taken
    return taken


def make_rows_like(X: Any, rows: Sequence[Texts]) -> Any:
    """Return rows in a container of the kind of `X`; pandas objects are numbered from 0."""
    if isinstance(X, pd.DataFrame):
        columns = [
            _make_series([texts[j] for texts in rows], X.iloc[:, j]) for j in range(X.shape[1])
        ]
        frame = pd.concat(columns, axis=1)
        frame.columns = X.columns
        return frame
    values = [make_row(texts) for texts in rows]
    if isinstance(X, pd.Series):
        return _make_series(values, X)
    if isinstance(X, np.ndarray):
        array = np.empty((len(values), *X.shape[1:]), dtype=object)
        for i, value in enumerate(values):
            array[i] = value
        # Not the width of X: new texts may be longer.
        return array.astype(str if X.dtype.kind == "U" else X.dtype)
    return tuple(values) if isinstance(X, tuple) else values


def join_rows(first: Any, second: Any) -> Any:
    """Return the rows of two containers of one kind; pandas objects are numbered from 0."""
    if isinstance(first, pd.Series | pd.DataFrame):
        return pd.concat([first, second], ignore_index=True)
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    return (*first, *second) if isinstance(first, tuple) else [*first, *second]


def _make_series(values: list[Any], like: pd.Series) -> pd.Series:
    dtype: Any = like.dtype
    if isinstance(dtype, pd.CategoricalDtype) and not set(values) <= set(dtype.categories):
        dtype = object  # New texts are no categories of the old ones.
    return pd.Series(values, dtype=dtype, name=like.name)
