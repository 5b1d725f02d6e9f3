"""Fits of parts of the rows: decisions out of fold, losses compared in folds, and teachers.

A fit is a function here, ``fit(task, settings, rows, valid, unlabeled)``, which returns a
:class:`FitResult`: the fit of all rows asks for folds, and each fold is a fit.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone

from .._inputs import count_of
from ..losses import LossName
from ..tasks import Logits, Rows, Task, TeachableTask, TeacherLabels, in_columns, split_folds
from ._fitted import FitResult, Fitted
from ._network import logits_of
from ._settings import Settings
from .auto import Choice

# Folds in which a decision is tuned on the training rows.
N_FOLDS = 5
# Losses that "cv" compares.
_CV_LOSSES: tuple[LossName, ...] = ("ce", "dice")
# Networks that label rows without labels (benchmarks/RESULTS.md, "Self-training").
_N_TEACHERS = 3

Fit: TypeAlias = Callable[..., FitResult]
# The rows to train on and those to test on, of each fold.
Splits: TypeAlias = Sequence[tuple[np.ndarray, np.ndarray]]


def out_of_fold_scores(
    fit: Fit,
    task: Task,
    settings: Settings,
    rows: Rows,
    *,
    seed: int,
    valid: Rows | None = None,
    unlabeled: Rows | None = None,
    n_folds: int = N_FOLDS,
) -> list[Any]:
    """Return the scores of each row by a network that has not seen it.

    The task has learned from all rows. Logits have its classes; those that a fold's network does
    not know get the lowest logit there is. There are ``n_folds``, fewer if there are not so many
    rows, groups of rows, or rows of a class. Two folds at least, or a ValueError.
    """
    found: list[Any] = [None] * len(rows)
    splits = split_folds(rows, task.groups(rows.X), n_folds, seed)
    for part, logits, test in _fold_fits(fit, task, settings, rows, valid, unlabeled, splits):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # The fit of all rows says it.
            scores = part.task.scores(rows.take(test).X, part.reader, logits)
        known, classes = part.task.class_names, task.class_names
        if task.head.classes is not None and known != classes:
            lowest = min((float(row.min()) for row in scores if row.size), default=0.0)
            scores = [in_columns(row, known, classes, lowest) for row in scores]
        for i, score in zip(test, scores):
            found[i] = score
    return found


def compare_losses(
    fit: Fit,
    task: Task,
    settings: Settings,
    rows: Rows,
    valid: Rows | None,
    unlabeled: Rows | None,
    seed: int,
) -> Choice:
    """Return the loss with the better mean score in the folds, each weighted by its test rows.

    Folds whose training rows no network can learn from are left out for both.
    """
    splits = split_folds(rows, task.groups(rows.X), N_FOLDS, seed)
    used, problems = [], []
    for i, (train, test) in enumerate(splits, 1):
        part = rows.take(train)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                task.check_learnable(part, task.facts(part), _CV_LOSSES[0])
            used.append((train, test))
        except ValueError as error:
            problems.append(f"Fold {i} is left out of both: {error}")
    if not used:
        raise ValueError(
            f"loss='cv' compares losses in {len(splits)} folds, and none has training rows that a "
            f"network can learn from. {problems[0]}"
        )
    means, metric = {}, ""
    for name in _CV_LOSSES:
        tried = replace(settings, loss=name, checkpoint_dir=None)
        scores, weights = [], []
        for fitted, logits, test in _fold_fits(fit, task, tried, rows, valid, unlabeled, used):
            tested, metric = rows.take(test), fitted.task.metric_name
            scores.append(fitted.task.validator(tested, fitted.reader)(logits))
            weights.append(len(tested) if tested.weight is None else tested.weight.sum())
        means[name] = float(np.average(scores, weights=weights))
    best = max(means, key=lambda name: means[name])
    shown = " and ".join(f"{mean:.3f} with {name}" for name, mean in means.items())
    why = f"The mean {metric} of {count_of(len(used), 'fold')} of the training rows is {shown}."
    return Choice(best, " ".join([why, *problems]))


def _fold_fits(
    fit: Fit,
    task: Task,
    settings: Settings,
    rows: Rows,
    valid: Rows | None,
    unlabeled: Rows | None,
    splits: Splits,
) -> Iterator[tuple[Fitted, Logits, np.ndarray]]:
    """Fit the training rows of each split; yield the fit, its network and the test rows."""
    asked = _without_folds(task)
    for train, test in splits:
        # Callbacks collect what they see of one fit.
        callbacks = clone(settings.callbacks, safe=False)
        of_part = replace(settings, runtime="torch", callbacks=callbacks)
        with warnings.catch_warnings():
            # What is wrong with rows, the fit of all rows has said.
            warnings.simplefilter("ignore", UserWarning)
            part = fit(asked, of_part, rows.take(train).used(), valid, unlabeled).complete()
        yield part, logits_of(part.task, part.net, part.reader, of_part), test


def teach(
    fit: Fit,
    settings: Settings,
    unlabeled: Rows,
    seed: int,
    task: Task,
    rows: Rows,
    valid: Rows | None,
) -> Rows:
    """Return training rows with rows that had no labels, as a teacher labels them.

    A row without a label weighs as much as its label is probable, times the mean weight of the
    training rows. Training rows are there twice, so that they count for more than what a teacher
    says of other rows.
    """
    given = unlabeled.y
    assert isinstance(task, TeachableTask)
    if isinstance(given, TeacherLabels):
        labelled = task.taught(given.classes, given.predicted, given.p)
    else:
        labelled = _labelled_by_networks(fit, task, settings, unlabeled, seed, rows, valid)
    mean = 1.0 if rows.weight is None else rows.weight.mean()
    taught = rows.join(rows)
    for labels, p in labelled:
        weight = (p * mean).astype(np.float32)
        taught = taught.join(replace(unlabeled, y=labels, weight=weight).used())
    return taught


def _labelled_by_networks(
    fit: Fit,
    task: Task,
    settings: Settings,
    unlabeled: Rows,
    seed: int,
    rows: Rows,
    valid: Rows | None,
) -> list[tuple[Any, np.ndarray]]:
    """Return labels and probabilities of rows, by three networks that learn from the others.

    Of their fit the progress alone is shown: the fit that follows warns of the same.
    """
    teacher = replace(
        settings,
        n_members=max(_N_TEACHERS, settings.n_members),
        random_state=seed,
        validation_fraction=None,
        checkpoint_dir=None,
        callbacks=None,
        runtime="torch",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        result = fit(_without_folds(task), teacher, rows.used(), valid, kind="teacher")
        fitted = result.complete()
        logits = logits_of(fitted.task, fitted.net, fitted.reader, teacher)
        assert isinstance(fitted.task, TeachableTask)
        return fitted.task.label(unlabeled.X, fitted.reader, logits)


def _without_folds(task: Task) -> Task:
    """Return a task that tunes no decision out of fold."""
    return replace(task, tuning=None) if task.tuning == "cv" else task
