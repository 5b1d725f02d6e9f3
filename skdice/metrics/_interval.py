"""How sure a score is: an interval over test rows."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .._inputs import check_rows
from .._parameters import check_number
from ._entities import check_same_number
from ._row_counts import RowCounts, count_entities
from ._scores import entity_f1_score, interval, resampled_sums


def bootstrap_interval(
    y_true: Any,
    y_pred: Any,
    *,
    metric: Callable[..., Any] = entity_f1_score,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    random_state: int = 0,
) -> tuple[float, float]:
    """Compute the ends of an interval of a score over test rows: the percentile bootstrap.

    It says how far the score would move with other test rows of the same kind. It knows nothing of
    other training rows or seeds, which move it as much where there are few rows.

    Parameters
    ----------
    y_true, y_pred : list, Series or array of rows
        As the metric takes them; rows are drawn with replacement, sentences as a whole.
    metric : callable, default=entity_f1_score
        ``metric(y_true, y_pred)``, called for each resample, unless it is the default, whose counts
        are added up.
    confidence_level : float, default=0.95
    n_resamples : int, default=1000
    random_state : int, default=0

    Raises
    ------
    ValueError
        If the numbers of rows differ, or there are none, or a parameter is out of range.

    Examples
    --------
    >>> from skdice.metrics import bootstrap_interval
    >>> y_true = [["B-PER", "O"], ["O", "B-LOC"], ["B-LOC", "O"], ["O", "B-PER"]] * 25
    >>> y_pred = [["B-PER", "O"], ["O", "B-LOC"], ["B-LOC", "O"], ["O", "O"]] * 25
    >>> low, high = bootstrap_interval(y_true, y_pred)
    >>> round(low, 3), round(high, 3)
    (0.795, 0.907)
    """
    owner = "bootstrap_interval"
    check_number(owner, "confidence_level", confidence_level, low=0, high=1, closed="neither")
    check_number(owner, "n_resamples", n_resamples, low=1, integer=True)
    true, pred = check_rows(y_true, "y_true", "rows"), check_rows(y_pred, "y_pred", "rows")
    check_same_number(true, pred, "rows")
    if metric is entity_f1_score:
        counts = RowCounts("entities", count_entities(y_true, y_pred))
        sums = resampled_sums(counts.counts, n_resamples, random_state)
        scores = counts.scores(sums)[:, counts.metrics.index("f1")]
    else:
        rng = np.random.default_rng(random_state)
        draws = (rng.integers(len(true), size=len(true)) for _ in range(n_resamples))
        scores = np.array([metric([true[i] for i in d], [pred[i] for i in d]) for d in draws])
    low, high = interval(scores, confidence_level)
    return float(low), float(high)
