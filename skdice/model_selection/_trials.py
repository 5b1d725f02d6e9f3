"""The trials of a search: parameters evaluated fold by fold, and the table of what came of them."""

import math
import numbers
import os
import socket
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from optuna.exceptions import TrialPruned
from optuna.trial import FixedTrial, FrozenTrial, Trial
from scipy.stats import rankdata
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing

from .._digest import digest
from .._pipeline import with_parameters
from ._space import Space, draw_parameters

# User attributes of a trial.
FOLDS = "folds"
ERROR = "error"
_PARAMETERS = "parameters"


class _Fold(NamedTuple):
    """What came of a fold: a score, or an error with the score that it means."""

    score: float
    fit_time: float
    score_time: float
    error: Exception | None


@dataclass(frozen=True)
class Objective:
    """What Optuna maximises: the mean score of a cross-validation.

    `splits` are pairs of row indices (train, test); `fit_parameters`, with a value for each row,
    go to ``fit``.
    """

    estimator: BaseEstimator
    X: Any
    y: Any
    splits: Sequence[tuple[np.ndarray, np.ndarray]]
    scorer: Callable[..., Any]
    fit_parameters: Mapping[str, Any]
    space: Space
    error_score: Any

    def __call__(self, trial: Trial) -> float:
        """Run the folds, report each, and return the mean score; NaN lets a trial fail."""
        trial.set_user_attr("worker", {"host": socket.gethostname(), "pid": os.getpid()})
        parameters = draw_parameters(self.space, trial, self.estimator)
        trial.set_user_attr(_PARAMETERS, digest(parameters))
        folds: list[_Fold] = []
        for train, test in self.splits:
            folds.append(self._evaluate(parameters, train, test))
            _record(trial, folds)
            error = folds[-1].error
            if error is not None and self.error_score == "raise":
                error.add_note(f"In trial {trial.number}, with the parameters {parameters}.")
                raise error
            mean = float(np.mean([fold.score for fold in folds]))
            if math.isnan(mean):
                break
            trial.report(mean, step=len(folds) - 1)
            if len(folds) < len(self.splits) and trial.should_prune():
                raise TrialPruned
        return mean

    def parameters_of(self, trial: FrozenTrial) -> dict[str, Any]:
        """Return what a finished trial had set; raise a ValueError if the space gives others."""
        problem = "it gives other parameters than when the trial ran"
        try:
            fixed = FixedTrial(trial.params, trial.number)
            parameters = draw_parameters(self.space, fixed, self.estimator)
            if digest(parameters) == trial.user_attrs.get(_PARAMETERS):
                return parameters
        except (TypeError, ValueError) as error:
            problem = str(error).rstrip(".")
        raise ValueError(
            f"The space of DiceSearchCV does not fit trial {trial.number} of the study: {problem}. "
            f"It must depend on what the trial suggests alone; another space needs another "
            f"study_name."
        )

    def _evaluate(
        self, parameters: Mapping[str, Any], train: np.ndarray, test: np.ndarray
    ) -> _Fold:
        """Fit and score on one fold; ``KeyboardInterrupt`` and the like are raised."""
        fit_time, failed = None, None
        start = time.perf_counter()
        try:
            estimator = with_parameters(self.estimator, parameters)
            options = {
                name: _safe_indexing(value, train) for name, value in self.fit_parameters.items()
            }
            estimator.fit(_safe_indexing(self.X, train), _safe_indexing(self.y, train), **options)
            fit_time = time.perf_counter() - start
            X, y = _safe_indexing(self.X, test), _safe_indexing(self.y, test)
            score = _checked_score(self.scorer(estimator, X, y))
        except Exception as error:
            failed = error
            score = math.nan if self.error_score == "raise" else float(self.error_score)
        total = time.perf_counter() - start
        fit_time = total if fit_time is None else fit_time
        return _Fold(score, fit_time, total - fit_time, failed)


def _record(trial: Trial, folds: Sequence[_Fold]) -> None:
    """Keep the scores and times of the folds so far, and the first error."""
    table: dict[str, Any] = {
        name: [getattr(fold, name) for fold in folds]
        for name in ("score", "fit_time", "score_time")
    }
    errors = [fold.error for fold in folds if fold.error is not None]
    trial.set_user_attr(FOLDS, {**table, "n_failed": len(errors)})
    if len(errors) == 1 and folds[-1].error is not None:
        text = "".join(traceback.format_exception_only(errors[0])).strip()
        trial.set_user_attr(ERROR, text)
        trial.set_user_attr("traceback", "".join(traceback.format_exception(errors[0])))


def _checked_score(score: Any) -> float:
    is_number = isinstance(score, numbers.Real) or (np.ndim(score) == 0 and hasattr(score, "item"))
    if not is_number or math.isnan(score):
        raise ValueError(f"The scoring must give a number that is not NaN. Got {score!r} instead.")
    return float(score)


def make_cv_results(
    parameters: Sequence[Mapping[str, Any]],
    folds: Sequence[Mapping[str, Sequence[float]]],
    n_splits: int,
) -> dict[str, Any]:
    """Return ``cv_results_`` of candidates, from the "score", "fit_time", "score_time" of folds.

    Folds not run are NaN, and so are mean and standard deviation of a candidate without all of its
    folds, which has the last rank: the mean of those that it ran would mislead.
    """

    def table(name: str) -> np.ndarray:
        columns = zip_longest(*(each[name] for each in folds), fillvalue=np.nan)
        return np.array(list(columns), dtype=np.float64).T

    results: dict[str, Any] = {}
    for name in ("fit_time", "score_time"):
        times = table(name)
        results[f"mean_{name}"] = np.nanmean(times, axis=1)
        results[f"std_{name}"] = np.nanstd(times, axis=1)
    for name in dict.fromkeys(name for each in parameters for name in each):
        results[f"param_{name}"] = _parameter_column(parameters, name)
    results["params"] = [dict(each) for each in parameters]

    scores = table("score")
    for split in range(n_splits):
        results[f"split{split}_test_score"] = scores[:, split]
    results["mean_test_score"] = mean = scores.mean(axis=1)
    results["std_test_score"] = scores.std(axis=1)
    comparable = np.where(np.isnan(mean), -np.inf, mean)
    results["rank_test_score"] = rankdata(-comparable, method="min").astype(np.int32)
    return results


def _parameter_column(parameters: Sequence[Mapping[str, Any]], name: str) -> np.ma.MaskedArray:
    """Return the values of a parameter, masked where a candidate does not have it."""
    given = [each[name] for each in parameters if name in each]
    are_numbers = all(isinstance(value, int | float | np.number | np.bool_) for value in given)
    dtype = np.array(given).dtype if are_numbers else object
    column = np.ma.MaskedArray(np.empty(len(parameters), dtype=dtype), mask=True)
    for row, each in enumerate(parameters):
        if name in each:
            column[row] = each[name]
    return column
