"""Checks of X, y and sample_weight; errors say what was got, what is allowed, and in which row."""

import numbers
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from reprlib import repr as short_repr
from typing import Any, cast

import numpy as np
import pandas as pd
from scipy import sparse

from ._typing import ObjectArray, T

Span = tuple[int, int, str]
_SPAN_KEYS = {"start", "end", "label"}
_CLASS_LABEL = """ A ClassLabel of datasets knows the names of its numbers:
names = ds.features["ner_tags"].feature.names
y = [[names[i] for i in row] for row in ds["ner_tags"]]"""


def check_rows(rows: Any, name: str, what: str) -> list[Any]:
    """Return the rows of a list, tuple, array or column (`list_items`) as a list.

    For the error, ``name`` is "X" or "y" and ``what`` says what a row should be.
    """
    items = list_items(rows)
    if items is None:
        got = describe(rows)
        if column_names(rows) is not None:
            got = f"a {type(rows).__name__}. Pass one of its columns"
        raise TypeError(f"{name} must be a list, Series or object array of {what}; got {got}.")
    return items


def number_distinct(values: Iterable[Hashable]) -> tuple[np.ndarray, list[Any]]:
    """Return the number of each value and the distinct values, in the order of their occurrence."""
    known: dict[Any, int] = {}
    numbers = [known.setdefault(value, len(known)) for value in values]
    return np.array(numbers, dtype=np.int64), list(known)


def check_groups(groups: Any, n_rows: int) -> list[Any] | None:
    """Return the group of each row, if there are groups."""
    if groups is None:
        return None
    groups = check_rows(groups, "groups", "group names")
    if len(groups) != n_rows:
        raise ValueError(
            f"groups must have one entry for each row of X; got {len(groups)} for {n_rows} rows."
        )
    for i, group in enumerate(groups):
        try:
            hash(group)
        except TypeError:
            raise TypeError(
                f"groups must be names, numbers or tuples of them; that of row {i} is "
                f"{describe(group)}."
            ) from None
    return [None if pd.isna(group) else group for group in groups]  # Each NaN is another object.


def check_token_lists(
    X: Any, first_row: int = 0, name: str = "X", what: str = "words"
) -> list[list[str]]:
    """Return sentences as lists of words, or of tags; errors count rows from ``first_row`` on."""
    found = []
    for i, row in enumerate(check_rows(X, name, f"lists of {what}"), first_row):
        if isinstance(row, str | bytes):
            raise ValueError(
                f"Each row of {name} must be a list of {what}; row {i} is the bare string "
                f"{short_repr(row)}. Split it first, for instance with str.split(), or call "
                "predict_entities, which takes raw texts."
            )
        tokens = list_items(row)
        if tokens is None:
            raise ValueError(
                f"Each row of {name} must be a list of {what} (str); row {i} is {describe(row)}."
            )
        for j, token in enumerate(tokens):
            if not isinstance(token, str):
                is_class = what == "tags" and isinstance(token, numbers.Integral)
                raise ValueError(
                    f"{what.capitalize()} must be str; position {j} of row {i} of {name} is "
                    f"{describe(token)}.{_CLASS_LABEL if is_class else ''}"
                )
        found.append([str(token) for token in tokens])
    return found


def object_array(rows: Sequence[T]) -> ObjectArray[T]:
    """Return a 1-D object array of the rows, also if all of them have one length."""
    return cast("ObjectArray[T]", np.fromiter(rows, dtype=object, count=len(rows)))


def column_names(X: Any) -> list[Any] | None:
    """Return the names of the columns of a table, or None if there are no names."""
    X = indexable_rows(X) if is_table(X) else None
    return list(X.columns) if isinstance(X, pd.DataFrame) else None


def is_table(X: Any) -> bool:
    """Whether X has rows and columns, with names or without."""
    shape = getattr(X, "shape", None)
    return isinstance(shape, tuple) and len(shape) == 2


def table_cells(X: Any) -> np.ndarray:
    """Return the cells of a table that is not sparse, (n_rows, n_columns)."""
    X = indexable_rows(X)
    return X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)


