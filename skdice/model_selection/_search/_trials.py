"""Trials of a study: which of them count, how one is run, and the loop of a worker."""

from __future__ import annotations

import math
import os
import socket
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.exceptions import TrialPruned
from optuna.trial import FixedTrial, TrialState

from ..._base_model import base_model_digests
from ..._digest import digest
from ...estimators._reuse import active_reuse, reuse_work
from ._evaluation import CrossValidation, FoldResult, evaluate_folds
from ._space import Space, draw_parameters
from ._storage import is_shared, lost_storage, open_study, quiet_optuna
from ._strategy import NumberedSampler

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

# User attributes of a trial.
FOLDS = "folds"
ERROR = "error"
_TRACEBACK = "traceback"
_WORKER = "worker"
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
    first : dict or None
        What the first trial of the study suggests.
    n_trials : int
        Trials that the study is to end with.
    pruner : optuna.pruners.BasePruner
    seed : int
    error_score : "raise" or float
    """

    storage: Any
    study_name: str
    space: Space
    first: dict[str, Any] | None
    n_trials: int
    pruner: Any
    seed: int
    error_score: Any

    def open(self) -> Study:
        """Open the study, or create it."""
        sampler = NumberedSampler(self.seed)
        return open_study(self.storage, self.study_name, sampler, self.pruner)


class _FoldError(Exception):
    """Carries what a fold raised through Optuna, where it is not taken for one of the storage."""


def run_worker(
    plan: StudyPlan, task: CrossValidation, seconds: float | None, parent: int | None
) -> None:
    """Run trials in a process of its own, which ends soon when its parent, if given, is killed."""

    def stop_without_parent(study: Study, _: Any) -> None:
        if parent is not None and os.getppid() != parent:
            study.stop()

    with quiet_optuna():
        run_trials(plan.open(), plan, task, seconds, stop_without_parent)


def run_trials(
    study: Study,
    plan: StudyPlan,
    task: CrossValidation,
    seconds: float | None,
    after_each: Callable[[Study, FrozenTrial], None],
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
        Called with the study and each trial that is finished.

    Raises
    ------
    ConnectionError
        If the storage is lost.
    """

    # Optuna's MaxTrialsCallback would count the trials of killed processes.
    def stop_when_enough(study: Study, _: Any) -> None:
        if len(counted_trials(study)) >= plan.n_trials:
            study.stop()

    error = None
    with (
        nullcontext() if active_reuse() else reuse_work(),
        lost_storage(plan.storage) if is_shared(plan.storage) else nullcontext(),
    ):
        if len(counted_trials(study)) >= plan.n_trials:
            return
        try:
            study.optimize(
                lambda trial: _run_trial(trial, plan, task),
                timeout=seconds,
                callbacks=[stop_when_enough, after_each],
            )
        except _FoldError as failed:
            error = failed.__cause__
    if error is not None:
        raise error


def counted_trials(study: Study) -> list[FrozenTrial]:
    """Return the complete and the pruned trials, and those that failed by an error of theirs.

    Trials that were interrupted, or whose process was killed, do not count.
    """
    return [trial for trial in study.get_trials(deepcopy=False) if _counts(trial)]


def _counts(trial: FrozenTrial) -> bool:
    if trial.state == TrialState.FAIL:
        scores = trial.user_attrs.get(FOLDS, {}).get("score", [])
        return bool(scores) and math.isnan(scores[-1])
    return trial.state.is_finished()


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


def _run_trial(trial: Trial, plan: StudyPlan, task: CrossValidation) -> float:
    """Run the folds, report each, and return the mean score; NaN lets a trial fail."""
    trial.set_user_attr(_WORKER, {"host": socket.gethostname(), "pid": os.getpid()})
    try:
        parameters = draw_parameters(plan.space, trial, task.estimator)
    except ValueError as refused:
        # Optuna's errors have no class of their own.
        if any(phrase in str(refused) for phrase in _OTHER_DISTRIBUTION):
            raise ValueError(_explain(refused, trial)) from refused
        raise
    trial.set_user_attr(_PARAMETERS, digest(parameters))
    if models := base_model_digests(parameters):
        trial.set_user_attr(_BASE_MODELS, models)
    folds: list[FoldResult] = []
    mean = math.nan
    for fold in evaluate_folds(task, parameters):
        if fold.error is not None and plan.error_score != "raise":
            fold = fold._replace(score=float(plan.error_score))
        folds.append(fold)
        _record(trial, folds)
        if fold.error is not None and plan.error_score == "raise":
            fold.error.add_note(f"In trial {trial.number}, with the parameters {parameters}.")
            raise _FoldError from fold.error
        mean = float(np.mean([each.score for each in folds]))
        if math.isnan(mean):
            break
        trial.report(mean, step=len(folds) - 1)
        if len(folds) < len(task.splits) and trial.should_prune():
            raise TrialPruned
    return mean


def _record(trial: Trial, folds: Sequence[FoldResult]) -> None:
    """Keep the scores and times of the folds so far, and the first error."""
    names = ("score", "fit_time", "score_time")
    table = {name: [getattr(fold, name) for fold in folds] for name in names}
    errors = [fold.error for fold in folds if fold.error is not None]
    trial.set_user_attr(FOLDS, {**table, "n_failed": len(errors)})
    if len(errors) == 1 and folds[-1].error is not None:
        text = "".join(traceback.format_exception_only(errors[0])).strip()
        trial.set_user_attr(ERROR, text)
        trial.set_user_attr(_TRACEBACK, "".join(traceback.format_exception(errors[0])))


def _explain(error: ValueError, trial: Trial) -> str:
    """Return what to do about a name that has another distribution in the study."""
    known = {
        name: distribution
        for other in trial.study.get_trials(deepcopy=False)
        for name, distribution in other.distributions.items()
        if name not in trial.params
    }
    shown = ", ".join(f"{name!r}: {distribution}" for name, distribution in known.items())
    return (
        f"The space of DiceSearchCV suggests a parameter in another way than other trials of the "
        f"study {trial.study.study_name!r} did under the same name. ({error}) Of those, there are "
        f"{shown}. Suggest it under another name, or give another study_name."
    )
