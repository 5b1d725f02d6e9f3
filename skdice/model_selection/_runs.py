"""One run of a comparison: fit with one loss and one seed, and count on the test rows."""

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from .._pipeline import final_step, silenced, with_parameters
from ..estimators._base import TextEstimator
from ..estimators._labels import check_labels, is_indicator
from ..estimators._rows import split_rows
from ..metrics._row_counts import RowCounts
from ._decision import tune_decision
from ._space import switch_loss

HELD_OUT_FRACTION = 0.15


class Scored(NamedTuple):
    """A decision of a fitted estimator: the seconds that it took, and its counts."""

    fit_seconds: float
    counts: RowCounts


class LossRun(NamedTuple):
    """What came out of one fit: with its own decision and, if asked for, with a tuned one."""

    own: Scored
    tuned: Scored | None


@dataclass(frozen=True)
class Protocol:
    """What all runs of a comparison share.

    Attributes
    ----------
    task : str
        A key of ``METRICS``.
    X, y, X_test, y_test : rows and their labels
    tune_threshold : bool
        Whether a part of the training rows is held out, to count with a tuned decision as well.
    """

    task: str
    X: Any
    y: Any
    X_test: Any
    y_test: Any
    tune_threshold: bool


def text_estimator(estimator: Any) -> TextEstimator:
    """Return the estimator at the end of a Pipeline, or the estimator itself.

    Raises
    ------
    TypeError
        If it is no estimator of this package.
    """
    _, final = final_step(estimator)
    if not isinstance(final, TextEstimator):
        raise TypeError(
            f"estimator must be an estimator of skdice, such as DiceTokenTagger(), or a Pipeline "
            f"that ends in one; got {estimator!r}."
        )
    return final


def with_loss(estimator: Any, parameters: dict[str, Any], seed: int) -> Any:
    """Return a quiet copy with another loss and seed.

    Parameters
    ----------
    estimator : TextEstimator or Pipeline
    parameters : dict
        ``loss`` and its parameters; those that are not there become None.
    seed : int
    """
    prefix, _ = final_step(estimator)
    settings = switch_loss(parameters) | {"random_state": seed}
    named = {f"{prefix}{name}": value for name, value in settings.items()}
    return with_parameters(silenced(estimator), named)


def run_loss(estimator: Any, protocol: Protocol) -> LossRun:
    """Fit an estimator and count on the test rows.

    Parameters
    ----------
    estimator : TextEstimator or Pipeline
        Not fitted.
    protocol : Protocol
    """
    estimator = clone(estimator)
    X, y = protocol.X, protocol.y
    if protocol.tune_threshold:
        train, held_out = hold_out(estimator, protocol)
        X_part, y_part = _safe_indexing(X, held_out), _safe_indexing(y, held_out)
        X, y = _safe_indexing(X, train), _safe_indexing(y, train)
    start = time.perf_counter()
    estimator.fit(X, y)
    fit_seconds = time.perf_counter() - start

    final = text_estimator(estimator)
    X_test = _transform(estimator, protocol.X_test)
    own = Scored(fit_seconds, _count(protocol, final, X_test))
    if not protocol.tune_threshold:
        return LossRun(own, None)
    start = time.perf_counter()
    tuned = tune_decision(final, _transform(estimator, X_part), y_part)
    fit_seconds += time.perf_counter() - start
    return LossRun(own, Scored(fit_seconds, _count(protocol, tuned, X_test)))


def hold_out(estimator: Any, protocol: Protocol) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and those to tune the decision on.

    They depend on the rows and the seed alone. Classes have equal shares in both parts, and
    questions about one context stay together.
    """
    final = text_estimator(estimator)
    task, rng = final._task, np.random.default_rng(final.random_state)
    classes = groups = None
    if task.find_groups is not None and not isinstance(estimator, Pipeline):
        groups = task.find_groups(protocol.X)
    elif task.is_classifier and not is_indicator(protocol.y):
        labels = check_labels(protocol.y, _num_samples(protocol.y))
        classes = np.unique(labels, return_inverse=True)[1]
    return split_rows(_num_samples(protocol.y), HELD_OUT_FRACTION, rng, classes, groups)


def _transform(estimator: Any, X: Any) -> Any:
    """Return rows as the last step of a Pipeline gets them when it predicts."""
    while isinstance(estimator, Pipeline):
        *steps, (_, last) = estimator.steps
        for _, step in steps:
            is_for_training = hasattr(step, "fit_resample")
            if step is not None and step != "passthrough" and not is_for_training:
                X = step.transform(X)
        estimator = last
    return X


def _count(protocol: Protocol, final: Any, X_test: Any) -> RowCounts:
    counts: RowCounts = final._task.count_rows(
        final, protocol.task, protocol.y_test, final.predict(X_test)
    )
    return counts
