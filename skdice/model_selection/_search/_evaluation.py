"""One set of parameters, evaluated fold by fold."""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing

from ..._pipeline import with_parameters


@dataclass(frozen=True)
class CrossValidation:
    """What stays the same for all trials of a search.

    Attributes
    ----------
    estimator : estimator
        A copy of it is fitted for each fold.
    X, y : rows and their labels
    splits : list of (train, test), ndarrays of row indices
    scorer : callable ``scorer(estimator, X, y)``
    fit_parameters : dict
        Arrays with a value for each row, passed to ``fit`` (``sample_weight``).
    """

    estimator: Any
    X: Any
    y: Any
    splits: Sequence[tuple[np.ndarray, np.ndarray]]
    scorer: Callable[..., Any]
    fit_parameters: Mapping[str, Any]


class FoldResult(NamedTuple):
    """What came of a fold: a score, or an error with a score of NaN."""

    score: float
    fit_time: float
    score_time: float
    error: Exception | None


def evaluate_folds(task: CrossValidation, parameters: Mapping[str, Any]) -> Iterator[FoldResult]:
    """Fit and score one set of parameters on the folds in turn; the caller may stop between them.

    Parameters
    ----------
    task : CrossValidation
    parameters : dict
        What is set on a copy of the estimator.

    Yields
    ------
    FoldResult
        One for each fold, in order. An Exception of ``fit`` or of the scorer is in it;
        ``KeyboardInterrupt`` and the like are raised.
    """
    for train, test in task.splits:
        yield _evaluate_fold(task, parameters, train, test)


def _evaluate_fold(
    task: CrossValidation, parameters: Mapping[str, Any], train: np.ndarray, test: np.ndarray
) -> FoldResult:
    score, fit_time, failed = math.nan, None, None
    start = time.perf_counter()
    try:
        estimator = with_parameters(task.estimator, parameters)
        fit_parameters = {
            name: _safe_indexing(value, train) for name, value in task.fit_parameters.items()
        }
        estimator.fit(
            _safe_indexing(task.X, train), _safe_indexing(task.y, train), **fit_parameters
        )
        fit_time = time.perf_counter() - start
        score = _checked_score(
            task.scorer(estimator, _safe_indexing(task.X, test), _safe_indexing(task.y, test))
        )
    except Exception as error:
        failed = error
    total = time.perf_counter() - start
    fit_time = total if fit_time is None else fit_time
    return FoldResult(score, fit_time, total - fit_time, failed)


def _checked_score(score: Any) -> float:
    is_number = isinstance(score, numbers.Real) or (np.ndim(score) == 0 and hasattr(score, "item"))
    if not is_number or math.isnan(score):
        raise ValueError(
            f"The scoring of DiceSearchCV must give a number that is not NaN. Got {score!r} "
            f"instead."
        )
    return float(score)
