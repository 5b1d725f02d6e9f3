"""A fit of all that was given; folds choose what "cv" leaves to them."""

from dataclasses import replace

from ..tasks import Task
from ._folds import check_folds, compare_losses, out_of_fold_scores
from ._part import Outcome, fit_taught, tuned
from ._prepare import Given


def fit(task: Task, given: Given) -> Outcome:
    """Fine-tune a network to the rows; the task has learned nothing yet.

    An error or Ctrl-C that ends the training once a network has weights is in the result.
    """
    settings, rows = given.settings, given.rows
    if settings.loss == "cv":
        task.check_learnable(rows, task.facts(rows), settings.loss)
        chosen = compare_losses(task, given)
        settings = replace(settings, loss=chosen.value)
        given = replace(given, settings=settings, choices={"loss": chosen})
    if task.tuning == "cv":
        check_folds(task, given)
    fitted, error = fit_taught(task, given)
    if error is not None or task.tuning != "cv":
        return Outcome(fitted, error)
    where = "the training rows, as fits without them predict them"
    return tuned(fitted, rows, lambda: out_of_fold_scores(fitted.task, given), where)
