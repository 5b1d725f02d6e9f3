"""A whole study: opened, checked, run in this process or in several."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import optuna
from joblib import Parallel, delayed
from joblib.parallel import (
    LokyBackend,
    MultiprocessingBackend,
    SequentialBackend,
    ThreadingBackend,
    get_active_backend,
)
from optuna.storages import InMemoryStorage

from ._budget import TrialBudget, counted_trials
from ._evaluation import CrossValidation
from ._fingerprint import BASE_MODEL, differences
from ._retrying_storage import StorageLostError
from ._search_progress import TrialProgress
from ._storage import is_shared, show_storage
from ._trials import StudyPlan, parameters_of, run_trials, run_worker, shown_trials

if TYPE_CHECKING:
    from optuna.study import Study

_FINGERPRINT = "fingerprint"


def run_study(
    plan: StudyPlan,
    task: CrossValidation,
    fingerprint: Mapping[str, str],
    *,
    seconds: float | None,
    n_jobs: int,
    verbose: Any,
) -> Study:
    """Run the trials that a study lacks, and return it.

    Parameters
    ----------
    plan : StudyPlan
    task : CrossValidation
    fingerprint : dict of str
        A digest of each part of the task.
    seconds : float or None
        After that long no trial is begun.
    n_jobs : int
        Processes.
    verbose : int

    Raises
    ------
    ValueError
        If the storage cannot be opened, or not by several processes; if the study belongs to
        another search.
    StorageLostError
        If the storage is lost in between; a ConnectionError.
    """
    if n_jobs > 1 and plan.storage is None:
        with TemporaryDirectory(prefix="skdice-", ignore_cleanup_errors=True) as directory:
            on_disk = replace(plan, storage=os.path.join(directory, "study.journal"))
            with _explained_on_cluster():
                study = run_study(
                    on_disk, task, fingerprint, seconds=seconds, n_jobs=n_jobs, verbose=verbose
                )
            return _to_memory(study)
    if n_jobs > 1 and not is_shared(plan.storage):
        raise ValueError(
            f"n_jobs={n_jobs} needs a storage that processes can share; got "
            f"{show_storage(plan.storage)}. Give the path of a journal file, or storage=None."
        )
    study = plan.open()
    _check_fingerprint(study, fingerprint, plan.storage)
    trials = counted_trials(study)
    for trial in shown_trials(trials):
        parameters_of(trial, plan.space, task.estimator)
    n_jobs = min(n_jobs, plan.n_trials - len(trials))
    with TrialProgress(study, plan.n_trials, verbose) as progress:
        if n_jobs > 1:
            with progress.polled():
                _run_in_processes(study, plan, task, seconds, n_jobs)
        else:
            run_trials(study, plan, task, seconds, after_each=progress.show)
    return study


def _run_in_processes(
    study: Study, plan: StudyPlan, task: CrossValidation, seconds: float | None, n_jobs: int
) -> None:
    # The processes of a cluster are no children of this one, and outlive it.
    backend, parent = (None, None) if _is_cluster_active() else ("loky", os.getpid())
    try:
        # A task is a worker, not a trial: each gets the rows once.
        Parallel(n_jobs=n_jobs, backend=backend)(
            delayed(run_worker)(plan, task, seconds, parent) for _ in range(n_jobs)
        )
    except StorageLostError:  # It cannot be told anything.
        raise
    except BaseException:
        # After an error or Ctrl-C joblib kills the other workers in mid-trial.
        TrialBudget(study, plan.n_trials).progress()
        raise


def _is_cluster_active() -> bool:
    """Return whether joblib is set to a backend of other machines, such as dask."""
    backend, _ = get_active_backend()
    local = LokyBackend | MultiprocessingBackend | SequentialBackend | ThreadingBackend
    return not isinstance(backend, local)


@contextmanager
def _explained_on_cluster() -> Iterator[None]:
    """Say what to do if a journal file of this machine is out of reach of the workers."""
    try:
        yield
    except (OSError, ValueError) as error:
        if _is_cluster_active():
            error.add_note(
                "Without a storage the study is in a temporary file of this machine. If workers "
                "are on others, give a storage that all of them reach, such as the URL of a "
                "PostgreSQL database."
            )
        raise


def _check_fingerprint(study: Study, fingerprint: Mapping[str, str], storage: Any) -> None:
    known = study.user_attrs.get(_FINGERPRINT)
    if known is None:
        if study.get_trials(deepcopy=False):
            raise ValueError(
                f"The study {study.study_name!r} in {show_storage(storage)} has trials that are "
                f"not of DiceSearchCV. Give another study_name."
            )
        study.set_user_attr(_FINGERPRINT, dict(fingerprint))
        # Another process may have written at the same moment; one of the two prevails.
        known = study.user_attrs[_FINGERPRINT]
    different = differences(known, fingerprint)
    if different:
        raise ValueError(
            f"The study {study.study_name!r} in {show_storage(storage)} belongs to another search, "
            f"which differs in {', '.join(different)}. Give another study_name or storage, or "
            f"search with the same estimator, rows, folds and scoring."
        )
    if BASE_MODEL in fingerprint and BASE_MODEL not in known:
        study.set_user_attr(_FINGERPRINT, {**known, BASE_MODEL: fingerprint[BASE_MODEL]})


def _to_memory(study: Study) -> Study:
    """Return a copy of a study that needs no file."""
    storage = InMemoryStorage()
    optuna.copy_study(
        from_study_name=study.study_name, from_storage=study._storage, to_storage=storage
    )
    return optuna.load_study(
        study_name=study.study_name, storage=storage, sampler=study.sampler, pruner=study.pruner
    )
