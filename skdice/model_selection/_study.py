"""A study: opened, checked, run in this process or in several, and its table."""

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import numpy as np
import optuna
from joblib import effective_n_jobs
from optuna.exceptions import ExperimentalWarning
from optuna.pruners import BasePruner, NopPruner
from optuna.samplers import TPESampler
from optuna.storages import InMemoryStorage
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState
from sklearn.base import BaseEstimator
from sklearn.exceptions import FitFailedWarning
from sklearn.utils.parallel import Parallel, delayed

from .._digest import base_model_digests, digest, relevant_parameters
from .._parameters import not_allowed
from .._random_state import make_rng
from ..text import active_reuse, reuse_work
from ._storage import only_search, open_storage, quiet_optuna, try_again
from ._trials import ERROR, FOLDS, Objective, make_cv_results

_POLL_SECONDS = 0.5
# Complete trials before the first one is stopped.
_N_COMPLETE = 4
_FINGERPRINT = "fingerprint"
_SCORED = (TrialState.COMPLETE, TrialState.PRUNED)


def open_study(storage: Any, name: str, pruner: BasePruner, seed: int) -> Study:
    """Open a study, or create it; raise a ValueError if it minimises."""
    study = optuna.create_study(
        storage=open_storage(storage),
        study_name=name,
        direction="maximize",
        sampler=_NumberedSampler(seed),
        pruner=pruner,
        load_if_exists=True,
    )
    if study.directions != [StudyDirection.MAXIMIZE]:
        raise ValueError(
            f"The study {name!r} does not maximise one score, so it is no study of DiceSearchCV. "
            f"Give another study_name."
        )
    return study


def run_study(
    search: Any, objective: Objective, data: Mapping[str, Any], first: dict[str, Any] | None
) -> Study:
    """Run the trials that the study of a DiceSearchCV lacks, and return it.

    Besides the estimator and the scoring, `data` decides what a trial scores. The first trial of a
    new study suggests what `first` says. A ValueError says that processes cannot share the storage,
    or that the study belongs to another search.
    """
    seed = make_rng(search.random_state, type(search).__name__).getrandbits(32)
    name = "skdice" if search.study_name is None else search.study_name
    open_at = partial(open_study, name=name, pruner=_make_pruner(search.pruner), seed=seed)
    storage, n_trials, n_jobs = search.storage, search.n_trials, effective_n_jobs(search.n_jobs)
    fingerprint = {}
    if storage is not None:  # A study in memory is no other search's.
        fingerprint = search_fingerprint(search.estimator, **data, scoring=search.scoring)
    if n_jobs > 1 and isinstance(storage, InMemoryStorage):
        raise ValueError(
            f"n_jobs={n_jobs} needs a storage that processes can share, such as a journal file or "
            f"storage=None; got one in memory."
        )
    with ExitStack() as stack:
        if storage is None:
            storage = InMemoryStorage()
            if n_jobs > 1:
                own = TemporaryDirectory(prefix="skdice-", ignore_cleanup_errors=True)
                storage = os.path.join(stack.enter_context(own), "study.journal")
        is_alone = stack.enter_context(only_search(storage))
        study = open_at(storage)
        _check_fingerprint(study, fingerprint)
        _queue_first(study, first, is_alone)
        trials = counted_trials(study)
        for trial in trials:
            if trial.state in _SCORED:
                objective.parameters_of(trial)
        n_jobs = max(min(n_jobs, n_trials - len(trials)), 1)
        if search.verbose:
            stack.enter_context(_progress(study, n_trials, len(objective.splits), n_jobs))
        # A task is a worker, not a trial, so that each process gets the rows once.
        work = delayed(_run_trials)(open_at, storage, objective, n_trials, search.timeout)
        Parallel(n_jobs=n_jobs)(work for _ in range(n_jobs))
        return _to_memory(study, storage) if search.storage is None and n_jobs > 1 else study


