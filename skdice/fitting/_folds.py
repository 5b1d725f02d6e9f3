"""Fits of parts of the rows: scores out of fold, and losses compared in folds."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone

from .._inputs import count_of
from ..exceptions import silent
from ..losses import LossName
from ..tasks import Logits, Rows, Task, in_columns, split_folds
from ._fitted import Fitted
from ._network import logits_of
from ._part import fit_taught, without_folds
from ._prepare import Given
from .auto import Choice

# Folds in which a decision is tuned on the training rows.
N_FOLDS = 5
# Losses that "cv" compares.
_CV_LOSSES: tuple[LossName, ...] = ("ce", "dice")
# The training and the test rows of each fold.
_Splits: TypeAlias = Sequence[tuple[np.ndarray, np.ndarray]]


def out_of_fold_scores(task: Task, given: Given, n_folds: int = N_FOLDS) -> list[Any]:
    """Return the scores of each row by a network that has not seen it.

    If the task has learned from all rows, logits have its classes; those that a fold's network does
    not know get the lowest logit there is. There are ``n_folds``, fewer if there are not so many
    rows, groups of rows, or rows of a class. Two folds at least, or a ValueError.
    """
    found: list[Any] = [None] * len(given.rows)
    for part, logits, test in _fit_parts(task, given, _splits(task, given, n_folds)):
        with silent():
            scores = part.task.scores(given.rows.take(test).X, part.reader, logits)
        known, classes = part.task.class_names, task.class_names
        if task.head.classes is not None and known != classes:
            lowest = min((float(row.min()) for row in scores if row.size), default=0.0)
            scores = [in_columns(row, known, classes, lowest) for row in scores]
        for i, score in zip(test, scores):
            found[i] = score
    return found


def check_folds(task: Task, given: Given) -> None:
    """Raise a ValueError unless a network can learn from the training rows of each fold."""
    splits = _splits(task, given, N_FOLDS)
    for i, error in _find_errors(task, given.rows, splits, given.settings.loss).items():
        raise ValueError(f"Fold {i} of {len(splits)} that tune the decision: {error}")


def compare_losses(task: Task, given: Given) -> Choice:
    """Return the loss with the better mean score in the folds, each weighted by its test rows.

    Folds whose training rows no network can learn from are left out for both.
    """
    rows, splits = given.rows, _splits(task, given, N_FOLDS)
    errors = _find_errors(task, rows, splits, _CV_LOSSES[0])
    used = [split for i, split in enumerate(splits, 1) if i not in errors]
    problems = [f"Fold {i} is left out of both: {error}" for i, error in errors.items()]
    if not used:
        raise ValueError(
            f"loss='cv' compares losses in {len(splits)} folds, and none has training rows that a "
            f"network can learn from. {problems[0]}"
        )
    means, metric = {}, ""
    for name in _CV_LOSSES:
        settings = replace(given.settings, loss=name, checkpoint_dir=None)
        scores, weights = [], []
        for part, logits, test in _fit_parts(task, replace(given, settings=settings), used):
            tested, metric = rows.take(test), part.task.metric_name
            scores.append(part.task.validator(tested, part.reader)(logits))
            weights.append(len(tested) if tested.weight is None else tested.weight.sum())
        means[name] = float(np.average(scores, weights=weights))
    best = max(means, key=lambda name: means[name])
    shown = " and ".join(f"{mean:.3f} with {name}" for name, mean in means.items())
    why = f"The mean {metric} of {count_of(len(used), 'fold')} of the training rows is {shown}."
    return Choice(best, " ".join([why, *problems]))


def _splits(task: Task, given: Given, n_folds: int) -> _Splits:
    return split_folds(given.rows, task.groups(given.rows.X), n_folds, given.seed)


def _fit_parts(
    task: Task, given: Given, splits: _Splits
) -> Iterator[tuple[Fitted, Logits, np.ndarray]]:
    """Fit the training rows of each split; yield the fit, its network and the test rows."""
    for train, test in splits:
        # Callbacks collect what they see of one fit.
        callbacks = clone(given.settings.callbacks, safe=False)
        settings = replace(given.settings, runtime="torch", callbacks=callbacks)
        rows = given.rows.take(train).used()
        part = replace(given, settings=settings, rows=rows, choices={})
        with silent():
            fitted, error = fit_taught(without_folds(task), part)
        if error is not None:
            raise error
        yield fitted, logits_of(fitted.task, fitted.net, fitted.reader, settings), test


def _find_errors(task: Task, rows: Rows, splits: _Splits, loss: Any) -> dict[int, ValueError]:
    """Return why no network can learn from the training rows of a fold, by its number from 1 on."""
    errors = {}
    for i, (train, _) in enumerate(splits, 1):
        part = rows.take(train).used()
        try:
            with silent():
                task.check_learnable(part, task.facts(part), loss)
        except ValueError as error:
            errors[i] = error
    return errors
