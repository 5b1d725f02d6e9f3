"""The loop of a worker: claim a trial, evaluate it, tell the study."""

from __future__ import annotations

import math
import os
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FixedTrial, TrialState

from .._base_model import base_model_digests
from .._digest import digest
from ..estimators._reuse import active_reuse, reuse_work
from ._budget import TrialBudget, withdraw
from ._evaluation import CrossValidation, FoldResult, evaluate_folds
from ._liveness import ending_with, signs_of_life
from ._sampler import NumberedSampler
from ._space import Space, draw_parameters
from ._storage import open_study, quiet_optuna

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

# User attributes of a trial.
FOLDS = "folds"
ERROR = "error"
N_FAILED = "failed_folds"
_TRACEBACK = "traceback"
_PARAMETERS = "parameters"
_BASE_MODELS = "base_models"
# What Optuna says of a name that has another distribution.
_OTHER_DISTRIBUTION = (
    "different distribution kind",
    "different log configuration",
    "dynamic value space",
)


@dataclass(frozen=True)
class StudyPlan:
    """What a worker needs to know of the study besides the cross-validation.

    Attributes
    ----------
    storage, study_name
        Where the study is.
    space : callable
        Gives the parameters of a trial.
    n_trials : int
        Trials that the study is to end with.
    pruner : optuna.pruners.BasePruner
    seed : int
    error_score : "raise" or float
    max_bytes : int
        Memory of a worker for what trials share.
    """

    storage: Any
    study_name: str
    space: Space
    n_trials: int
    pruner: Any
    seed: int
    error_score: Any
    max_bytes: int

    def open(self) -> Study:
        """Open the study, or create it."""
        study = open_study(self.storage, self.study_name, self.pruner)
        study.sampler = NumberedSampler(self.seed)
        return study


def run_worker(
    plan: StudyPlan, task: CrossValidation, seconds: float | None, parent: int | None
) -> None:
    """Run trials in a process of its own, which ends when its parent, if given, is killed."""
    with quiet_optuna(), nullcontext() if parent is None else ending_with(parent):
        run_trials(plan.open(), plan, task, seconds)


def run_trials(
    study: Study,
    plan: StudyPlan,
    task: CrossValidation,
    seconds: float | None,
    after_each: Callable[[], None] = lambda: None,
) -> None:
    """Run trials until the study has enough of them.

    Parameters
    ----------
    study : optuna.study.Study
    plan : StudyPlan
    task : CrossValidation
    seconds : float or None
        After that long no trial is begun.
    after_each : callable
        Called without arguments after each trial.
    """
    budget = TrialBudget(study, plan.n_trials, seconds)
    with nullcontext() if active_reuse() else reuse_work(plan.max_bytes):
        while (trial := budget.claim()) is not None:
            try:
                with signs_of_life(trial):
                    _run_trial(study, trial, plan, task)
            except BaseException:
                # A trial that is told already keeps its state.
                with suppress(Exception):
                    withdraw(study, trial.number, "interrupted")
                raise
            after_each()


