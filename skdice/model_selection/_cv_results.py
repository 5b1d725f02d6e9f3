"""The table of a search, as ``GridSearchCV`` makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata


def make_cv_results(
    parameters: Sequence[Mapping[str, Any]],
    folds: Sequence[Mapping[str, Sequence[float]]],
    n_splits: int,
) -> dict[str, Any]:
    """Return ``cv_results_``, a row for each candidate.

    Parameters
    ----------
    parameters : list of dict, of length n_candidates
    folds : list of dict, of length n_candidates
        Lists "score", "fit_time" and "score_time" with a value for each fold that was run.
    n_splits : int
        Folds that a candidate should have.

    Returns
    -------
    dict of str to array of shape (n_candidates,), and ``params``, a list of dict
        Folds not run are NaN, and so are mean and standard deviation of a candidate without all of
        its folds: the mean of those that it ran, often the easy ones, would mislead. It has the
        last rank. The times are means over the folds that were run.

    Examples
    --------
    >>> from skdice.model_selection._cv_results import make_cv_results
    >>> times = {"fit_time": [1.0, 1.0], "score_time": [0.5, 0.5]}
    >>> results = make_cv_results(
    ...     [{"loss": "ce"}, {"loss": "focal", "gamma": 2.0}],
    ...     [{"score": [0.5, 0.7], **times}, {"score": [0.6, 0.9], **times}], n_splits=2)
    >>> results["mean_test_score"], results["rank_test_score"]
    (array([0.6 , 0.75]), array([2, 1], dtype=int32))
    >>> results["param_gamma"]
    masked_array(data=[--, 2.0], mask=[ True, False], fill_value=1e+20)
    """
    results: dict[str, Any] = {}
    for name in ("fit_time", "score_time"):
        times = _table(folds, name, n_splits)
        results[f"mean_{name}"], results[f"std_{name}"] = _mean_and_std(times)
    results |= _parameter_columns(parameters)
    results["params"] = [dict(each) for each in parameters]

    scores = _table(folds, "score", n_splits)
    for split in range(n_splits):
        results[f"split{split}_test_score"] = scores[:, split]
    results["mean_test_score"] = mean = scores.mean(axis=1)
    results["std_test_score"] = scores.std(axis=1)
    results["rank_test_score"] = _rank(mean)
    return results


def _table(folds: Sequence[Mapping[str, Sequence[float]]], name: str, n_splits: int) -> np.ndarray:
    table = np.full((len(folds), n_splits), np.nan)
    for row, each in zip(table, folds):
        row[: len(each[name])] = each[name]
    return table


def _mean_and_std(times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each row without NaN; each has a value at least."""
    return np.nanmean(times, axis=1), np.nanstd(times, axis=1)


def _rank(mean: np.ndarray) -> np.ndarray:
    comparable = np.where(np.isnan(mean), -np.inf, mean)
    return rankdata(-comparable, method="min").astype(np.int32)


def _parameter_columns(parameters: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a masked array for each parameter, masked where a candidate does not have it."""
    columns = {}
    for name in dict.fromkeys(name for each in parameters for name in each):
        rows = [row for row, each in enumerate(parameters) if name in each]
        values = [parameters[row][name] for row in rows]
        column = np.ma.MaskedArray(np.empty(len(parameters), dtype=_dtype(values)), mask=True)
        for row, value in zip(rows, values):
            column[row] = value
        columns[f"param_{name}"] = column
    return columns


def _dtype(values: Sequence[Any]) -> np.dtype:
    if all(isinstance(value, bool | int | float | np.number | np.bool_) for value in values):
        return np.array(values).dtype
    return np.dtype(object)
