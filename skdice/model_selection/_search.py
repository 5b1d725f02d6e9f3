"""Search over losses and other parameters with Optuna, by cross-validation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn
from joblib import effective_n_jobs
from sklearn.base import is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_consistent_length

from .._parameters import check_bool, check_number
from .._random_state import make_rng
from ..estimators._reuse import default_max_bytes
from ..nn._ranks import count_processes
from ._best_estimator import BestEstimatorMethods
from ._cv_results import make_cv_results
from ._evaluation import CrossValidation
from ._fingerprint import search_fingerprint
from ._space import default_space, final_estimator, with_parameters

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

    from ._trials import StudyPlan

_DEFAULT_STUDY = "skdice"


class DiceSearchCV(BestEstimatorMethods):
    """Search for the best loss and parameters by cross-validation, with Optuna.

    It is to Optuna what ``GridSearchCV`` is to grids. Parameters that depend on others, as those of
    a loss do, are drawn only where they exist; trials that start badly are stopped after a fold;
    and a study on disk or in a database can be resumed, and shared by processes and machines.

    Parameters
    ----------
    estimator : estimator
        Of this package, or any of scikit-learn; a Pipeline too.
    space : callable, optional
        Takes an Optuna trial and returns a dict of parameters of the estimator (any, also
        ``loss__gamma`` of a loss object, or ``step__alpha`` in a Pipeline). They must depend on
        what the trial suggests alone. Where it switches ``loss``, parameters that the new loss does
        not take are reset. By default :func:`suggest_loss`, for the last step of a Pipeline.
    n_trials : int, default=20
        Trials that the study ends with, complete, pruned and failed ones together, over all
        processes and restarts. If the study has as many already, nothing is fitted but the best.
    cv : int, splitter or iterable, optional
        As for ``GridSearchCV``; 5 folds by default.
    scoring : str or callable, optional
        Name of a score, or ``scorer(estimator, X, y)``; ``estimator.score`` by default.
    storage : str, PathLike or optuna.storages.BaseStorage, optional
        Path of a journal file, or URL of a database: ``"sqlite:///search.db"``,
        ``"postgresql://user@host/database"`` (an error says which driver to install). By default
        the study is kept in memory and ends with the process.
    study_name : str, optional
        "skdice" by default. A study that is there is resumed, if it has the same estimator, base
        model (by its files, not its name), data, folds and scoring.
    n_jobs : int, optional
        Processes, each with a trial of its own: on this machine, or on the cluster of joblib's
        active backend. None means 1, -1 all cores.
    pruner : "auto", None or optuna.pruners.BasePruner, default="auto"
        "auto" stops a trial whose mean score so far is below the median of the complete trials
        after as many folds, once there are 4 of them; None stops none. A pruner of Optuna gets
        the mean score so far after each fold.
    refit : bool, default=True
        Whether to fit the best parameters on all rows at the end.
    error_score : "raise" or float, default="raise"
        What an error in ``fit`` or the scoring means. "raise": the trial is recorded as failed and
        the error is raised. A number: the score of that fold, with a ``FitFailedWarning`` at the
        end. With NaN the trial fails at once and the search goes on.
    timeout : float, optional
        Seconds after which no trial is begun.
    random_state : int, RandomState, Generator or None, default=None
        For what is suggested; the estimator keeps its own. With an int, a search in one process
        gives the same trials every time.
    verbose : int, default=1
        A progress bar over trials; 0: none. The fits in the folds are silent.

    Attributes
    ----------
    cv_results_ : dict of arrays
        As of ``GridSearchCV``, a row for each complete or pruned trial, with ``trial_number`` and
        ``state``. Folds not run are NaN, and so is the mean of a pruned trial, which ranks last.
        Trials that failed have no row; see ``study_``.
    best_params_ : dict
        What to set on the estimator: parameters that the loss takes, and None where the estimator
        was given one that it does not take.
    best_score_ : float
        Mean score over the folds.
    best_index_ : int
        Row of ``cv_results_``.
    best_estimator_ : estimator
        Fitted on all rows; all prediction methods are its.
    refit_time_ : float
        Seconds.
    study_ : optuna.study.Study
        With the text of errors in ``trial.user_attrs["error"]``.
    scorer_ : callable
    n_splits_ : int
    classes_ : ndarray
        Those of ``best_estimator_``.

    See Also
    --------
    suggest_loss : The default space.
    sklearn.model_selection.GridSearchCV : All combinations of a grid.

    Notes
    -----
    Trials share what does not depend on their parameters, as inside :func:`reuse_work`: texts are
    tokenised once, and with ``n_frozen_layers=k`` the first k layers run once for each text. If
    their output takes more than a quarter of the machine's memory, a warning says that they run in
    every fit.

    Several processes, on one machine or many, share a study by the same ``storage`` and
    ``study_name``; each call of ``fit`` returns when the study has ``n_trials``. A trial whose
    process was killed is replaced: at once on the same machine, after three minutes without a sign
    of life elsewhere. Such trials, and those interrupted by hand, are withdrawn: in ``study_`` they
    are failed, with ``user_attrs["withdrawn"]``, and they do not count.

    Examples
    --------
    >>> from skdice import DiceTokenTagger
    >>> from skdice.model_selection import DiceSearchCV
    >>> def space(trial):
    ...     alpha = trial.suggest_float("alpha", 0.1, 0.9)
    ...     return {"loss": "tversky", "alpha": alpha, "beta": 1 - alpha}
    >>> search = DiceSearchCV(DiceTokenTagger(random_state=0), space, cv=3, random_state=0)
    >>> search.fit(sentences, tags).best_params_  # doctest: +SKIP
    {'loss': 'tversky', 'alpha': 0.31, 'beta': 0.69}
    """

    def __init__(
        self,
        estimator: Any,
        space: Any = None,
        *,
        n_trials: int = 20,
        cv: Any = None,
        scoring: Any = None,
        storage: Any = None,
        study_name: str | None = None,
        n_jobs: int | None = None,
        pruner: Any = "auto",
        refit: bool = True,
        error_score: Any = "raise",
        timeout: float | None = None,
        random_state: Any = None,
        verbose: int = 1,
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.n_trials = n_trials
        self.cv = cv
        self.scoring = scoring
        self.storage = storage
        self.study_name = study_name
        self.n_jobs = n_jobs
        self.pruner = pruner
        self.refit = refit
        self.error_score = error_score
        self.timeout = timeout
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None
    ) -> DiceSearchCV:
        """Search, and fit the best parameters on all rows.

        Parameters
        ----------
        X, y : rows and their labels
            As the estimator takes them.
        sample_weight : array-like of shape (n_rows,), optional
            Weights for ``fit``, of the last step of a Pipeline; scores are not weighted.
        groups : array-like of shape (n_rows,), optional
            For splitters that keep groups together.

        Returns
        -------
        DiceSearchCV
            self

        Raises
        ------
        TypeError, ValueError
            If a parameter is not allowed; if the space names an unknown parameter, the storage
            cannot be reached, or the study belongs to another search; if no trial was completed.
        RuntimeError
            If this process is one of several that train one model (accelerate launch, torchrun).
        ConnectionError
            If the storage is lost in mid-search, and retrying for two minutes does not help. What
            it has is kept; the same call goes on.
        """
        # Optuna is imported only by those who search.
        from ._storage import quiet_optuna
        from ._study import run_study

        self._check_parameters()
        plan = self._make_plan()
        task = self._make_task(X, y, sample_weight, groups)
        fingerprint = search_fingerprint(
            self.estimator, X, y, sample_weight, task.splits, self.scoring
        )
        with quiet_optuna():
            study = run_study(
                plan,
                task,
                fingerprint,
                seconds=self.timeout,
                n_jobs=effective_n_jobs(self.n_jobs),
                verbose=self.verbose,
            )
            self._set_results(study, plan, task)
        if self.refit:
            start = time.perf_counter()
            self.best_estimator_ = with_parameters(self.estimator, self.best_params_)
            self.best_estimator_.fit(X, y, **task.fit_parameters)
            self.refit_time_ = time.perf_counter() - start
        return self

    # -- parameters -------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        if (n_processes := count_processes()) > 1:
            raise RuntimeError(
                f"{owner} was started in {n_processes} processes that train one model together, as "
                f"accelerate launch and torchrun start them, but they would search for themselves. "
                f"Start each worker as a program of its own, with the same storage and study_name."
            )
        if not hasattr(self.estimator, "fit") or isinstance(self.estimator, type):
            raise TypeError(
                f"The 'estimator' parameter of {owner} must be an estimator with a method 'fit'. "
                f"Got {self.estimator!r} instead."
            )
        if self.space is not None and not callable(self.space):
            raise TypeError(
                f"The 'space' parameter of {owner} must be None or a callable that takes an Optuna "
                f"trial and returns a dict of parameters. Got {self.space!r} instead."
            )
        check_number(owner, "n_trials", self.n_trials, low=1, integer=True)
        check_number(owner, "timeout", self.timeout, low=0, closed="neither", optional=True)
        check_number(owner, "n_jobs", self.n_jobs, integer=True, optional=True)
        check_bool(owner, "refit", self.refit)
        if self.n_jobs == 0:
            raise ValueError(
                f"The 'n_jobs' parameter of {owner} must be None or an int other than 0. Got 0 "
                f"instead."
            )
        is_number = isinstance(self.error_score, int | float | np.number)
        if not (is_number or (isinstance(self.error_score, str) and self.error_score == "raise")):
            raise ValueError(
                f"The 'error_score' parameter of {owner} must be 'raise' or a float. Got "
                f"{self.error_score!r} instead."
            )
        name = self.study_name
        if name is not None and (not isinstance(name, str) or not name):
            raise ValueError(
                f"The 'study_name' parameter of {owner} must be None or a str that is not empty. "
                f"Got {name!r} instead."
            )

    def _make_pruner(self) -> Any:
        from optuna.pruners import BasePruner, NopPruner

        from ._pruner import MeanPruner

        if isinstance(self.pruner, BasePruner):
            return self.pruner
        if self.pruner is None:
            return NopPruner()
        if isinstance(self.pruner, str) and self.pruner == "auto":
            return MeanPruner(n_complete=4)
        raise ValueError(
            f"The 'pruner' parameter of {type(self).__name__} must be 'auto', None or a pruner of "
            f"Optuna. Got {self.pruner!r} instead."
        )

    def _make_task(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> CrossValidation:
        """Return what all trials have in common, and set ``scorer_`` and ``n_splits_``."""
        check_consistent_length(X, y, sample_weight, groups)
        if isinstance(self.scoring, list | tuple | set | dict):
            raise ValueError(
                f"The 'scoring' parameter of {type(self).__name__} must be one score: None, a str "
                f"or a callable. Got {self.scoring!r} instead."
            )
        self.scorer_ = check_scoring(self.estimator, self.scoring)
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        splits = [(np.asarray(train), np.asarray(test)) for train, test in cv.split(X, y, groups)]
        self.n_splits_ = len(splits)
        fit_parameters = {}
        if sample_weight is not None:
            prefix, _ = final_estimator(self.estimator)
            if sklearn.get_config()["enable_metadata_routing"]:
                prefix = ""
            fit_parameters[f"{prefix}sample_weight"] = np.asarray(sample_weight)
        return CrossValidation(
            estimator=_silent(self.estimator),
            X=X,
            y=y,
            splits=splits,
            scorer=self.scorer_,
            fit_parameters=fit_parameters,
        )

    def _make_plan(self) -> StudyPlan:
        from ._trials import StudyPlan

        return StudyPlan(
            storage=self.storage,
            study_name=self.study_name or _DEFAULT_STUDY,
            space=default_space(self.estimator) if self.space is None else self.space,
            n_trials=int(self.n_trials),
            pruner=self._make_pruner(),
            seed=make_rng(self.random_state, type(self).__name__).getrandbits(32),
            error_score=self.error_score,
            max_bytes=default_max_bytes() // effective_n_jobs(self.n_jobs),
        )

    # -- results ----------------------------------------------------------------------------------

    def _set_results(self, study: Study, plan: StudyPlan, task: CrossValidation) -> None:
        from ._budget import counted_trials
        from ._trials import FOLDS, parameters_of, shown_trials

        self.study_ = study
        counted = counted_trials(study)
        _check_failures(counted, self.n_splits_, self.error_score)
        trials = shown_trials(counted)
        results = make_cv_results(
            [parameters_of(trial, plan.space, task.estimator) for trial in trials],
            [trial.user_attrs[FOLDS] for trial in trials],
            self.n_splits_,
        )
        results["trial_number"] = np.array([trial.number for trial in trials])
        results["state"] = np.array([trial.state.name for trial in trials], dtype=object)
        self.cv_results_ = results
        self.best_index_ = int(np.nanargmax(results["mean_test_score"]))
        self.best_score_ = float(results["mean_test_score"][self.best_index_])
        self.best_params_ = results["params"][self.best_index_]


def _silent(estimator: Any) -> Any:
    """Return a copy of which the last step shows nothing: the search has a bar of its own."""
    prefix, final = final_estimator(estimator)
    has_verbose = hasattr(final, "get_params") and "verbose" in final.get_params(deep=False)
    return with_parameters(estimator, {f"{prefix}verbose": 0} if has_verbose else {})


def _check_failures(trials: Sequence[FrozenTrial], n_splits: int, error_score: Any) -> None:
    """Warn of trials that failed; raise a ValueError if no trial has a score."""
    from ._trials import ERROR, N_FAILED

    failed = [trial for trial in trials if ERROR in trial.user_attrs]
    first = f" The first error: {failed[0].user_attrs[ERROR]}" if failed else ""
    if not any(
        trial.state.name == "COMPLETE" and trial.user_attrs.get(N_FAILED, 0) < n_splits
        for trial in trials
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
            stacklevel=3,
        )