def _queue_first(study: Study, first: dict[str, Any] | None, is_alone: bool) -> None:
    """Queue what is to be tried before anything else: first what was begun and not finished.

    Another search may be running a trial that is not finished, unless this one is alone.
    """
    trials = study.get_trials()
    if first and not trials:
        study.enqueue_trial(first)
    for trial in trials:
        was_interrupted = trial.state == TrialState.FAIL and ERROR not in trial.user_attrs
        if was_interrupted or (is_alone and trial.state == TrialState.RUNNING):
            try_again(study, trial)


def _run_trials(
    open_at: Callable[[Any], Study],
    storage: Any,
    objective: Objective,
    n_trials: int,
    timeout: float | None,
) -> None:
    """Run trials until the study has enough of them."""

    # Optuna's MaxTrialsCallback would count the trials of killed processes.
    def stop_when_enough(study: Study, _: Any) -> None:
        if len(counted_trials(study)) >= n_trials:
            study.stop()

    with quiet_optuna(), nullcontext() if active_reuse() else reuse_work():
        study = open_at(storage)
        if len(counted_trials(study)) < n_trials:
            study.optimize(objective, timeout=timeout, callbacks=[stop_when_enough])


def counted_trials(study: Study) -> list[FrozenTrial]:
    """Return the trials that were not interrupted: complete, pruned, or failed by an error."""
    return [
        trial
        for trial in study.get_trials(deepcopy=False)
        if trial.state in _SCORED or (trial.state == TrialState.FAIL and ERROR in trial.user_attrs)
    ]


def search_fingerprint(estimator: BaseEstimator, **data: Any) -> dict[str, str]:
    """Return a digest of each part that decides what a trial scores."""
    kind = type(estimator)
    parts = {"the estimator's class": f"{kind.__module__}.{kind.__qualname__}"}
    for name, value in relevant_parameters(estimator).items():
        parts[f"the estimator's {name!r}"] = digest(value)
    models = base_model_digests(estimator.get_params())
    if models and all(models.values()):
        parts["the files of the base model"] = digest(models)
    return parts | {name: digest(value) for name, value in data.items()}


def _check_fingerprint(study: Study, fingerprint: Mapping[str, str]) -> None:
    """Keep the fingerprint in a new study; raise a ValueError if that of an old one differs.

    What only one of them has, as the files of a base model new to the machine, is added.
    """
    known = study.user_attrs.get(_FINGERPRINT, {})
    if not known and study.get_trials(deepcopy=False):
        raise ValueError(
            f"The study {study.study_name!r} has trials that are not of DiceSearchCV. Give another "
            f"study_name."
        )
    if not fingerprint.keys() <= known.keys():
        study.set_user_attr(_FINGERPRINT, {**fingerprint, **known})
        # Another process may have written at the same moment; one of the two prevails.
        known = study.user_attrs[_FINGERPRINT]
    different = [part for part, value in fingerprint.items() if known[part] != value]
    if different:
        raise ValueError(
            f"The study {study.study_name!r} belongs to another search, which differs in "
            f"{', '.join(different)}. Give another study_name or storage."
        )


