"""A study: opened, run trial by trial, and tabulated as scikit-learn does."""

import json
import math
import numbers
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import optuna
from joblib import effective_n_jobs
from optuna import pruners, samplers, storages
from optuna.exceptions import ExperimentalWarning
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock
from optuna.study import Study, StudyDirection
from optuna.trial import FixedTrial, FrozenTrial, Trial, TrialState
from scipy.stats import rankdata
from sklearn.base import BaseEstimator
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from .._digest import digest
from .._parameters import make_rng, not_allowed
from .._pipeline import with_parameters
from .._typing import Splits
from ..exceptions import warn
from ._space import Space, draw_parameters

# Attributes of a study and of its trials.
_MADE_OF, _FOLDS, _ERROR, _PARAMETERS = "made_of", "folds", "error", "parameters"
_SCORED = (TrialState.COMPLETE, TrialState.PRUNED)
_RECORD = b'{"op_code":'  # Each line of a journal begins so.
_KEPT = {TrialState.COMPLETE, TrialState.WAITING}


@dataclass(frozen=True)
class Objective:
    """What Optuna maximises: the mean score of a cross-validation."""

    estimator: BaseEstimator
    X: Any
    y: Any
    splits: Splits
    scorer: Callable[..., Any]
    weights: Mapping[str, np.ndarray]  # for fit
    space: Space
    error_score: float | str

    def __call__(self, trial: Trial) -> float:
        """Run the folds, report each, and return the mean score; NaN lets a trial fail."""
        trial.set_user_attr("worker", {"host": socket.gethostname(), "pid": os.getpid()})
        parameters = draw_parameters(self.space, trial, self.estimator)
        trial.set_user_attr(_PARAMETERS, digest(parameters))
        folds: dict[str, list[float]] = {"score": [], "fit_time": [], "score_time": []}
        for step, (train, test) in enumerate(self.splits):
            start = time.perf_counter()
            try:
                found = self._evaluate(parameters, train, test)
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
                trial.set_user_attr(_ERROR, trial.user_attrs.get(_ERROR, text))
                if self.error_score == "raise":
                    error.add_note(f"In trial {trial.number}, with the parameters {parameters}.")
                    raise
                found = float(self.error_score), time.perf_counter() - start, 0.0
            for values, value in zip(folds.values(), found):
                values.append(value)
            trial.set_user_attr(_FOLDS, folds)
            mean = float(np.mean(folds["score"]))
            if math.isnan(mean):
                break
            trial.report(mean, step)
            if step + 1 < len(self.splits) and trial.should_prune():
                raise optuna.TrialPruned
        return mean

    def _evaluate(
        self, parameters: Mapping[str, Any], train: np.ndarray, test: np.ndarray
    ) -> tuple[float, float, float]:
        """Return the score of a fold and the seconds that the fit and the scoring took."""
        start = time.perf_counter()
        estimator = with_parameters(self.estimator, parameters)
        options = {name: _safe_indexing(value, train) for name, value in self.weights.items()}
        y = self.y
        y_train, y_test = (y if y is None else _safe_indexing(y, part) for part in (train, test))
        estimator.fit(_safe_indexing(self.X, train), y_train, **options)
        fitted = time.perf_counter()
        score = self.scorer(estimator, _safe_indexing(self.X, test), y_test)
        if not isinstance(score, numbers.Real) or math.isnan(score):
            raise ValueError(f"The scoring must give a number, and not NaN. Got {score!r}.")
        return float(score), fitted - start, time.perf_counter() - fitted

    def parameters_of(self, trial: FrozenTrial) -> dict[str, Any]:
        """Return the parameters of a finished trial; a ValueError if the space now gives others."""
        problem = "it gives other parameters than when the trial ran"
        try:
            fixed = FixedTrial(trial.params, trial.number)
            parameters = draw_parameters(self.space, fixed, self.estimator)
            if digest(parameters) == trial.user_attrs.get(_PARAMETERS):
                return parameters
        except (TypeError, ValueError) as error:
            problem = str(error).rstrip(".")
        raise ValueError(
            f"The space of DiceSearchCV does not fit trial {trial.number} of the study: {problem}. "
            f"It must depend on what the trial suggests alone; another space needs another "
            f"study_name."
        )


