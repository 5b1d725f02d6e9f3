"""Fits of given rows: of rows with labels, and on them, of rows that a teacher labels."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from ..exceptions import silent
from ..tasks import Rows, Task, TeachableTask, TeacherLabels
from ._fitted import Fitted
from ._network import logits_of
from ._plan import choose
from ._prepare import Given, Labelled, prepare
from ._train import Trained, train
from .auto import Choice, table_of, with_choices

# Networks that label rows without labels (benchmarks/RESULTS.md, "Self-training").
_N_TEACHERS = 3


class Outcome(NamedTuple):
    """How a fit ended: what was learned until then, and the error that ended it, if one did."""

    fitted: Fitted
    error: BaseException | None


def fit_rows(task: Task, given: Given, labelled: Labelled | None = None) -> Outcome:
    """Fit the rows with labels, and those whose labels are given beside them."""
    trained = train(choose(prepare(task, given, labelled)))
    fitted, valid = _fitted_of(trained), trained.plan.prepared.valid
    if trained.error is not None or task.tuning != "validation" or valid is None:
        return Outcome(fitted, trained.error)
    logits = logits_of(fitted.task, fitted.net, fitted.reader, trained.plan.settings)
    where = f"the {len(valid):,} rows that are held out"
    return tuned(fitted, valid, lambda: fitted.task.scores(valid.X, fitted.reader, logits), where)


def _fitted_of(trained: Trained) -> Fitted:
    """Return what was learned, with the decision as it is before it is tuned."""
    plan, kept = trained.plan, trained.kept
    prepared, first = plan.prepared, plan.runs[kept.runs[0]]
    unlabeled = prepared.given.unlabeled
    return Fitted(
        task=prepared.task,
        reader=prepared.reader,
        net=kept.net,
        loss=first.loss,
        merge=kept.merge,
        runs=trained.runs,
        score=kept.score,
        choices=table_of({**plan.choices, **kept.choices}),
        history=trained.history,
        negative_ratio=first.training_set.ratio,
        n_rows=prepared.facts.n_rows,
        n_unlabeled=0 if unlabeled is None else len(unlabeled),
        feature_names=prepared.given.feature_names,
        interrupted=trained.error is not None,
    )


def tuned(fitted: Fitted, rows: Rows, scores: Callable[[], list[Any]], where: str) -> Outcome:
    """Return the fit with the decision that is best on rows, whose scores are still to be found."""
    try:
        task = fitted.task.tune(rows, scores())
    except BaseException as error:
        return Outcome(replace(fitted, interrupted=True), error)
    found = {
        name.removesuffix("_"): Choice(value, f"It was tuned on {where}.")
        for name, value in task.decision.items()
    }
    choices = with_choices(fitted.choices, found)
    return Outcome(replace(fitted, task=task, choices=choices), None)


def fit_taught(task: Task, given: Given) -> Outcome:
    """Fit rows with labels and rows without, which a teacher or three networks label first."""
    if given.unlabeled is None or isinstance(given.unlabeled.y, TeacherLabels):
        return fit_rows(task, given)
    return fit_rows(task, given, _label(task, given, given.unlabeled))


def _label(task: Task, given: Given, unlabeled: Rows) -> Labelled:
    """Return labels and probabilities of rows, by three networks that learn from the others."""
    training, valid, _ = given.split()
    settings = replace(
        given.settings,
        n_members=max(_N_TEACHERS, given.settings.n_members),
        random_state=given.seed,
        validation_fraction=None,
        checkpoint_dir=None,
        callbacks=None,
        runtime="torch",
    )
    teacher = Given(
        settings=settings,
        rows=training.used(),
        valid=valid,
        seed=given.seed,
        network="teacher",
    )
    with silent():
        fitted, error = fit_rows(without_folds(task), teacher)
        if error is not None:
            raise error
        assert isinstance(fitted.task, TeachableTask)
        logits = logits_of(fitted.task, fitted.net, fitted.reader, settings)
        return fitted.task.label(unlabeled.X, fitted.reader, logits)


def without_folds(task: Task) -> Task:
    """Return a task that tunes no decision out of fold."""
    return replace(task, tuning=None) if task.tuning == "cv" else task
