"""The search for decision thresholds on held-out rows."""

from collections.abc import Callable
from typing import Any

import numpy as np

# Calls of the metric, shared out among the thresholds that are tuned.
_MOST_CALLS = 1000
_FEWEST_PER_THRESHOLD = 40
_MOST_ROUNDS = 3


def tune_thresholds(
    decision: np.ndarray, score: Callable[[Any], float], *, is_multilabel: bool
) -> Any:
    """Find the thresholds with the highest score, one by one; of equals those nearest to 0.

    A decision function of shape (n_rows,) is that of two classes, of which the second is predicted
    above the threshold. In one of shape (n_rows, n_thresholds) the class is predicted whose value
    exceeds its threshold by most, or every label that exceeds its own. ``score`` takes a threshold,
    or n_thresholds of them.
    """
    if decision.ndim == 1:
        best, _ = _best(_candidates(decision, _MOST_CALLS), score, 0.0, score(0.0))
        return best
    n_thresholds = decision.shape[1]
    most = max(_FEWEST_PER_THRESHOLD, _MOST_CALLS // n_thresholds)
    thresholds = np.zeros(n_thresholds)
    best_score = score(thresholds)
    for _ in range(_MOST_ROUNDS):
        before = best_score
        for k in range(n_thresholds):
            if is_multilabel:
                margin = decision[:, k]
            else:
                others = np.delete(decision - thresholds, k, axis=1)
                margin = decision[:, k] - others.max(axis=1)

            def score_of(value: float, k: int = k) -> float:
                changed = thresholds.copy()
                changed[k] = value
                return score(changed)

            thresholds[k], best_score = _best(
                _candidates(margin, most), score_of, float(thresholds[k]), best_score
            )
        if best_score <= before:
            break
    return thresholds


def _candidates(margin: np.ndarray, most: int) -> np.ndarray:
    """Return thresholds that part the rows differently, the nearest to 0 first.

    There is one between any two neighbouring values; if that is too many, a selection: half of it
    in equal steps of rank, half in equal steps of value.
    """
    values = np.unique(margin)
    if not len(values):
        return values
    between = (values[1:] + values[:-1]) / 2
    between = np.concatenate([[values[0] - 1], between, [values[-1] + 1]])
    if len(between) > most:
        by_rank = np.linspace(0, len(between) - 1, most // 2).round().astype(np.int64)
        steps = np.linspace(between[0], between[-1], most // 2)
        by_value = np.searchsorted(between, steps).clip(max=len(between) - 1)
        between = between[np.union1d(by_rank, by_value)]
    return between[np.argsort(np.abs(between), kind="stable")]


def _best(
    candidates: np.ndarray, score: Callable[[float], float], start: float, start_score: float
) -> tuple[float, float]:
    best, best_score = start, start_score
    for value in candidates.tolist():
        value_score = score(value)
        if value_score > best_score:
            best, best_score = value, value_score
    return best, best_score
