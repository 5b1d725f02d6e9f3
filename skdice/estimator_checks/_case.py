"""An estimator under check with its data, and comparisons of what estimators give back."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import SkipTest

import joblib
import numpy as np
from sklearn.base import clone

_OUTPUTS = ("predict", "predict_proba", "decision_function", "no_answer_score")


@dataclass(frozen=True)
class Case:
    """An estimator to check, and rows of text that it can be fitted on.

    Nothing is assumed about a row; `X` and `y` are only measured, indexed and passed on.
    """

    estimator: Any
    X: Any
    y: Any

    def new(self, **params: Any) -> Any:
        """Return a quiet clone with a fixed seed, and with other parameters if any are given."""
        estimator = clone(self.estimator)
        known = estimator.get_params(deep=False)
        if "verbose" in known:
            params.setdefault("verbose", 0)
        if "random_state" in known and not isinstance(known["random_state"], int):
            params.setdefault("random_state", 0)
        return estimator.set_params(**params)

    def fitted(self, **params: Any) -> Any:
        """Return such a clone, fitted on all rows."""
        estimator = self.new(**params)
        estimator.fit(self.X, self.y)
        return estimator

    def outputs(self, estimator: Any) -> dict[str, Any]:
        """Return what a fitted estimator gives for all rows."""
        return outputs(estimator, self.X)


def outputs(estimator: Any, X: Any) -> dict[str, Any]:
    """Return what the prediction methods give for the rows, by name of the method."""
    return {name: getattr(estimator, name)(X) for name in _OUTPUTS if hasattr(estimator, name)}


def take(rows: Any, index: Any) -> Any:
    """Return some rows in a container of the same kind.

    Parameters
    ----------
    rows : list, Series, DataFrame or array
    index : sequence of int
    """
    index = np.asarray(index, dtype=np.intp)
    if hasattr(rows, "iloc"):
        return rows.iloc[index]
    return rows[index] if hasattr(rows, "shape") else [rows[i] for i in index]


def require(condition: Any, message: str) -> None:
    """Raise an AssertionError, also under ``python -O``, unless the condition holds."""
    if not condition:
        raise AssertionError(message)


@contextmanager
def raises(expected: type[Exception], situation: str) -> Iterator[list[Exception]]:
    """Require that the block raises an expected exception, which is left in the list."""
    caught: list[Exception] = []
    try:
        yield caught
    except expected as error:
        caught.append(error)
    except Exception as error:
        raise AssertionError(
            f"{situation} must raise {expected.__name__}; it raised {type(error).__name__}: {error}"
        ) from error
    else:
        raise AssertionError(f"{situation} must raise {expected.__name__}; nothing was raised.")


def require_same_outputs(
    got: Mapping[str, Any], expected: Mapping[str, Any], situation: str, *, atol: float = 0.0
) -> None:
    """Require equal predictions, and scores that are equal up to a tolerance."""
    for name in expected:
        difference = find_difference(got[name], expected[name], None if name == "predict" else atol)
        require(difference is None, f"{name} gives other results {situation}: {difference}.")


def find_difference(got: Any, expected: Any, atol: float | None) -> str | None:
    """Describe the first row in which two outputs differ.

    Parameters
    ----------
    got, expected : sequences of n_rows rows
    atol : float or None
        For rows of numbers the largest difference that does not count; None is for labels.
    """
    if len(got) != len(expected):
        return f"{len(got)} rows instead of {len(expected)}"
    for i, (row, other) in enumerate(zip(got, expected)):
        if atol is None:
            same = _plain(row) == _plain(other)
        else:
            row, other = np.asarray(row), np.asarray(other)
            same = row.shape == other.shape and np.allclose(row, other, rtol=0, atol=atol)
        if not same:
            return f"row {i} is {_shorten(row)} instead of {_shorten(other)}"
    return None


def fingerprint(value: Any) -> Any:
    """Return something that changes when the value does; its identity if it cannot be pickled."""
    try:
        return joblib.hash(value)
    except Exception:
        return id(value)


def require_parameter(estimator: Any, name: str) -> None:
    """Skip the check of estimators that lack the parameter."""
    if name not in estimator.get_params(deep=False):
        raise SkipTest(f"{type(estimator).__name__} has no parameter {name!r}.")


def _plain(row: Any) -> Any:
    return row.tolist() if hasattr(row, "tolist") else row


def _shorten(row: Any) -> str:
    shown = " ".join(repr(_plain(row)).split())
    return shown if len(shown) <= 80 else shown[:77] + "..."