@contextmanager
def _progress(study: Study, n_trials: int, n_splits: int, n_jobs: int) -> Iterator[None]:
    """Show a bar over the trials of a study, those of other processes too, and what they cost."""
    from tqdm.auto import tqdm

    stop, n_fits = Event(), (n_trials - len(counted_trials(study))) * n_splits
    with tqdm(total=n_trials, desc="search", unit="trial") as bar:

        def show() -> None:
            nonlocal n_fits
            trials = counted_trials(study)
            folds = [t.user_attrs[FOLDS] for t in study.get_trials(False) if FOLDS in t.user_attrs]
            if folds and n_fits > 0:
                seconds = folds[-1]["fit_time"][0] + folds[-1]["score_time"][0]
                bar.write(_describe_cost(n_fits, seconds, n_jobs), file=sys.stderr)
                n_fits = 0
            scores = [trial.values[0] for trial in trials if trial.state == TrialState.COMPLETE]
            if scores:
                bar.set_postfix(best=f"{max(scores):.4f}", refresh=False)
            bar.update(len(trials) - bar.n)

        def poll() -> None:
            while not stop.wait(_POLL_SECONDS):
                show()

        thread = Thread(target=poll, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            show()


def _describe_cost(n_fits: int, seconds: float, n_jobs: int) -> str:
    """Say how long fits will take in all, from the seconds of one."""
    total = n_fits * seconds / n_jobs
    at_once = f", {n_jobs} at a time" if n_jobs > 1 else ""
    return f"{n_fits} fits of about {_time(seconds)} each{at_once}: about {_time(total)} in all"


def _time(seconds: float) -> str:
    unit, size = next((u for u in (("h", 3600), ("min", 60)) if seconds >= 2 * u[1]), ("s", 1))
    return f"{seconds / size:.1f} {unit}"


def _to_memory(study: Study, storage: str) -> Study:
    """Return a copy of a study that needs no file."""
    name, memory = study.study_name, InMemoryStorage()
    optuna.copy_study(from_study_name=name, from_storage=open_storage(storage), to_storage=memory)
    return optuna.load_study(
        study_name=name, storage=memory, sampler=study.sampler, pruner=study.pruner
    )


def tabulate_study(study: Study, objective: Objective) -> dict[str, Any]:
    """Return ``cv_results_``; a failed fold is a FitFailedWarning, no score at all a ValueError."""
    counted = counted_trials(study)
    n_splits = len(objective.splits)
    failed = [trial for trial in counted if trial.user_attrs[FOLDS]["n_failed"]]
    first = f" The first error: {failed[0].user_attrs[ERROR]}" if failed else ""
    trials = [trial for trial in counted if trial.state in _SCORED]
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    if all(trial.user_attrs[FOLDS]["n_failed"] == n_splits for trial in complete):
        raise ValueError(
            f"No trial was completed, so there are no best parameters: of {len(counted)} trials, "
            f"{len(failed)} failed and {len(trials) - len(complete)} were pruned.{first}"
        )
    if failed:
        warnings.warn(
            f"{len(failed)} of {len(counted)} trials had a fold that failed, whose score is "
            f"error_score={objective.error_score!r}.{first}",
            FitFailedWarning,
            stacklevel=3,
        )
    results = make_cv_results(
        [objective.parameters_of(trial) for trial in trials],
        [trial.user_attrs[FOLDS] for trial in trials],
        n_splits,
    )
    results["trial_number"] = np.array([trial.number for trial in trials])
    results["state"] = np.array([trial.state.name for trial in trials], dtype=object)
    return results


class _NumberedSampler(TPESampler):
    """TPE that begins anew with each trial, seeded by the study's seed and the trial's number.

    So resumed studies and other processes repeat no draws, and a restart changes nothing.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._begin(seed)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        entropy = np.random.SeedSequence([self._seed, trial.number])
        self._begin(int(entropy.generate_state(1)[0]))

    def _begin(self, seed: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            # Groups: each loss has parameters of its own. Liar: not what another process runs.
            super().__init__(seed=seed, multivariate=True, group=True, constant_liar=True)


class _MeanPruner(BasePruner):
    """Compares the mean score so far with the median of the complete trials at the same fold.

    Optuna's ``MedianPruner`` takes the best value that a trial has reported: that suits losses
    along epochs, but here one easy fold at the start would keep every trial.
    """

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        fold = trial.last_step
        complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if fold is None or len(complete) < _N_COMPLETE:
            return False
        others = [other.intermediate_values[fold] for other in complete]
        return trial.intermediate_values[fold] < float(np.median(others))


def _make_pruner(pruner: Any) -> BasePruner:
    """Return the pruner of Optuna that the parameter stands for."""
    if isinstance(pruner, BasePruner):
        return pruner
    if pruner is None:
        return NopPruner()
    if isinstance(pruner, str) and pruner == "auto":
        return _MeanPruner()
    raise not_allowed("DiceSearchCV", "pruner", "'auto', None or a pruner of Optuna", pruner)
