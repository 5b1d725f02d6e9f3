"""One run of a comparison: fitted with one loss and seed, and counted on the test rows."""

import math
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from .._pipeline import final_step
from ..estimators import TextEstimator
from ..exceptions import silent
from ..metrics import RowCounts
from ..tasks import Rows, split_rows
from ._decision import tune_decision

# The name of a row with a tuned decision is that of its loss with this ending.
TUNED = "+threshold"
_HELD_OUT_FRACTION = 0.15
# Training rows that a run predicts, to see whether it has learned them.
_N_TRAINING_ROWS = 100


class LossRun(NamedTuple):
    """The results of a fit with its own decision (key "") and, if asked for, a `TUNED` one."""

    decisions: dict[str, tuple[float, RowCounts]]  # seconds, and what was right on the test rows
    n_held_out: int
    # By network, the share by which its training loss fell in the last epoch; 0 with one epoch.
    last_falls: list[float]
    train_f1: float  # on some of the rows that it was trained on


@dataclass(frozen=True)
class Protocol:
    """What all runs of a comparison share; `task` says which metrics it has."""

    task: str
    X: Any
    y: Any
    X_test: Any
    y_test: Any
    tune_threshold: bool


def text_estimator(estimator: BaseEstimator) -> TextEstimator:
    """Return the estimator at the end of a Pipeline; raise a TypeError if it is not of skdice."""
    _, final = final_step(estimator)
    if not isinstance(final, TextEstimator):
        raise TypeError(
            f"estimator must be an estimator of skdice, such as DiceTokenTagger(), or a Pipeline "
            f"that ends in one; got {estimator!r}."
        )
    return final


def run_loss(estimator: BaseEstimator, protocol: Protocol, name: str) -> LossRun:
    """Fit a copy of an estimator and count on the test rows; `name` says what is run to caches."""
    estimator = clone(estimator)
    X, y, held_out = protocol.X, protocol.y, np.empty(0, int)
    if protocol.tune_threshold:
        train, held_out = hold_out(estimator, protocol)
        X, y = _safe_indexing(X, train), _safe_indexing(y, train)
    start = time.perf_counter()
    estimator.fit(X, y)
    seconds = time.perf_counter() - start
    final = text_estimator(estimator)

    def count(decided: Any, X: object, y: object) -> RowCounts:
        return final.internals.task.count_rows(protocol.task, y, decided.predict(X))

    decisions = {"": (seconds, count(estimator, protocol.X_test, protocol.y_test))}
    if protocol.tune_threshold:
        start = time.perf_counter()
        metric = None
        if protocol.task == "texts":  # Their score is accuracy; the F1 of the table is tuned.

            def metric(y_true: object, y_pred: object) -> float:
                return final.internals.task.count_rows("texts", y_true, y_pred).of_all_rows()["f1"]

        X_part, y_part = (_safe_indexing(part, held_out) for part in (protocol.X, protocol.y))
        with silent():  # That few rows moved the decision is seen on the test rows.
            tuned = tune_decision(estimator, X_part, y_part, metric=metric)
        seconds += time.perf_counter() - start
        decisions[TUNED] = seconds, count(tuned, protocol.X_test, protocol.y_test)
    some = np.arange(0, _num_samples(y), math.ceil(_num_samples(y) / _N_TRAINING_ROWS))
    learned = count(estimator, _safe_indexing(X, some), _safe_indexing(y, some))
    history = final.history_
    networks = history.groupby("run") if "run" in history else [(0, history)]
    losses = [epochs["train_loss"].dropna().tolist() for _, epochs in networks]
    return LossRun(
        decisions,
        n_held_out=len(held_out),
        last_falls=[1 - loss[-1] / loss[-2] if len(loss) > 1 else 0.0 for loss in losses],
        train_f1=learned.of_all_rows()["f1"],
    )


def hold_out(estimator: BaseEstimator, protocol: Protocol) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and those to tune the decision on, by the seed.

    Classes have equal shares in both parts, and questions about one context stay together.
    """
    final, n_rows = text_estimator(estimator), _num_samples(protocol.y)
    task, rng = final.internals.task, np.random.default_rng(final.random_state)
    classes = groups = None
    if task.info.is_classifier:
        labels = task.read_y(protocol.y, range(n_rows))
        classes = Rows(range(n_rows), labels, None, None, np.arange(n_rows)).strata
    if not isinstance(estimator, Pipeline):
        groups = task.groups(task.read_X(protocol.X))
    return split_rows(n_rows, _HELD_OUT_FRACTION, rng, classes, groups)
