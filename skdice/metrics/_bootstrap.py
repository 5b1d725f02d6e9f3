"""Sums of counts over resamples of the rows, and percentiles of what follows from them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import bootstrap

# Cells (resample, row) whose weights are held at a time, at 8 bytes.
_CELLS_AT_A_TIME = 2_000_000


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
    n_rows = len(counts)
    wide = counts.astype(np.float64)
    if n_rows == 1:  # Every resample is the row, which scipy does not take.
        return np.repeat(wide, n_resamples, axis=0)

    def add_up(rows: np.ndarray, axis: int) -> np.ndarray:
        """Return the sums of resamples, (n_counts, n_resamples)."""
        cells = rows + n_rows * np.arange(len(rows))[:, None]
        times_drawn = np.bincount(cells.ravel(), minlength=len(rows) * n_rows)
        return (times_drawn.reshape(len(rows), n_rows).astype(np.float64) @ wide).T

    # What is resampled are the numbers of the rows: so it is paired, whatever a row counts.
    found = bootstrap(
        (np.arange(n_rows),),
        add_up,
        n_resamples=n_resamples,
        batch=max(1, _CELLS_AT_A_TIME // n_rows),
        vectorized=True,
        method="percentile",
        random_state=np.random.default_rng(random_state),
    )
    sums: NDArray[np.float64] = found.bootstrap_distribution.T
    return sums
