"""From the columns of a Parquet file to the rows of an estimator, and back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from .._inputs import list_rows
from ..estimators._base import TextEstimator
from ..estimators._classifier import TextClassifier
from ..estimators._words import WordTagger

_ROWS = {
    "sentence": "one column of lists of str (the words of a sentence)",
    "text": "one column of str",
    "pair": "two columns of str (the texts of a pair)",
    "question": "two columns of str (question and context)",
}
# Where meta-estimators keep the estimator that predicts.
_FITTED = ("best_estimator_", "estimator_")


@dataclass(frozen=True)
class ColumnPlan:
    """Which columns are read and written.

    Attributes
    ----------
    columns : tuple of str
        What the estimator takes.
    keep : tuple of str
        Copied to the output.
    output : str
        Name of the column of predictions.
    kind : str
        What a row is: a key of ``_ROWS``.
    is_checked : bool
        Whether columns must have the type that the estimator takes; steps of a Pipeline before it
        may make that of something else.
    output_type : pyarrow.DataType
    """

    columns: tuple[str, ...]
    keep: tuple[str, ...]
    output: str
    kind: str
    is_checked: bool
    output_type: pa.DataType

    @property
    def read(self) -> list[str]:
        """Names of all columns that are read, each once."""
        return list(dict.fromkeys((*self.columns, *self.keep)))

    def check_schema(self, schema: pa.Schema, part: str) -> None:
        """Raise a ValueError if a column is missing or of a type that the estimator does not take.

        Parameters
        ----------
        schema : pyarrow.Schema
        part : str
            For the error.
        """
        for name in self.read:
            count = schema.names.count(name)
            if count != 1:
                what = f"{count} columns" if count else "no column"
                raise ValueError(f"Part {part!r} has {what} {name!r}; it has {schema.names}.")
        is_right = _is_words if self.kind == "sentence" else _is_text
        for name in self.columns if self.is_checked else ():
            kind = schema.field(name).type
            if not is_right(kind):
                raise ValueError(
                    f"Column {name!r} of part {part!r} is of type {kind}; the estimator takes "
                    f"{_ROWS[self.kind]}."
                )

    def rows(self, batch: pa.RecordBatch, part: str, first_row: int) -> list[Any]:
        """Return what the estimator predicts on.

        Parameters
        ----------
        batch : pyarrow.RecordBatch of n_rows rows
        part : str
            For errors.
        first_row : int
            Number of the first row in the part.

        Returns
        -------
        list of n_rows lists of str, str or (str, str)

        Raises
        ------
        ValueError
            If there are nulls, or bytes that are no text; it names part and rows.
        """
        values = [_to_python(batch.column(name), name, part, first_row) for name in self.columns]
        for name in self.columns:
            _check_nulls(batch.column(name), name, part, first_row)
        return values[0] if len(values) == 1 else list(zip(*values))

    def predictions(self, predicted: Any) -> pa.Array:
        """Return predictions as a column."""
        if hasattr(predicted, "tolist"):
            predicted = predicted.tolist()
        return pa.array(predicted, type=self.output_type)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the output of a part with the given schema."""
        fields = [schema.field(name) for name in self.keep]
        return pa.schema([*fields, pa.field(self.output, self.output_type)])


def plan_columns(estimator: Any, columns: Any, keep: Any, output: Any) -> ColumnPlan:
    """Return which columns are read and written for a fitted estimator.

    Raises
    ------
    TypeError
        If the estimator is none of this package, or names are no str.
    ValueError
        If the number of columns is not that of the estimator, or names are there twice.
    """
    final, is_checked = _final(estimator)
    kind = final._task.row
    columns = _names("columns", columns)
    keep = _names("keep", keep)
    if not isinstance(output, str) or not output:
        raise TypeError(f"output must be the name of a column (str); got {output!r}.")
    n_columns = 2 if kind in ("pair", "question") else 1
    if len(columns) != n_columns:
        raise ValueError(
            f"{type(final).__name__} takes {_ROWS[kind]}; got columns={list(columns)!r}."
        )
    if output in keep:
        raise ValueError(f"output={output!r} is one of the columns to keep, {list(keep)!r}.")
    return ColumnPlan(columns, keep, output, kind, is_checked, _output_type(estimator, final))


