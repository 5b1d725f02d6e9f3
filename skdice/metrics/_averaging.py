"""Precision, recall and F1 from counts per label, and their averages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

AVERAGES = (None, "micro", "macro", "weighted")
ZERO_DIVISIONS = (0, 1)

Score = float | NDArray[np.float64]


class LabelCounts(NamedTuple):
    """What was right, predicted and there, per label.

    Attributes
    ----------
    labels : list of str
        Sorted.
    correct, predicted, actual : ndarray of int64, shape (n_labels,)
    """

    labels: list[str]
    correct: NDArray[np.int64]
    predicted: NDArray[np.int64]
    actual: NDArray[np.int64]

    @classmethod
    def from_mappings(
        cls, correct: Mapping[str, int], predicted: Mapping[str, int], actual: Mapping[str, int]
    ) -> LabelCounts:
        """Align three label -> count mappings on the labels seen in any of them."""
        labels = sorted({*predicted, *actual})

        def align(counts: Mapping[str, int]) -> NDArray[np.int64]:
            return _int_array(counts.get(label, 0) for label in labels)

        return cls(labels, align(correct), align(predicted), align(actual))


def average_scores(
    counts: LabelCounts, average: str | None, zero_division: float
) -> tuple[Score, Score, Score, int | NDArray[np.int64]]:
    """Compute precision, recall, F1 and support.

    Parameters
    ----------
    counts : LabelCounts
    average : {"micro", "macro", "weighted"} or None
        None gives arrays with one value per label. An average over nothing (macro without
        labels, weighted without support) is the micro average.
    zero_division : {0, 1}
        Value of a score whose denominator is 0.

    Returns
    -------
    precision, recall, f1 : float or ndarray of shape (n_labels,)
    support : int or ndarray of shape (n_labels,)
        The total where averaged.
    """
    _, correct, predicted, actual = counts
    support = int(actual.sum())
    nothing_to_average = (average == "macro" and not counts.labels) or (
        average == "weighted" and support == 0
    )
    if average == "micro" or nothing_to_average:
        correct, predicted, actual = (
            _int_array([count.sum()]) for count in (correct, predicted, actual)
        )
    scores = (
        _divide(correct, predicted, zero_division),
        _divide(correct, actual, zero_division),
        _divide(2 * correct, predicted + actual, zero_division),
    )
    if average is None:
        return (*scores, actual)
    weights = actual if average == "weighted" and support else None
    precision, recall, f1 = (float(np.average(score, weights=weights)) for score in scores)
    return precision, recall, f1, support


def _divide(
    numerator: NDArray[np.int64], denominator: NDArray[np.int64], zero_division: float
) -> NDArray[np.float64]:
    ratio = np.full(numerator.shape, float(zero_division))
    np.divide(numerator, denominator, out=ratio, where=denominator > 0)
    return ratio


def _int_array(values: Iterable[int]) -> NDArray[np.int64]:
    return np.array(list(values), dtype=np.int64)