def shown_trials(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Return the trials that have scores: the complete and the pruned ones."""
    return [trial for trial in trials if trial.state in (TrialState.COMPLETE, TrialState.PRUNED)]


def parameters_of(trial: FrozenTrial, space: Space, estimator: Any) -> dict[str, Any]:
    """Return the parameters that a finished trial had set on the estimator.

    Raises
    ------
    ValueError
        If the space gives others now.
    """
    problem = None
    try:
        parameters = draw_parameters(space, FixedTrial(trial.params, trial.number), estimator)
        if digest(parameters) != trial.user_attrs.get(_PARAMETERS):
            problem = "it gives other parameters than when the trial ran"
        elif changed := _changed_models(trial, parameters):
            problem = f"the files of {changed} have changed since the trial ran"
    except (TypeError, ValueError) as error:
        problem = str(error).rstrip(".")
    if problem is not None:
        raise ValueError(
            f"The space of DiceSearchCV does not fit trial {trial.number} of the study: {problem}. "
            f"It must depend on what the trial suggests alone, and stay the same for a study; give "
            f"another study_name for another space."
        )
    return parameters


def _changed_models(trial: FrozenTrial, parameters: Mapping[str, Any]) -> str:
    """Return the base models that a trial chose and that are others now, for an error."""
    before, now = trial.user_attrs.get(_BASE_MODELS, {}), base_model_digests(parameters)
    # Where a machine does not have the model yet, nothing is known of it.
    names = [name for name in now if before.get(name) and now[name] not in ("", before[name])]
    return ", ".join(f"{name}={os.fspath(parameters[name])!r}" for name in names)


def _run_trial(study: Study, trial: Trial, plan: StudyPlan, task: CrossValidation) -> None:
    """Evaluate a trial and tell the study how it ended; raise an error that is to be raised."""
    try:
        parameters = draw_parameters(plan.space, trial, task.estimator)
    except ValueError as refused:
        # Optuna's errors have no class of their own.
        if any(phrase in str(refused) for phrase in _OTHER_DISTRIBUTION):
            raise ValueError(_explain(refused, study, trial)) from refused
        raise
    try:
        trial.set_user_attr(_PARAMETERS, digest(parameters))
        if models := base_model_digests(parameters):
            trial.set_user_attr(_BASE_MODELS, models)
        state, score, error = _evaluate(trial, parameters, plan.error_score, task)
        told = study.tell(trial, score, state, skip_if_finished=True)
        is_dropped = told.state != state
    except UpdateFinishedTrialError:
        error, is_dropped = None, True
    if is_dropped:
        warnings.warn(
            f"Trial {trial.number} was given up by another process, which had no sign of life of "
            f"it; its result is dropped.",
            UserWarning,
            stacklevel=2,
        )
    if error is not None:
        error.add_note(f"In trial {trial.number}, with the parameters {parameters}.")
        raise error


def _explain(error: ValueError, study: Study, trial: Trial) -> str:
    """Return what to do about a name that has another distribution in the study."""
    known = {
        name: distribution
        for other in study.get_trials(deepcopy=False)
        for name, distribution in other.distributions.items()
        if name not in trial.params
    }
    shown = ", ".join(f"{name!r}: {distribution}" for name, distribution in known.items())
    return (
        f"The space of DiceSearchCV suggests a parameter in another way than other trials of the "
        f"study {study.study_name!r} did under the same name. ({error}) Of those, there are "
        f"{shown}. Suggest it under another name, or give another study_name."
    )


def _evaluate(
    trial: Trial, parameters: Mapping[str, Any], error_score: Any, task: CrossValidation
) -> tuple[TrialState, float | None, Exception | None]:
    """Run the folds and report them; return how the trial ended, with an error to be raised."""
    folds: list[FoldResult] = []
    mean = math.nan
    for fold in evaluate_folds(task, parameters):
        folds.append(_with_error_score(fold, error_score))
        _record(trial, folds)
        mean = float(np.mean([each.score for each in folds]))
        if math.isnan(mean):
            return TrialState.FAIL, None, fold.error if error_score == "raise" else None
        trial.report(mean, step=len(folds) - 1)
        if len(folds) < len(task.splits) and trial.should_prune():
            return TrialState.PRUNED, None, None
    return TrialState.COMPLETE, mean, None


def _with_error_score(fold: FoldResult, error_score: Any) -> FoldResult:
    if fold.error is None or error_score == "raise":
        return fold
    return fold._replace(score=float(error_score))


def _record(trial: Trial, folds: Sequence[FoldResult]) -> None:
    """Keep the scores and times of the folds so far, and the first error."""
    names = ("score", "fit_time", "score_time")
    trial.set_user_attr(FOLDS, {name: [getattr(fold, name) for fold in folds] for name in names})
    errors = [fold.error for fold in folds if fold.error is not None]
    if folds[-1].error is None:
        return
    trial.set_user_attr(N_FAILED, len(errors))
    if len(errors) == 1:
        text = "".join(traceback.format_exception_only(errors[0])).strip()
        trial.set_user_attr(ERROR, text)
        trial.set_user_attr(_TRACEBACK, "".join(traceback.format_exception(errors[0])))