def _final(estimator: Any) -> tuple[TextEstimator, bool]:
    """Return the estimator that predicts, and whether it gets the rows as they are."""
    is_first = True
    inner = estimator
    while not isinstance(inner, TextEstimator):
        fitted = [name for name in _FITTED if hasattr(inner, name)]
        if isinstance(inner, Pipeline):
            is_first = is_first and len(inner.steps) == 1
            inner = inner.steps[-1][1]
        elif isinstance(inner, FrozenEstimator):
            inner = inner.estimator
        elif fitted:
            inner = getattr(inner, fitted[0])
        else:
            raise TypeError(
                f"estimator must be a fitted estimator of skdice, a search or Pipeline that ends "
                f"in one, or a directory that save_pretrained wrote; got {estimator!r}."
            )
    return inner, is_first


def _names(parameter: str, names: Any) -> tuple[str, ...]:
    given = [names] if isinstance(names, str) else names
    if not isinstance(given, list | tuple) or not all(
        isinstance(name, str) and name for name in given
    ):
        raise TypeError(f"{parameter} must be a name of a column or a list of them; got {names!r}.")
    if len(set(given)) < len(given):
        raise ValueError(f"{parameter} must have each column once; got {names!r}.")
    return tuple(given)


def _output_type(estimator: Any, final: TextEstimator) -> pa.DataType:
    if isinstance(final, WordTagger):
        return pa.list_(pa.string())
    if not isinstance(final, TextClassifier):
        return pa.string()
    if final._is_multilabel:
        return pa.list_(pa.int8())
    return pa.array(estimator.classes_.tolist()).type


def _to_python(column: pa.Array, name: str, part: str, first_row: int) -> list[Any]:
    try:
        return column.to_pylist()
    except UnicodeDecodeError as error:  # Parquet does not check what is written as text.
        bad = [first_row + row for row, value in enumerate(column) if not _is_valid(value)]
        raise ValueError(
            f"Column {name!r} of part {part!r} has text that is not UTF-8 in {list_rows(bad)} "
            f"(counted from 0). Decode it by its own encoding and write the part again."
        ) from error


def _is_valid(value: pa.Scalar) -> bool:
    try:
        value.as_py()
    except UnicodeDecodeError:
        return False
    return True


def _check_nulls(column: pa.Array, name: str, part: str, first_row: int) -> None:
    nulls = _rows_with_nulls(column)
    if nulls:
        raise ValueError(
            f"Column {name!r} of part {part!r} has null in "
            f"{list_rows([first_row + row for row in nulls])} (counted from 0). Drop such rows or "
            f"fill them."
        )


def _rows_with_nulls(column: pa.Array) -> Sequence[int]:
    """Return the rows that are null or, of a list column, have a null in them."""
    if column.null_count:
        return column.is_null().to_numpy(zero_copy_only=False).nonzero()[0].tolist()
    if not _is_list(column.type) or not column.flatten().null_count:
        return []
    return [row for row, words in enumerate(column.to_pylist()) if None in words]


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    # A column in which all is null has no other type; rows are checked later.
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return pa.types.is_null(kind) or any(test(kind) for test in tests)


def _is_words(kind: pa.DataType) -> bool:
    return pa.types.is_null(kind) or (_is_list(kind) and _is_text(kind.value_type))


def _is_list(kind: pa.DataType) -> bool:
    tests = (
        pa.types.is_list,
        pa.types.is_large_list,
        pa.types.is_fixed_size_list,
        pa.types.is_list_view,
        pa.types.is_large_list_view,
    )
    return any(test(kind) for test in tests)