def indexable_rows(rows: Any) -> Any:
    """Return rows that scikit-learn can index: of other libraries as a DataFrame or a list."""
    if isinstance(rows, list | tuple | np.ndarray | pd.DataFrame | pd.Series):
        return rows
    if is_table(rows) and hasattr(rows, "to_pandas"):
        return rows.to_pandas()
    items = list_items(rows)
    return rows if items is None else items


def check_texts(X: Any) -> list[str]:
    """Return raw texts as a list of str; a table of one column is one text per row."""
    if is_table(X):
        X = text_cells(X, 1, "one column of texts")[:, 0]
    texts = check_rows(X, "X", "str")
    _check_all_str(texts, lambda i: f"row {i}")
    return [str(text) for text in texts]


def check_pairs(X: Any) -> list[tuple[str, str]]:
    """Return pairs of texts as a list of tuples."""
    if is_table(X):
        X = text_cells(X, 2, "two columns of texts, the pairs")
    rows = check_rows(X, "X", "pairs of str")
    for i, row in enumerate(rows):
        if not is_pair(row):
            hint = ""
            if len(rows) == 2 and isinstance(row, list | tuple):
                hint = " Two lists of texts become pairs by list(zip(first, second))."
            raise ValueError(
                f"Each row of X must be a pair (a tuple of two str); row {i} is "
                f"{describe(row)}.{hint}"
            )
    texts = [text for row in rows for text in row]
    _check_all_str(texts, lambda i: f"the {('first', 'second')[i % 2]} text of row {i // 2}")
    return [(str(first), str(second)) for first, second in rows]


def is_pair(row: Any) -> bool:
    """Whether a row is a tuple, list or array of two."""
    if isinstance(row, np.ndarray):
        return row.ndim > 0 and len(row) == 2
    return isinstance(row, tuple | list) and len(row) == 2


def text_cells(X: Any, n_columns: int, wanted: str) -> np.ndarray:
    """Return the cells of a table of texts; with another number of columns it is a ValueError."""
    if sparse.issparse(X):
        raise TypeError(f"A table X must be of texts; got {describe(X)}, which holds numbers.")
    if X.shape[1] != n_columns:
        known = column_names(X)
        names = "" if known is None else f": {known}"
        raise ValueError(f"A table X must have {wanted}; got {X.shape[1]} columns{names}.")
    return table_cells(X)


def _check_all_str(texts: Sequence[Any], where: Callable[[int], str]) -> None:
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(
                f"Texts of X must be str (empty ones are allowed); {where(i)} is {describe(text)}."
            )