def run_study(
    search: Any, objective: Objective, first: dict[str, Any] | None, made_of: Sequence[object]
) -> Study:
    """Run the trials that the study of a DiceSearchCV lacks, and return it.

    The first trial suggests the parameters `first`; another trial does so if that one was lost.
    `made_of` has everything that a score depends on.
    """
    storage, n_jobs = _open_storage(search.storage), effective_n_jobs(search.n_jobs)
    if n_jobs > 1 and isinstance(storage, storages.InMemoryStorage):
        raise ValueError(
            f"n_jobs={n_jobs} needs a storage that processes can share, such as "
            f"storage='search.journal'. Got one in memory."
        )
    with _quiet():
        study = optuna.create_study(
            storage=storage,
            study_name="skdice" if search.study_name is None else search.study_name,
            direction="maximize",
            sampler=_NumberedSampler(make_rng(search.random_state, "DiceSearchCV").getrandbits(32)),
            pruner=_make_pruner(search.pruner),
            load_if_exists=True,
        )
        if search.storage is not None:  # A study in memory is no other search's.
            _check_owner(study, digest(made_of))
        for trial in _counted(study):
            if trial.state in _SCORED:
                objective.parameters_of(trial)
        _run_trials(study, objective, n_jobs, search, first)
    return study


def _run_trials(
    study: Study, objective: Objective, n_jobs: int, search: Any, first: dict[str, Any] | None
) -> None:
    """Run trials until the study has enough of them or time is over, and show how it goes."""
    from tqdm.auto import tqdm

    n_done = len(_counted(study))
    n_left = max(search.n_trials - n_done, 0)
    # The first trial may be in state "running" because another process runs it, or because that
    # process was killed. So one more trial is run before it is suggested again.
    due = min(n_jobs, n_left - 1) if TrialState.RUNNING in _states(study, first) else 0
    end = math.inf if search.timeout is None else time.monotonic() + search.timeout

    def tasks() -> Iterator[Any]:
        for i in range(n_left):
            # Other searches may run trials of the same study.
            if len(_counted(study)) >= search.n_trials or time.monotonic() >= end:
                return
            if first and i == due and not _KEPT.intersection(_states(study, first)):
                study.enqueue_trial(first)
            yield delayed(_run_trial)(study, objective)

    one_by_one = {"return_as": "generator_unordered", "pre_dispatch": "n_jobs", "batch_size": 1}
    parallel = Parallel(min(n_jobs, n_left) or 1, **one_by_one)
    progress = {"total": search.n_trials, "initial": n_done, "disable": not search.verbose}
    with tqdm(desc="search", unit="trial", **progress) as bar:
        for _ in parallel(tasks()):
            trials = _counted(study)
            complete = [trial.values[0] for trial in trials if trial.state == TrialState.COMPLETE]
            if complete:
                bar.set_postfix(best=f"{max(complete):.4f}", refresh=False)
            bar.update(len(trials) - bar.n)


def _states(study: Study, first: dict[str, Any] | None) -> set[TrialState]:
    """Return the states of the trials that had to suggest the parameters of the first trial."""
    trials = study.get_trials(deepcopy=False)
    return {trial.state for trial in trials if trial.system_attrs.get("fixed_params") == first}


def _counted(study: Study) -> list[FrozenTrial]:
    """Return the trials that were not interrupted: complete, pruned, or failed by an error."""
    return [
        trial
        for trial in study.get_trials(deepcopy=False)
        if trial.state in _SCORED or (trial.state == TrialState.FAIL and _ERROR in trial.user_attrs)
    ]


@contextmanager
def _quiet() -> Iterator[None]:
    """Hold back Optuna's messages below errors; a search itself reports the trials that failed."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, optuna.logging.ERROR))
    try:
        with warnings.catch_warnings(action="ignore", category=ExperimentalWarning):
            # Trials may try a few epochs; the fit of all rows warns of them.
            warnings.filterwarnings("ignore", "max_epochs=.* is less than half")
            yield
    finally:
        optuna.logging.set_verbosity(before)


@_quiet()
def _run_trial(study: Study, objective: Objective) -> None:
    study.optimize(objective, n_trials=1)


def _open_storage(storage: object) -> storages.BaseStorage | str:
    """Return a storage of Optuna; a path is the path of a journal file."""
    if storage is None:
        return storages.InMemoryStorage()
    if isinstance(storage, storages.BaseStorage) or (isinstance(storage, str) and "://" in storage):
        return storage
    if isinstance(storage, str | os.PathLike) and os.fspath(storage):
        return _open_journal(os.path.abspath(os.fspath(storage)))
    allowed = "None, the path of a journal file, the URL of a database or an Optuna storage"
    raise not_allowed("DiceSearchCV", "storage", allowed, storage, TypeError)


def _open_journal(path: str) -> storages.JournalStorage:
    """Open a journal file; drop its last line if a kill or a full disk has cut it off."""
    lock = JournalFileSymlinkLock(path)
    backend = JournalFileBackend(path, lock)
    lock.acquire()  # No process writes now, so a line without an end was cut off.
    try:
        with open(path, "rb+") as file:
            for number, line in enumerate(file, start=1):
                try:
                    if not line.endswith(b"\n") and _RECORD.startswith(line[: len(_RECORD)]):
                        file.truncate(file.tell() - len(line))
                        warn(
                            f"{path}, line {number}: the line was cut off and is dropped. The "
                            f"study goes on without it."
                        )
                        break
                    json.loads(line)["op_code"]
                except (KeyError, TypeError, ValueError) as error:
                    raise ValueError(
                        f"{path}, line {number}: this is no record of Optuna's journal. If a "
                        f"process was killed while it wrote the line, delete it, and the study "
                        f"goes on without it."
                    ) from error
    finally:
        lock.release()
    return storages.JournalStorage(backend)


def _check_owner(study: Study, made_of: str) -> None:
    """Raise a ValueError if the study belongs to another search; mark a new study as ours."""
    if _MADE_OF not in study.user_attrs and not study.get_trials(deepcopy=False):
        study.set_user_attr(_MADE_OF, made_of)
    is_same = study.user_attrs.get(_MADE_OF) == made_of
    if not is_same or study.directions != [StudyDirection.MAXIMIZE]:
        raise ValueError(
            f"The study {study.study_name!r} belongs to another search: its estimator, base model, "
            f"rows, weights, folds or scoring are others. Give another study_name or storage."
        )


class _NumberedSampler(samplers.TPESampler):
    """TPE that is seeded by the number of each trial: no restart and no process changes a draw."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._begin(seed)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        entropy = np.random.SeedSequence([self._seed, trial.number])
        self._begin(int(entropy.generate_state(1)[0]))

    def _begin(self, seed: int) -> None:
        # group: each loss has its own parameters. constant_liar: avoid what others run now.
        super().__init__(seed=seed, multivariate=True, group=True, constant_liar=True)


