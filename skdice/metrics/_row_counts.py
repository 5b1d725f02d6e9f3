"""What each test row adds to the counts that metrics are computed from, and how sure these are."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._inputs import check_rows
from .._parameters import check_number
from .._typing import TagSequences
from ._entities import check_same_number
from ._scores import divide, entities_of_rows, entity_f1_score, precision_recall_f1, resampled_sums
from ._squad import score_rows

METRICS = {
    "entities": ("precision", "recall", "f1"),
    "tagging": ("accuracy", "f1"),
    "pairs": ("precision", "recall", "f1"),
    "texts": ("accuracy", "f1"),
    "questions": ("exact_match", "f1"),
}


@dataclass(frozen=True)
class RowCounts:
    """Counts of each test row; the metrics of any rows follow from the sums of their counts.

    ``task`` is a key of ``METRICS``. The columns of ``counts``, (n_rows, n_counts), are for
    "entities" and "pairs" the correct, the predicted and the actual items, each of these (n_rows,
    n_labels); for "tagging" and "texts" what is right and of how many (one column each), then the
    same three; for "questions" exact match, F1 and 1.

    With several labels F1 is the macro average over those that occur, as in scikit-learn; a micro
    average has its items in one column.
    """

    task: str
    counts: np.ndarray

    @property
    def metrics(self) -> tuple[str, ...]:
        return METRICS[self.task]

    def scores(self, totals: np.ndarray) -> np.ndarray:
        """Compute the metrics, (..., n_metrics), in [0, 1]; 0 where there is nothing to divide by.

        ``totals`` are sums of counts over rows, (..., n_counts), which may be weighted.
        """
        if self.task == "questions":
            return divide(totals[..., :2], totals[..., 2:])
        if self.task in ("entities", "pairs"):
            return _macro_average(totals)
        accuracy = divide(totals[..., :1], totals[..., 1:2])
        return np.concatenate([accuracy, _macro_average(totals[..., 2:])[..., 2:]], axis=-1)

    def of_all_rows(self, weight: np.ndarray | None = None) -> dict[str, float]:
        """Return the metrics of all rows by name; a weight of a row counts as repetition."""
        weight = np.ones(len(self.counts)) if weight is None else weight.astype(np.float64)
        totals = weight @ self.counts
        return dict(zip(self.metrics, self.scores(totals).tolist()))


def count_rows(task: str, y_true: Any, y_pred: Any, pos_label: Any = None) -> RowCounts:
    """Count what each row of a task, a key of ``METRICS``, adds; rows are checked before.

    With a `pos_label` only this one of two classes is counted.
    """
    if task == "entities":
        return RowCounts(task, count_entities(y_true, y_pred))
    if task == "tagging":
        right = [sum(a == b for a, b in zip(*rows)) for rows in zip(y_true, y_pred)]
        n_words = np.array([len(row) for row in y_true])
        return RowCounts(task, np.stack([right, n_words, right, n_words, n_words], axis=1))
    if task == "questions":
        scores = score_rows(y_true, y_pred, "2.0")
        ones = np.ones(len(scores.f1))
        return RowCounts(task, np.stack([scores.exact_match, scores.f1, ones], axis=1))
    if y_pred.ndim == 2:
        right = (y_true == y_pred).all(axis=1)
        cells = np.stack([y_true & y_pred, y_pred, y_true], axis=1)
        items = cells.sum(axis=2, dtype=np.int32)
    else:
        right = y_true == y_pred
        items = count_labels(y_true, y_pred, pos_label)
    if task == "pairs":
        return RowCounts(task, items)
    ones = np.ones(len(items), dtype=items.dtype)
    return RowCounts(task, np.column_stack([right.astype(items.dtype), ones, items]))


def count_entities(y_true: TagSequences, y_pred: TagSequences) -> np.ndarray:
    """Return the correct, the predicted and the actual entities, (n_sentences, 3)."""
    rows = entities_of_rows(y_true, y_pred, None, None)
    counts = [(len(true & pred), len(pred), len(true)) for true, pred in rows]
    return np.array(counts, dtype=np.int32).reshape(-1, 3)


def count_labels(y_true: np.ndarray, y_pred: np.ndarray, pos_label: Any = None) -> np.ndarray:
    """Return the correct, predicted and actual rows of each label, (n_rows, 3 * n_labels), uint8.

    The labels are those that occur, or `pos_label` alone.
    """
    if pos_label is not None:
        is_true, is_pred = (y_true == pos_label)[:, None], (y_pred == pos_label)[:, None]
    else:
        labels, codes = np.unique(np.concatenate([y_true, y_pred]), return_inverse=True)
        one_hot = codes[:, None] == np.arange(len(labels))
        is_true, is_pred = one_hot[: len(y_true)], one_hot[len(y_true) :]
    counts: np.ndarray = np.concatenate([is_true & is_pred, is_pred, is_true], axis=1)
    return counts.astype(np.uint8)


def _macro_average(totals: np.ndarray) -> np.ndarray:
    """Return precision, recall and F1, each the mean over the labels that occur."""
    counts = totals.reshape(*totals.shape[:-1], 3, -1)
    n_labels = (counts[..., 1:, :].sum(axis=-2) > 0).sum(axis=-1)
    sums = [score.sum(axis=-1) for score in precision_recall_f1(counts)]
    return divide(np.stack(sums, axis=-1), n_labels[..., None])


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

    It covers other test rows of the same kind. It covers neither other training rows nor other
    seeds, which change the score as much if there are few rows.

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
    tail = (1 - confidence_level) / 2
    low, high = np.quantile(scores, [tail, 1 - tail])
    return float(low), float(high)
