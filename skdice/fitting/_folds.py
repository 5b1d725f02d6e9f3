"""Fits of parts of the rows: decisions out of fold, losses compared in folds, and teachers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from .._inputs import count_of
from ..exceptions import silent
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Folds:
    """What a fit is given besides the rows to train on, and fits of parts of these."""

    fit: Callable[..., FitResult]  # of all rows; that of a part is one, too
    settings: Settings
    seed: int
    valid: Rows | None = None  # those that are given to validate on
    unlabeled: Rows | None = None

    def scores(self, task: Task, rows: Rows, n_folds: int = N_FOLDS) -> list[Any]:
        """Return the scores of each row by a network that has not seen it.

        The task has learned from all rows. Logits have its classes; those that a fold's network
        does not know get the lowest logit there is. There are ``n_folds``, fewer if there are not
        so many rows, groups of rows, or rows of a class. Two folds at least, or a ValueError.
        """
        found: list[Any] = [None] * len(rows)
        splits = split_folds(rows, task.groups(rows.X), n_folds, self.seed)
        for part, logits, test in self._fits(task, self.settings, rows, splits):
            with silent():
                scores = part.task.scores(rows.take(test).X, part.reader, logits)
            known, classes = part.task.class_names, task.class_names
            if task.head.classes is not None and known != classes:
                lowest = min((float(row.min()) for row in scores if row.size), default=0.0)
                scores = [in_columns(row, known, classes, lowest) for row in scores]
            for i, score in zip(test, scores):
                found[i] = score
        return found

    def check(self, task: Task, rows: Rows) -> None:
        """Raise a ValueError unless a network can learn from the training rows of each fold."""
        splits = split_folds(rows, task.groups(rows.X), N_FOLDS, self.seed)
        for i, error in _find_errors(task, rows, splits, self.settings.loss).items():
            raise ValueError(f"Fold {i} of {len(splits)} that tune the decision: {error}")

    def compare_losses(self, task: Task, rows: Rows) -> Choice:
        """Return the loss with the better mean score in the folds, each weighted by its test rows.

        Folds whose training rows no network can learn from are left out for both.
        """
        splits = split_folds(rows, task.groups(rows.X), N_FOLDS, self.seed)
        errors = _find_errors(task, rows, splits, _CV_LOSSES[0])
        used = [split for i, split in enumerate(splits, 1) if i not in errors]
        problems = [f"Fold {i} is left out of both: {error}" for i, error in errors.items()]
        if not used:
            raise ValueError(
                f"loss='cv' compares losses in {len(splits)} folds, and none has training rows "
                f"that a network can learn from. {problems[0]}"
            )
        means, metric = {}, ""
        for name in _CV_LOSSES:
            tried = replace(self.settings, loss=name, checkpoint_dir=None)
            scores, weights = [], []
            for fitted, logits, test in self._fits(task, tried, rows, used):
                tested, metric = rows.take(test), fitted.task.metric_name
                scores.append(fitted.task.validator(tested, fitted.reader)(logits))
                weights.append(len(tested) if tested.weight is None else tested.weight.sum())
            means[name] = float(np.average(scores, weights=weights))
        best = max(means, key=lambda name: means[name])
        shown = " and ".join(f"{mean:.3f} with {name}" for name, mean in means.items())
        why = f"The mean {metric} of {count_of(len(used), 'fold')} of the training rows is {shown}."
        return Choice(best, " ".join([why, *problems]))

    def _fits(
        self,
        task: Task,
        settings: Settings,
        rows: Rows,
        splits: Sequence[tuple[np.ndarray, np.ndarray]],
    ) -> Iterator[tuple[Fitted, Logits, np.ndarray]]:
        """Fit the training rows of each split; yield the fit, its network and the test rows."""
        asked = _without_folds(task)
        for train, test in splits:
            # Callbacks collect what they see of one fit.
            callbacks = clone(settings.callbacks, safe=False)
            of_part = replace(settings, runtime="torch", callbacks=callbacks)
            with silent():
                result = self.fit(
                    asked, of_part, rows.take(train).used(), self.valid, self.unlabeled
                )
                part = result.complete()
            yield part, logits_of(part.task, part.net, part.reader, of_part), test

    def teach(self, task: Task, rows: Rows, valid: Rows | None) -> Rows:
        """Return training rows with rows that had no labels, as a teacher labels them.

        A row without a label weighs as much as its label is probable, times the mean weight of the
        training rows. Training rows are there twice, so that they count for more than what a
        teacher says of other rows.
        """
        unlabeled = self.unlabeled
        assert isinstance(task, TeachableTask)
        assert unlabeled is not None
        if isinstance(given := unlabeled.y, TeacherLabels):
            labelled = task.taught(given.classes, given.predicted, given.p)
        else:
            labelled = self._label(task, unlabeled, rows, valid)
        mean = 1.0 if rows.weight is None else rows.weight.mean()
        taught = rows.join(rows)
        for labels, p in labelled:
            weight = (p * mean).astype(np.float32)
            taught = taught.join(replace(unlabeled, y=labels, weight=weight).used())
        return taught

    def _label(
        self, task: Task, unlabeled: Rows, rows: Rows, valid: Rows | None
    ) -> list[tuple[Any, np.ndarray]]:
        """Return labels and probabilities of rows, by three networks that learn from the others."""
        teacher = replace(
            self.settings,
            n_members=max(_N_TEACHERS, self.settings.n_members),
            random_state=self.seed,
            validation_fraction=None,
            checkpoint_dir=None,
            callbacks=None,
            runtime="torch",
        )
        with silent():
            result = self.fit(_without_folds(task), teacher, rows.used(), valid, kind="teacher")
            fitted = result.complete()
            logits = logits_of(fitted.task, fitted.net, fitted.reader, teacher)
            assert isinstance(fitted.task, TeachableTask)
            return fitted.task.label(unlabeled.X, fitted.reader, logits)


def _find_errors(task: Task, rows: Rows, splits: Iterable[Any], loss: Any) -> dict[int, ValueError]:
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


def _without_folds(task: Task) -> Task:
    """Return a task that tunes no decision out of fold."""
    return replace(task, tuning=None) if task.tuning == "cv" else task