def _make_pruner(pruner: object) -> pruners.BasePruner:
    """Return the Optuna pruner for a value of the parameter."""
    if isinstance(pruner, pruners.BasePruner):
        return pruner
    if pruner is None:
        return pruners.NopPruner()
    if isinstance(pruner, str) and pruner == "auto":
        return pruners.MedianPruner(n_startup_trials=4)
    raise not_allowed("DiceSearchCV", "pruner", "'auto', None or a pruner of Optuna", pruner)


def tabulate_study(study: Study, objective: Objective) -> dict[str, Any]:
    """Return ``cv_results_``; a failed fold is a FitFailedWarning, no score at all a ValueError.

    Folds that were not run are NaN. So are the mean and the standard deviation of such a trial, and
    it has the last rank: a mean over some folds would mislead.
    """
    counted = _counted(study)
    failed = [trial for trial in counted if _ERROR in trial.user_attrs]
    first = f" The first error: {failed[0].user_attrs[_ERROR]}" if failed else ""
    states = [trial.state for trial in counted]
    if TrialState.COMPLETE not in states:
        raise ValueError(
            f"No trial was completed, so there are no best parameters: of {len(states)} trials, "
            f"{len(failed)} failed and {states.count(TrialState.PRUNED)} were pruned.{first}"
        )
    if failed:
        warn(
            f"{len(failed)} of {len(states)} trials had a fold that failed, whose score is "
            f"error_score={objective.error_score!r}.{first}",
            FitFailedWarning,
        )
    trials = [trial for trial in counted if trial.state in _SCORED]
    parameters = [objective.parameters_of(trial) for trial in trials]

    def table(name: str) -> np.ndarray:
        rows = (trial.user_attrs[_FOLDS][name] for trial in trials)
        return np.array(list(zip_longest(*rows, fillvalue=np.nan)), dtype=np.float64).T

    results: dict[str, Any] = {}
    for name in ("fit_time", "score_time"):
        times = table(name)
        results[f"mean_{name}"] = np.nanmean(times, axis=1)
        results[f"std_{name}"] = np.nanstd(times, axis=1)
    for name in dict.fromkeys(name for each in parameters for name in each):
        results[f"param_{name}"] = _parameter_column(parameters, name)
    results["params"] = parameters
    scores = table("score")
    for split, column in enumerate(scores.T):
        results[f"split{split}_test_score"] = column
    results["mean_test_score"] = mean = scores.mean(axis=1)
    results["std_test_score"] = scores.std(axis=1)
    comparable = np.where(np.isnan(mean), -np.inf, mean)
    results["rank_test_score"] = rankdata(-comparable, method="min").astype(np.int32)
    results["trial_number"] = np.array([trial.number for trial in trials])
    results["state"] = np.array([trial.state.name for trial in trials], dtype=object)
    return results


def _parameter_column(parameters: Sequence[Mapping[str, Any]], name: str) -> np.ma.MaskedArray:
    """Return the values of a parameter, masked where a candidate does not have it."""
    given = [each[name] for each in parameters if name in each]
    are_numbers = all(isinstance(value, int | float | np.number | np.bool_) for value in given)
    dtype = np.array(given).dtype if are_numbers else object
    column = np.ma.MaskedArray(np.empty(len(parameters), dtype=dtype), mask=True)
    for row, each in enumerate(parameters):
        if name in each:
            column[row] = each[name]
    return column
