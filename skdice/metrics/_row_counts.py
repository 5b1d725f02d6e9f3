"""What each test row adds to the counts that metrics are computed from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._entities import find_entities
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
    n_labels). For "tagging" and "texts" they are right items, all items (one column each), then the
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
        return dict(zip(self.metrics, self.scores(weight @ self.counts).tolist()))


def count_rows(task: str, y_true: Any, y_pred: Any, pos_label: Any = None) -> RowCounts:
    """Count what each row of a task, a key of ``METRICS``, adds; rows are checked before.

    With a `pos_label` only this one of two classes is counted.
    """
    if task == "entities":
        rows = [[{*find_entities(tags)} for tags in both] for both in zip(y_true, y_pred)]
        found = [(len(true & pred), len(pred), len(true)) for true, pred in rows]
        return RowCounts(task, np.array(found, dtype=np.int32).reshape(-1, 3))
    if task == "tagging":
        right = [sum(a == b for a, b in zip(*rows)) for rows in zip(y_true, y_pred)]
        n_words = np.array([len(row) for row in y_true])
        return RowCounts(task, np.stack([right, n_words, right, n_words, n_words], axis=1))
    if task == "questions":
        scores = score_rows(y_true, y_pred, "2.0")
        ones = np.ones(len(scores.f1))
        return RowCounts(task, np.stack([scores.exact_match, scores.f1, ones], axis=1))
    right = y_true == y_pred
    if y_pred.ndim == 2:
        right = right.all(axis=1)
        items = np.stack([y_true & y_pred, y_pred, y_true], axis=1).sum(axis=2, dtype=np.int32)
    else:
        if pos_label is None:
            labels, codes = np.unique(np.concatenate([y_true, y_pred]), return_inverse=True)
            is_true, is_pred = np.split(codes[:, None] == np.arange(len(labels)), [len(y_true)])
        else:
            is_true, is_pred = (y[:, None] == pos_label for y in (y_true, y_pred))
        items = np.concatenate([is_true & is_pred, is_pred, is_true], axis=1).astype(np.uint8)
    if task == "pairs":
        return RowCounts(task, items)
    ones = np.ones(len(items), dtype=items.dtype)
    return RowCounts(task, np.column_stack([right.astype(items.dtype), ones, items]))


def _macro_average(totals: np.ndarray) -> np.ndarray:
    """Return precision, recall and F1, each the mean over the labels that occur."""
    counts = totals.reshape(*totals.shape[:-1], 3, -1)
    n_labels = (counts[..., 1:, :].sum(axis=-2) > 0).sum(axis=-1)
    sums = [score.sum(axis=-1) for score in precision_recall_f1(counts)]
    return divide(np.stack(sums, axis=-1), n_labels[..., None])


def count_by_label(rows: Sequence[Any], labels: Sequence[str]) -> NDArray[np.int64]:
    """Return correct, predicted and actual entities, (n_rows, 3, n_labels); others do not count."""
    number = {label: k for k, label in enumerate(labels)}
    counts = np.zeros((len(rows), 3, len(labels)), dtype=np.int64)
    for row, (true, pred) in zip(counts, rows):
        for part, entities in zip(row, (true & pred, pred, true)):
            for _, _, label in entities:
                if label in number:
                    part[number[label]] += 1
    return counts


def precision_recall_f1(counts: np.ndarray, zero_division: float = 0) -> list[NDArray[np.float64]]:
    """Return the three of counts of shape (..., 3, n_labels): correct, predicted and actual."""
    correct, predicted, actual = np.moveaxis(counts, -2, 0)
    parts = [(correct, predicted), (correct, actual), (2 * correct, predicted + actual)]
    return [divide(*part, zero_division) for part in parts]


def divide(
    numerator: ArrayLike, denominator: ArrayLike, zero_division: float = 0
) -> NDArray[np.float64]:
    """Return the ratios, `zero_division` where the denominator is 0."""
    ratio = np.full(np.shape(numerator), float(zero_division))
    denominator = np.broadcast_to(denominator, ratio.shape)
    np.divide(numerator, denominator, out=ratio, where=denominator > 0)
    return ratio
