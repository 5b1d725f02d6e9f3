"""Sums of counts over resamples of the rows, and percentiles of what follows from them."""

import numpy as np
from numpy.typing import NDArray


def interval(scores: NDArray[np.float64], confidence_level: float) -> NDArray[np.float64]:
    """Return the lower and the upper percentile over the first axis, (2, ...)."""
    tail = (1 - confidence_level) / 2
    ends: NDArray[np.float64] = np.quantile(scores, [tail, 1 - tail], axis=0)
    return ends


def resampled_sums(counts: np.ndarray, n_resamples: int, random_state: int) -> NDArray[np.float64]:
    """Return the sums of counts over resamples of the rows, (n_resamples, n_counts).

    Columns of `counts`, (n_rows, n_counts), of several runs beside each other are resampled alike;
    a resample has n_rows rows.
    """
    rng = np.random.default_rng(random_state)
    n_rows, wide = len(counts), counts.astype(np.float64)
    sums = np.empty((n_resamples, wide.shape[1]))
    for total in sums:
        times_drawn = np.bincount(rng.integers(n_rows, size=n_rows), minlength=n_rows)
        np.matmul(times_drawn.astype(np.float64), wide, out=total)
    return sums
