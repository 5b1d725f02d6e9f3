"""Paired bootstrap: the same resamples of the test rows for all runs."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import bootstrap

from ...metrics._row_counts import RowCounts

# Cells (resample, row) whose weights are held at a time, at 8 bytes.
_CELLS_AT_A_TIME = 2_000_000


def resample_scores(
    runs: Sequence[RowCounts], n_resamples: int = 2000, random_state: int = 0
) -> np.ndarray:
    """Compute the metrics of runs on resamples of their test rows.

    Parameters
    ----------
    runs : sequence of n_runs RowCounts
        Of the same rows.
    n_resamples : int, default=2000
    random_state : int, default=0

    Returns
    -------
    ndarray of shape (n_runs, n_resamples, n_metrics)
        A resample has as many rows as there are, drawn with replacement, the same for all runs.
    """
    n_rows = len(runs[0].counts)

    def score(rows: np.ndarray, axis: int) -> np.ndarray:
        """Return the metrics of resamples, (n_runs, n_metrics, n_resamples)."""
        weights = _count(rows, n_rows)
        return np.stack([run.scores(weights @ run.counts.astype(np.float64)).T for run in runs])

    if n_rows == 1:  # Every resample is the row, which scipy does not take.
        return np.repeat(score(np.zeros((1, 1), int), -1).swapaxes(1, 2), n_resamples, axis=1)
    # What is resampled are the numbers of the rows: so it is paired, whatever a row counts.
    found = bootstrap(
        (np.arange(n_rows),),
        score,
        n_resamples=n_resamples,
        batch=max(1, _CELLS_AT_A_TIME // n_rows),
        vectorized=True,
        method="percentile",
        random_state=np.random.default_rng(random_state),
    )
    return found.bootstrap_distribution.swapaxes(1, 2)


def _count(rows: np.ndarray, n_rows: int) -> np.ndarray:
    """Return how often each resample has each row, (n_resamples, n_rows) of float64."""
    cells = rows + n_rows * np.arange(len(rows))[:, None]
    counts = np.bincount(cells.ravel(), minlength=len(rows) * n_rows)
    return counts.reshape(len(rows), n_rows).astype(np.float64)
