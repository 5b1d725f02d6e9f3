"""Checks of y: labels of a classifier, and entities as tags or as rows of (start, end, label)."""

import numbers
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import column_or_1d

from .._inputs import (
    Span,
    check_span,
    check_tags,
    check_y,
    column_names,
    describe,
    is_table,
    list_items,
    list_rows,
    list_spans,
    object_array,
    table_cells,
)
from ..metrics import are_chunk_tags, get_entities, infer_scheme
from ..text import spelled_roles
from ._rows import Label, take

# The order matters: a bool is a number, too.
_KINDS: dict[str, Any] = {"str": str, "bool": (bool, np.bool_), "number": numbers.Real}
_NO_MATRIX = (
    "Several labels per row must be a 0/1 indicator matrix of shape (n_rows, n_labels); got"
)


def is_indicator(y: Any) -> bool:
    """Whether y has a row of several numbers for each row of X."""
    if is_table(y):
        return bool(y.shape[1] != 1)
    first, *_ = list_items(y) or [None]
    return isinstance(first, list | tuple | np.ndarray)


def check_labels(y: Any, n_rows: int) -> np.ndarray:
    """Return the labels as an array of shape (n_rows,): of numbers, of bool, or of str objects.

    A label that is missing, no class (0.5), or of another type than the first one is a ValueError,
    which names the row.
    """
    if is_table(y):
        if sparse.issparse(y) or y.shape[1] != 1:
            raise ValueError(
                f"y must have one label per row; got {describe(y)} and of shape {y.shape}."
            )
        y = column_or_1d(table_cells(y), warn=True)
    labels = check_y(y, n_rows, "labels")
    is_scalar = pd.api.types.is_scalar
    missing = [i for i, label in enumerate(labels) if is_scalar(label) and pd.isna(label)]
    if missing:
        raise ValueError(
            f"Every row of X needs a label in y; it is missing in {list_rows(missing)}."
        )
    first_kind = None
    for i, label in enumerate(labels):
        kind = next((kind for kind, types in _KINDS.items() if isinstance(label, types)), None)
        first_kind = first_kind or kind
        if kind is None:
            raise ValueError(f"Labels must be str, int or bool; row {i} of y is {describe(label)}.")
        if kind != first_kind:
            raise ValueError(
                f"All labels must be of one type; row 0 of y is {labels[0]!r} and row {i} is "
                f"{label!r}."
            )
        if isinstance(label, numbers.Integral) and not -(2**63) <= int(label) < 2**63:
            raise ValueError(
                f"Labels that are numbers must fit in 64 bits; row {i} of y is {describe(label)}."
            )
        if kind == "number" and not float(label).is_integer():
            raise ValueError(
                f"Labels must be classes, not continuous values; row {i} of y is {label!r}. "
                f"Unknown label type: continuous."
            )
    if first_kind == "str":
        return object_array([str(label) for label in labels])  # A numpy str loses trailing NULs.
    known = np.array(labels)
    for i, (label, value) in enumerate(zip(labels, known.tolist())):
        if known.dtype.kind == "f" and int(label) != value:
            raise ValueError(
                f"Integers above 2**53 must not be labels beside floats, which would merge some of "
                f"them; row {i} of y is {describe(label)}."
            )
    return known


