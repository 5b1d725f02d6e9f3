"""A whole study: opened, checked, run in this process or in several, and its table."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
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
from optuna.trial import TrialState
from sklearn.exceptions import FitFailedWarning

from ._cv_results import make_cv_results
from ._evaluation import CrossValidation
from ._fingerprint import check_fingerprint
from ._storage import is_shared, open_storage, show_storage
from ._trials import (
    ERROR,
    FOLDS,
    StudyPlan,
    counted_trials,
    parameters_of,
    run_trials,
    run_worker,
    shown_trials,
)

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

_POLL_SECONDS = 0.5


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
    ConnectionError
        If the storage is lost in between.
    """
    if n_jobs > 1 and plan.storage is None:
        with TemporaryDirectory(prefix="skdice-", ignore_cleanup_errors=True) as directory:
            on_disk = replace(plan, storage=os.path.join(directory, "study.journal"))
            with _explained_on_cluster():
                study = run_study(
                    on_disk, task, fingerprint, seconds=seconds, n_jobs=n_jobs, verbose=verbose
                )
            return _to_memory(study, on_disk.storage)
    if n_jobs > 1 and not is_shared(plan.storage):
        raise ValueError(
            f"n_jobs={n_jobs} needs a storage that processes can share; got "
            f"{show_storage(plan.storage)}. Give the path of a journal file, or storage=None."
        )
    study = plan.open()
    check_fingerprint(study, fingerprint, show_storage(plan.storage))
    if plan.first and not study.get_trials(deepcopy=False):
        study.enqueue_trial(plan.first)
    trials = counted_trials(study)
    for trial in shown_trials(trials):
        parameters_of(trial, plan.space, task.estimator)
    n_jobs = min(n_jobs, plan.n_trials - len(trials))
    with _progress(study, plan.n_trials, verbose) as show:
        if n_jobs > 1:
            with _repeated(show):
                _run_in_processes(plan, task, seconds, n_jobs)
        else:
            run_trials(study, plan, task, seconds, lambda *_: show())
    return study


def _run_in_processes(
    plan: StudyPlan, task: CrossValidation, seconds: float | None, n_jobs: int
) -> None:
    # The processes of a cluster are no children of this one, and outlive it.
    backend, parent = (None, None) if _is_cluster_active() else ("loky", os.getpid())
    # A task is a worker, not a trial: each gets the rows once.
    Parallel(n_jobs=n_jobs, backend=backend)(
        delayed(run_worker)(plan, task, seconds, parent) for _ in range(n_jobs)
    )


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


@contextmanager
def _progress(study: Study, n_trials: int, verbose: Any) -> Iterator[Callable[[], None]]:
    """Open a bar over the trials of a study, those of other processes too; yield what updates it.

    Without ``verbose`` it shows nothing.
    """
    from tqdm.auto import tqdm

    with tqdm(total=n_trials, desc="search", unit="trial", disable=not verbose) as bar:

        def show() -> None:
            if not verbose:
                return
            trials = counted_trials(study)
            scores = [trial.values[0] for trial in trials if trial.state == TrialState.COMPLETE]
            if scores:
                bar.set_postfix(best=f"{max(scores):.4f}", refresh=False)
            bar.update(len(trials) - bar.n)

        show()
        yield show
        show()


@contextmanager
def _repeated(show: Callable[[], None]) -> Iterator[None]:
    """Call a function now and then, while other processes work."""
    stop = threading.Event()

    def poll() -> None:
        while not stop.wait(_POLL_SECONDS):
            with suppress(Exception):  # The bar is no reason to stop a search.
                show()

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _to_memory(study: Study, storage: str) -> Study:
    """Return a copy of a study that needs no file."""
    name, memory = study.study_name, InMemoryStorage()
    optuna.copy_study(from_study_name=name, from_storage=open_storage(storage), to_storage=memory)
    return optuna.load_study(
        study_name=name, storage=memory, sampler=study.sampler, pruner=study.pruner
    )


def tabulate_study(study: Study, plan: StudyPlan, task: CrossValidation) -> dict[str, Any]:
    """Return ``cv_results_`` of a study.

    Raises
    ------
    ValueError
        If no trial has a score.

    Warns
    -----
    FitFailedWarning
        If a fold of one failed.
    """
    counted = counted_trials(study)
    n_splits = len(task.splits)
    _check_failures(counted, n_splits, plan.error_score)
    trials = shown_trials(counted)
    results = make_cv_results(
        [parameters_of(trial, plan.space, task.estimator) for trial in trials],
        [trial.user_attrs[FOLDS] for trial in trials],
        n_splits,
    )
    results["trial_number"] = np.array([trial.number for trial in trials])
    results["state"] = np.array([trial.state.name for trial in trials], dtype=object)
    return results


def _check_failures(trials: Sequence[FrozenTrial], n_splits: int, error_score: Any) -> None:
    """Warn of trials that failed; raise a ValueError if no trial has a score."""
    n_failed = [trial.user_attrs[FOLDS]["n_failed"] for trial in trials]
    failed = [trial for trial, n in zip(trials, n_failed) if n]
    first = f" The first error: {failed[0].user_attrs[ERROR]}" if failed else ""
    if not any(
        trial.state.name == "COMPLETE" and n < n_splits for trial, n in zip(trials, n_failed)
    ):
        n_pruned = sum(trial.state.name == "PRUNED" for trial in trials)
        raise ValueError(
            f"No trial was completed, so there are no best parameters: of {len(trials)} trials, "
            f"{len(failed)} failed and {n_pruned} were pruned.{first}"
        )
    if failed:
        warnings.warn(
            f"{len(failed)} of {len(trials)} trials had a fold that failed, whose score is "
            f"error_score={error_score!r}.{first}",
            FitFailedWarning,
            stacklevel=4,
        )
