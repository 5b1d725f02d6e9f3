"""The layers of a fit: rows with labels; on it a teacher; on it folds; on it all that was given."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from .._inputs import count_of
from .._typing import Splits
from ..exceptions import silent, told_once
from ..losses import LossName
from ..tasks import Network, Rows, Task, TeachableTask, TeacherLabels, in_columns, split_folds
from ._fitted import Fitted
from ._network import network_of
from ._plan import choose
from ._prepare import Given, prepare
from ._train import Trained, train
from .auto import Choice, table_of

_N_TEACHERS = 3  # networks that label rows without labels (RESULTS.md, "Self-training")
N_FOLDS = 5  # in which a decision is tuned on the training rows
_CV_LOSSES: tuple[LossName, ...] = ("ce", "dice")  # those that "cv" compares


class Outcome(NamedTuple):
    """How a fit ended: what was learned until then, and the error that ended it, if one did."""

    fitted: Fitted
    error: BaseException | None


def _decide(trained: Trained) -> Outcome:
    """Return what was learned, with a decision that is tuned on the rows to validate on, if so."""
    plan, kept, runs, history, error = trained
    prepared, first, valid = plan.prepared, plan.runs[kept.runs[0]], plan.prepared.valid
    fitted = Fitted(
        task=prepared.task,
        reader=prepared.reader,
        net=kept.net,
        loss=first.loss,
        runs=runs,
        score=kept.score,
        choices=table_of(plan.choices),
        history=history,
        negative_ratio=first.training_set.ratio,
        n_rows=prepared.facts.n_rows,
        n_unlabeled=len(prepared.given.unlabeled or ()),
        feature_names=prepared.given.feature_names,
        interrupted=error is not None,
    )
    if error is not None or fitted.task.tuning != "validation" or valid is None:
        return Outcome(fitted, error)
    network = network_of(fitted.task, fitted.net, fitted.reader, plan.settings)
    where = f"the {len(valid):,} rows that are held out"
    return _tuned(fitted, valid, lambda: fitted.task.scores(valid.X, network), where)


def _tuned(fitted: Fitted, rows: Rows, scores: Callable[[], list[Any]], where: str) -> Outcome:
    """Return the fit with the decision that is best on rows, whose scores are still to be found."""
    try:
        task = fitted.task.tune(rows, scores())
    except BaseException as error:
        return Outcome(replace(fitted, interrupted=True), error)
    found = {
        name.removesuffix("_"): Choice(value, f"It was tuned on {where}.")
        for name, value in task.decision_attributes.items()
    }
    kept = fitted.choices[~fitted.choices["parameter"].isin(found)]
    choices = pd.concat([kept, table_of(found)], ignore_index=True)
    return Outcome(replace(fitted, task=task, choices=choices), None)


def _fit_rows(task: Task, given: Given) -> Fitted:
    """Fit a part of what was given; decisions out of fold are left to the fit of all."""
    task = replace(task, tuning=None) if task.tuning == "cv" else task
    fitted, error = _decide(train(choose(prepare(task, given))))
    if error is not None:
        raise error
    return fitted


def _labelled(task: Task, given: Given) -> Given:
    """Return what was given; if no teacher labels the unlabeled rows, three networks do."""
    unlabeled = given.unlabeled
    if unlabeled is None or isinstance(unlabeled.y, TeacherLabels):
        return given
    training, valid, _ = given.split()
    n_teachers = max(_N_TEACHERS, given.settings.n_members)
    left_out: dict[str, Any] = dict.fromkeys(("validation_fraction", "checkpoint_dir", "callbacks"))
    settings = replace(given.settings, n_members=n_teachers, **left_out)
    share = n_teachers / (n_teachers + given.settings.n_members)
    teacher = replace(
        given.within(share),
        settings=settings,
        rows=training.used(),
        valid=valid,
        unlabeled=None,
        network="teacher",
    )
    with silent():
        fitted = _fit_rows(task, teacher)
        assert isinstance(fitted.task, TeachableTask)
        network = network_of(fitted.task, fitted.net, fitted.reader, settings)
        said = fitted.task.label(unlabeled.X, network)
    return replace(given, unlabeled=replace(unlabeled, y=said))


def out_of_fold_scores(task: Task, given: Given, n_folds: int = N_FOLDS) -> list[Any]:
    """Return the scores of each row by a network that has not seen it.

    If the task has learned from all rows, logits have its classes; a class that a fold's network
    does not know gets the lowest logit. There are ``n_folds`` at most: no more than rows, groups,
    or rows of a class. Fewer than two are a ValueError.
    """
    found: list[Any] = [None] * len(given.rows)
    splits = split_folds(given.rows, n_folds, given.seed)
    for part, network, test in _fit_parts(task, given, splits):
        with silent():
            scores = part.task.scores(given.rows.take(test).X, network)
        known, classes = part.task.class_names, task.class_names
        if task.head.classes is not None and known != classes:
            lowest = min((float(row.min()) for row in scores if row.size), default=0.0)
            scores = [in_columns(row, known, classes, lowest) for row in scores]
        for i, score in zip(test, scores):
            found[i] = score
    return found


def _compare_losses(task: Task, given: Given) -> Choice:
    """Return the loss with the better mean score in the folds, each weighted by its test rows.

    Folds whose training rows no network can learn from are left out for both.
    """
    rows, splits = given.rows, split_folds(given.rows, N_FOLDS, given.seed)
    errors = _find_errors(task, rows, splits, _CV_LOSSES[0])
    used = [split for i, split in enumerate(splits, 1) if i not in errors]
    problems = [f"Fold {i} is left out of both: {error}" for i, error in errors.items()]
    if not used:
        raise ValueError(
            f"loss='cv' compares losses in {len(splits)} folds, and none has training rows that a "
            f"network can learn from. {problems[0]}"
        )
    means, metric = {}, ""
    for n_before, name in enumerate(_CV_LOSSES):
        settings = replace(given.settings, loss=name, checkpoint_dir=None)
        of_loss = replace(given.within(1 / (len(_CV_LOSSES) - n_before)), settings=settings)
        scores, weights = [], []
        for part, network, test in _fit_parts(task, of_loss, used):
            tested, metric = rows.take(test), part.task.metric_name
            scores.append(part.task.validator(tested, network)())
            weights.append(len(tested) if tested.weight is None else tested.weight.sum())
        means[name] = float(np.average(scores, weights=weights))
    best = max(means, key=lambda name: means[name])
    shown = " and ".join(f"{mean:.3f} with {name}" for name, mean in means.items())
    why = f"The mean {metric} of {count_of(len(used), 'fold')} of the training rows is {shown}."
    return Choice(best, " ".join([why, *problems]))


def _fit_parts(
    task: Task, given: Given, splits: Splits
) -> Iterator[tuple[Fitted, Network, np.ndarray]]:
    """Fit the training rows of each split; yield the fit, its network and the test rows."""
    for n_before, (learned, test) in enumerate(splits):
        # Callbacks collect what they see of one fit.
        callbacks = clone(given.settings.callbacks, safe=False)
        settings = replace(given.settings, callbacks=callbacks)
        rows = given.rows.take(learned).used()
        part = given.within(1 / (len(splits) - n_before))
        part = replace(part, settings=settings, rows=rows, rest=None if n_before else part.rest)
        with silent():
            fitted = _fit_rows(task, _labelled(task, part))
        yield fitted, network_of(fitted.task, fitted.net, fitted.reader, settings), test


def _find_errors(task: Task, rows: Rows, splits: Splits, loss: Any) -> dict[int, ValueError]:
    """Return why no network can learn from the training rows of a fold, by its number from 1 on."""
    errors = {}
    for i, (learned, _) in enumerate(splits, 1):
        part = rows.take(learned).used()
        try:
            with silent():
                task.check_learnable(part, task.facts(part), loss)
        except ValueError as error:
            errors[i] = error
    return errors


@told_once()
def fit(task: Task, given: Given) -> Outcome:
    """Fine-tune a network to the rows; the task has learned nothing yet.

    An error or Ctrl-C that ends the training once a network has weights is in the result.
    """
    settings, rows = given.settings, given.rows
    n_after = N_FOLDS if task.tuning == "cv" else 0
    if settings.loss == "cv":
        n_compared = N_FOLDS * len(_CV_LOSSES)
        chosen = _compare_losses(task, given.within(n_compared / (n_compared + 1 + n_after)))
        settings = replace(settings, loss=chosen.value)
        given = replace(given, settings=settings, choices={"loss": chosen})
    if task.tuning == "cv":
        splits = split_folds(rows, N_FOLDS, given.seed)
        for i, problem in _find_errors(task, rows, splits, settings.loss).items():
            raise ValueError(f"Fold {i} of {len(splits)} that tune the decision: {problem}")
    first = given.within(1 / (1 + n_after))
    fitted, error = _decide(train(choose(prepare(task, _labelled(task, first)))))
    if error is not None or fitted.task.tuning != "cv":
        return Outcome(fitted, error)
    where = "the training rows, as fits without them predict them"
    return _tuned(fitted, rows, lambda: out_of_fold_scores(fitted.task, given), where)
