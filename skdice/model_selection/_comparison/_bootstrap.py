"""Paired bootstrap: the same resamples of the test rows for all runs."""

from collections.abc import Sequence

import numpy as np

from ._row_counts import RowCounts

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
    rng = np.random.default_rng(random_state)
    n_rows = len(runs[0].counts)
    scores = np.empty((len(runs), n_resamples, len(runs[0].metrics)))
    step = max(1, _CELLS_AT_A_TIME // n_rows)
    for first in range(0, n_resamples, step):
        chunk = slice(first, min(first + step, n_resamples))
        weights = _draw_weights(rng, chunk.stop - chunk.start, n_rows)
        for run, run_scores in zip(runs, scores):
            run_scores[chunk] = run.scores(weights @ run.counts.astype(np.float64))
    return scores


def _draw_weights(rng: np.random.Generator, n_resamples: int, n_rows: int) -> np.ndarray:
    """Return how often each resample has each row, (n_resamples, n_rows) of float64."""
    cells = rng.integers(n_rows, size=(n_resamples, n_rows))
    cells += n_rows * np.arange(n_resamples)[:, None]
    counts = np.bincount(cells.ravel(), minlength=n_resamples * n_rows)
    return counts.reshape(n_resamples, n_rows).astype(np.float64)