def check_indicator(y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix of 0 and 1, (n_rows, n_labels) of int64, and the names of its columns."""
    names = column_names(y)
    if names is not None and (is_copy := pd.Index(names).duplicated()).any():
        name = names[int(is_copy.argmax())]
        places = [i for i, other in enumerate(names) if other == name]
        raise ValueError(
            f"The columns of a multi-label y must have different names; {name!r} is that of the "
            f"columns {', '.join(map(str, places))}."
        )
    matrix = _to_matrix(y)
    if matrix.ndim != 2:
        raise ValueError(f"{_NO_MATRIX} an array of shape {matrix.shape}.")
    if matrix.shape[1] == 1:
        raise ValueError(
            "A multi-label y must have two columns or more; got one. One label a row needs no list."
        )
    check_y(matrix, n_rows, "rows of 0 and 1")
    cells = matrix.astype(object).flat
    is_good = [isinstance(value, numbers.Real) and value in (0, 1) for value in cells]
    bad = np.argwhere(~np.array(is_good, dtype=bool).reshape(matrix.shape))
    if len(bad):
        row, column = bad[0]
        raise ValueError(
            f"A multi-label y must have 0 and 1 only; row {row}, column {column} is "
            f"{describe(matrix[row, column])}. sklearn.preprocessing.MultiLabelBinarizer makes "
            f"such a matrix of lists of labels."
        )
    matrix = matrix.astype(np.int64)
    return matrix, np.arange(matrix.shape[1]) if names is None else pd.Index(names).to_numpy()


def check_known_columns(names: Sequence[Label], known: Sequence[Label]) -> None:
    """Raise a ValueError unless the columns of a multi-label y are, in order, those of the fit."""
    numbered = list(range(len(known)))
    are_names = all(isinstance(name, str) for name in names)
    one_has_none = names == numbered or (known == numbered and are_names)
    if len(names) != len(known) or (names != known and not one_has_none):
        raise ValueError(
            f"y must have the {len(known)} columns of the fit, {known}, in that order; got "
            f"{len(names)} columns, {names}. Select them by name: y[{known}]."
        )


def _to_matrix(y: Any) -> np.ndarray:
    """Return an array of numbers, or of the objects as they are."""
    if sparse.issparse(y):
        y = y.toarray()
    y = table_cells(y) if is_table(y) else list_items(y)
    if isinstance(y, np.ndarray):
        return y if y.dtype.kind in "biuf" else y.astype(object)
    rows = [list_items(row) for row in y]
    for i, row in enumerate(rows):
        got = f"a row {describe(y[i])}, row {i}"
        if row is not None and rows[0] is not None:
            if len(row) == len(rows[0]):
                continue
            got = f"rows of different lengths, {len(rows[0])} in row 0 and {len(row)} in row {i}"
        maker = "sklearn.preprocessing.MultiLabelBinarizer makes one of lists of labels."
        raise ValueError(f"{_NO_MATRIX} {got}. {maker}")
    matrix = np.empty((len(rows), len(rows[0] or ())), dtype=object)
    for i, row in enumerate(rows):
        matrix[i] = object_array(row or ())
    return matrix


@dataclass(frozen=True)
class GoldEntities:
    """The entities of sentences."""

    spans: list[list[Span]]  # words, ``end`` exclusive; each span once
    scheme: str | None  # of the tags ("IOB1", "IOB2", "IOBES"), None if y was rows of spans
    roles: dict[str, str]  # how the tags spell I, E and S, where they do it differently

    def take(self, index: np.ndarray) -> "GoldEntities":
        return replace(self, spans=take(self.spans, index))


def check_entities(y: Any, sentences: Sequence[Sequence[str]]) -> GoldEntities:
    """Return the entities of chunk tags, or of rows of (start, end, label), scored or not."""
    rows = check_y(y, len(sentences), "lists of tags or of (start, end, label)")
    filled = [row for row in rows if _has_strings(row) or list_items(row)]
    are_tags = not any(map(len, sentences))
    if filled:  # The kind of most rows is meant, so that an error names the others.
        are_tags = 2 * sum(map(_has_strings, filled)) >= len(filled)
    if are_tags:
        tags = check_tags(rows, sentences)
        distinct = {tag for row in tags for tag in row}
        stray = {tag for tag in distinct if tag != "O" and not are_chunk_tags([tag])}
        if stray:
            i, tag = next((i, tag) for i, row in enumerate(tags) for tag in row if tag in stray)
            raise ValueError(
                f"Tags must be 'O' or a chunk tag ('B-x', 'I-x', ...), or rows of (start, end, "
                f"label); row {i} of y has the tag {tag!r}. For other tags there is "
                f"DiceTokenTagger."
            )
        found = [[(start, end, label) for start, end, label in get_entities(row)] for row in tags]
        return GoldEntities(found, infer_scheme(tags), spelled_roles(distinct))
    spans = []
    for i, (row, sentence) in enumerate(zip(rows, sentences)):
        read = [check_span(s, "y", f"row {i}", len(sentence)) for s in list_spans(row, "y", i)]
        spans.append(list(dict.fromkeys(read)))
    return GoldEntities(spans, None, {})


def _has_strings(row: Any) -> bool:
    return isinstance(row, str) or any(isinstance(item, str) for item in list_items(row) or ())
