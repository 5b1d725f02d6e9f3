"""Paired bootstrap: the same resamples of the test rows for all runs."""

from collections.abc import Sequence

import numpy as np

from ...metrics._bootstrap import resampled_sums
from ...metrics._row_counts import RowCounts


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
    together = np.concatenate([run.counts for run in runs], axis=1)
    sums = resampled_sums(together, n_resamples, random_state)
    ends = np.cumsum([run.counts.shape[1] for run in runs])[:-1]
    return np.stack([run.scores(part) for run, part in zip(runs, np.split(sums, ends, axis=1))])