def check_tags(y: Any, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return tags as lists of str, one tag per word."""
    rows = check_y(y, len(sentences), "lists of tags, one per word of X")
    tags = check_token_lists(rows, name="y", what="tags")
    for i, (sentence, row) in enumerate(zip(sentences, tags)):
        if len(sentence) != len(row):
            raise ValueError(
                f"Every word needs one tag; row {i} has {len(sentence)} words and {len(row)} tags."
            )
    return tags


def check_y(y: Any, n_rows: int, what: str, X: str = "X", name: str = "y") -> list[Any]:
    """Return the rows of y as a list of ``n_rows``; errors say ``what`` a row should be."""
    if y is None:
        raise ValueError(
            f"requires {name} to be passed, but the target {name} is None: it must be {what}."
        )
    rows = check_rows(y, name, what)
    if len(rows) != n_rows:
        raise ValueError(
            f"{X} and {name} must have the same number of rows; got {n_rows} rows of {X} and "
            f"{len(rows)} of {name}."
        )
    return rows


def list_spans(row: Any, name: str, i: int) -> list[Any]:
    """Return the items of a row of spans, which are not checked yet."""
    spans = list_items(row)
    if spans is None:
        raise ValueError(
            f"Each row of {name} must be a list of (start, end, label); row {i} is {describe(row)}."
        )
    return spans


def read_span(span: Any, name: str, where: str) -> Span:
    """Return (start, end, label), which may lie outside of its text; a score is not looked at.

    For the error, ``name`` is "y" or another argument, and ``where`` such as "row 3".
    """
    parts = list_items(span) if isinstance(span, tuple | list | np.ndarray) else None
    if isinstance(span, Mapping) and span.keys() >= _SPAN_KEYS:  # Arrow has no tuples.
        parts = [span["start"], span["end"], span["label"]]
    if parts is None or len(parts) not in (3, 4):
        raise ValueError(
            f"Each span of {name} must be (start, end, label), end exclusive; {where} has {span!r}."
        )
    start, end, label = parts[:3]
    for side, value in (("start", start), ("end", end)):
        if not isinstance(value, numbers.Integral) or isinstance(value, bool):
            raise ValueError(f"The {side} of a span must be an int; {where} has {span!r}.")
    if not isinstance(label, str) or not label:
        raise ValueError(
            f"The label of a span must be a str that is not empty; {where} has {span!r}."
        )
    return int(start), int(end), str(label)


def check_span(
    span: Any, name: str, where: str, size: int | None = None, unit: str = "words"
) -> Span:
    """Return (start, end, label), which must lie within ``size`` units if that is given."""
    start, end, label = read_span(span, name, where)
    if start >= end:
        raise ValueError(
            f"The end of a span is exclusive and must be larger than its start; {where} has "
            f"{(start, end, label)}."
        )
    if start < 0 or (size is not None and end > size):
        has = "" if size is None else f"{size} {unit} and "
        raise ValueError(
            f"A span must lie in its text; {where} has {has}the span {(start, end, label)}."
        )
    return start, end, label


def check_sample_weight(sample_weight: Any, n_texts: int) -> np.ndarray | None:
    """Return one finite weight >= 0 per text, float32, or None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(n_texts, sample_weight)
    try:
        with np.errstate(over="ignore"):  # Too large for float32 is infinite, which is refused.
            weight = np.asarray(indexable_rows(sample_weight), dtype=np.float32)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(
            f"sample_weight must have one number per row of X; got {describe(sample_weight)}, of "
            f"which numpy says: {error}."
        ) from error
    if weight.shape != (n_texts,):
        raise ValueError(
            f"sample_weight must have shape ({n_texts},), one weight per row of X; got shape "
            f"{weight.shape}."
        )
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        raise ValueError(
            f"sample_weight must be finite and not negative; row {bad[0]} has {weight[bad[0]]}."
        )
    if not weight.any():
        raise ValueError("sample_weight must have a weight above zero; it is zero in all rows.")
    return weight


def list_items(value: Any) -> list[Any] | None:
    """Return the items of an ordered container; None for texts, tables and anything else.

    Objects in a list, tuple, array or Series are passed on, not copied. Columns of other libraries
    have ``to_list``, ``tolist`` or ``to_pandas``, or a length.
    """
    if isinstance(value, list | tuple):
        return list(value)
    is_other = isinstance(value, str | bytes | Mapping | Set | type) or sparse.issparse(value)
    is_frame = isinstance(value, pd.DataFrame) or hasattr(value, "to_pandas")
    if is_other or (is_frame and is_table(value)):
        return None
    for method in ("to_list", "tolist"):
        if hasattr(value, method):
            items = getattr(value, method)()
            return items if isinstance(items, list) else None  # A 0-d array gives its value.
    if hasattr(value, "to_pandas"):
        return list_items(value.to_pandas())
    return list(value) if hasattr(value, "__len__") else None


def describe(value: Any) -> str:
    """Return a value and its type in words, for an error."""
    if value is None:
        return "None"
    if isinstance(value, int) and value.bit_length() > 63:  # Python refuses to print the largest.
        return f"an int of {value.bit_length()} bits"
    return f"{' '.join(short_repr(value).split())} of type {type(value).__name__}"


def count_of(n: int, what: str) -> str:
    """Return "1 row" or "2 rows"."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def list_rows(rows: Sequence[int], most: int = 5) -> str:
    """Return "row 3", "rows 3, 5, 9" or the first of many."""
    shown = ", ".join(map(str, rows[:most]))
    return f"row{'s' if len(rows) > 1 else ''} {shown}{', ...' if len(rows) > most else ''}"


def list_some(labels: Sequence[Any], most: int = 20) -> str:
    """Return the first labels and, if there are more, how many."""
    shown = ", ".join(repr(label) for label in labels[:most])
    return shown + (f", ... ({len(labels)} in all)" if len(labels) > most else "")
