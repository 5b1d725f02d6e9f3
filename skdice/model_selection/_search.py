"""Search over losses and other parameters with Optuna, by cross-validation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import Tags, check_consistent_length, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._inputs import indexable_rows
from .._parameters import RandomState, check_number, check_option, not_allowed
from .._pipeline import final_step, silenced, with_parameters
from .._sklearn import BaseEstimator
from .._typing import Labels, Weights
from ..estimators import TextEstimator
from ..exceptions import told_once
from ..nn import count_processes
from ._cross_val import CrossValidator
from ._space import Space, default_space

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.storages import BaseStorage

# What the search takes over from its best estimator, where that has it.
_OF_BEST = ("classes_", "n_features_in_", "feature_names_in_")


def _of_best(name: str) -> Any:
    """Return a method that calls the best estimator's method of that name, if it has one."""

    def has_method(search: DiceSearchCV) -> bool:
        if not search.refit:
            raise AttributeError(
                f"{name!r} needs refit=True: without, there is no estimator fitted on all rows. "
                f"best_params_ and cv_results_ say what to fit."
            )
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    def method(self: DiceSearchCV, *args: Any, **options: Any) -> Any:
        check_is_fitted(self, "best_estimator_")
        return getattr(self.best_estimator_, name)(*args, **options)

    method.__name__, method.__qualname__ = name, f"DiceSearchCV.{name}"
    method.__doc__ = f"Call ``{name}`` of the best estimator."
    return available_if(has_method)(method)


@dataclass(eq=False, repr=False)
class DiceSearchCV(BaseEstimator):
    """Search for the best loss and parameters by cross-validation, with Optuna.

    It works like ``GridSearchCV``, but Optuna chooses the settings and stops trials that start
    badly. A study on disk or in a database can be resumed, and shared by processes and machines.

    Parameters
    ----------
    estimator : estimator
        Of this package, or any of scikit-learn; a Pipeline too.
    space : callable, optional
        Takes an Optuna trial and returns a dict of parameters of the estimator (also
        ``loss__gamma`` of a loss object, or ``step__alpha`` in a Pipeline), which must depend on
        what the trial suggests alone. Where it switches ``loss``, the loss parameters that the
        estimator was given are reset. By default :func:`suggest_loss` and ``lr``, from a quarter to
        four times that of the estimator; the first trial then is cross-entropy with its own ``lr``.
    n_trials : int, default=20
        Trials in total: complete, pruned and failed ones, over all processes and restarts. Several
        processes may run a few more: each of them, except the last, at most one.
    cv : int, splitter or iterable, optional
        As for ``GridSearchCV``; 5 folds by default.
    scoring : str or callable, optional
        Name of a score, or ``scorer(estimator, X, y)``; ``estimator.score`` by default.
    storage : str, PathLike or optuna.storages.BaseStorage, optional
        Path of a journal file, or URL of a database such as ``"sqlite:///search.db"``. By default
        the study is kept in memory, which processes cannot share.
    study_name : str, optional
        "skdice" by default. A study that is there is resumed, if it has the same estimator, base
        model, data, folds and scoring.
    n_jobs : int, optional
        Trials at a time, each in a process of its own: on this machine, or on the cluster of
        joblib's active backend. None means 1, -1 all cores; more than 1 need a `storage`.
    pruner : "auto", None or optuna.pruners.BasePruner, default="auto"
        Gets the mean score so far after each fold. "auto" is Optuna's ``MedianPruner`` after 4
        complete trials: it stops a trial whose best mean so far is below the median of the other
        trials after the same number of folds. None stops no trial.
    refit : bool, default=True
        Whether to fit the best parameters on all rows at the end.
    error_score : "raise" or float, default="raise"
        What an error in ``fit`` or the scoring means. "raise": the trial is recorded as failed and
        the error is raised. A number: the score of that fold, with a ``FitFailedWarning`` at the
        end; NaN ends the trial as failed.
    timeout : float, optional
        Seconds after which no trial is begun.
    random_state : int, RandomState, Generator or None, default=None
        Draws the suggestions; the estimator keeps its own random state. With an int, a search in
        one process gives the same trials every time.
    verbose : int, default=1
        A progress bar over trials, with the best score; 0: none.

    Attributes
    ----------
    cv_results_ : dict of arrays
        As of ``GridSearchCV``, a row for each complete or pruned trial, with ``trial_number`` and
        ``state``. Folds not run are NaN, and so is the mean of a pruned trial, which ranks last.
        Trials that failed have no row; see ``study_``.
    best_params_ : dict
        Parameters to set on the estimator; None resets those of another loss.
    best_score_ : float
        Mean score over the folds.
    best_index_ : int
        Row of ``cv_results_``.
    best_estimator_ : estimator
        Fitted on all rows; it does all predictions of the search.
    refit_time_ : float
    study_ : optuna.study.Study
        ``trial.user_attrs`` has the ``"error"`` and the ``"worker"`` (host and process) of a trial.
    scorer_ : callable
    n_splits_ : int
    classes_ : ndarray
        The classes of ``best_estimator_``.

    Notes
    -----
    Several processes, on one machine or many, share a study by the same ``storage`` and
    ``study_name``; each call of ``fit`` returns when the study has ``n_trials``. A trial that was
    interrupted, or whose process was killed, does not count, and another one takes its place; after
    a kill it stays in state "running". The rest is up to Optuna and its storages: if one is lost,
    its error ends the search, and the same call resumes.

    Examples
    --------
    >>> from skdice import DiceTokenTagger
    >>> from skdice.model_selection import DiceSearchCV
    >>> def space(trial):
    ...     lr = trial.suggest_categorical("lr", [5e-5, 1e-4])
    ...     return {"loss": "tversky", "alpha": trial.suggest_float("alpha", 0.1, 0.9), "lr": lr}
    >>> search = DiceSearchCV(DiceTokenTagger(random_state=0), space, cv=3, random_state=0)
    >>> search.fit(sentences, tags).best_params_  # doctest: +SKIP
    {'loss': 'tversky', 'alpha': 0.27, 'lr': 0.0001}
    """

    estimator: BaseEstimator
    space: Space | None = None
    _: KW_ONLY
    n_trials: int = 20
    cv: CrossValidator = None
    scoring: str | Callable[..., float] | None = None
    storage: str | PathLike[str] | BaseStorage | None = None
    study_name: str | None = None
    n_jobs: int | None = None
    pruner: BasePruner | Literal["auto"] | None = "auto"
    refit: bool = True
    error_score: float | Literal["raise"] = "raise"
    timeout: float | None = None
    random_state: RandomState = None
    verbose: int = 1

    @told_once()
    def fit(
        self, X: Any, y: Any = None, *, sample_weight: Weights = None, groups: Labels | None = None
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
            If a parameter is not allowed; if the space names an unknown parameter, or the study
            belongs to another search; if no trial was completed.
        RuntimeError
            If this process is one of several that train one model (accelerate launch, torchrun).
        """
        # Optuna is imported only by those who search.
        from ._study import Objective, run_study, tabulate_study

        self._check_parameters()
        for name in ("best_estimator_", "refit_time_", *_OF_BEST):  # They are of another search.
            vars(self).pop(name, None)
        X, y = indexable_rows(X), indexable_rows(y)
        check_consistent_length(X, y, sample_weight, groups)
        space, first = default_space(self.estimator) if self.space is None else (self.space, None)
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        weights = {}
        if sample_weight is not None:
            is_routed = get_config()["enable_metadata_routing"]
            prefix = "" if is_routed else final_step(self.estimator)[0]
            weights[f"{prefix}sample_weight"] = np.asarray(sample_weight)
        self.scorer_ = check_scoring(self.estimator, self.scoring)
        objective = Objective(
            estimator=silenced(self.estimator),
            X=X,
            y=y,
            splits=[(np.asarray(a), np.asarray(b)) for a, b in cv.split(X, y, groups)],
            scorer=self.scorer_,
            weights=weights,
            space=space,
            error_score=self.error_score,
        )
        self.n_splits_ = len(objective.splits)
        if not self.n_splits_:
            raise ValueError("cv gives no folds. An iterator can be used once: pass a list.")
        made_of = [self.estimator, X, y, sample_weight, objective.splits, self.scoring]
        self.study_ = run_study(self, objective, first, made_of)
        results = self.cv_results_ = tabulate_study(self.study_, objective)
        self.best_index_ = int(results["rank_test_score"].argmin())
        self.best_score_ = float(results["mean_test_score"][self.best_index_])
        self.best_params_ = results["params"][self.best_index_]
        if self.refit:
            start = time.perf_counter()
            self.best_estimator_ = with_parameters(self.estimator, self.best_params_)
            self.best_estimator_.fit(X, y, **weights)
            self.refit_time_ = time.perf_counter() - start
            for name in _OF_BEST:
                if hasattr(self.best_estimator_, name):
                    setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        if (n_processes := count_processes()) > 1:
            raise RuntimeError(
                f"{owner} was started in {n_processes} processes that train one model together; "
                f"start each as a program of its own, with the same storage and study_name."
            )
        if not hasattr(self.estimator, "fit") or isinstance(self.estimator, type):
            allowed = "an estimator with a method 'fit'"
            raise not_allowed(owner, "estimator", allowed, self.estimator, TypeError)
        if self.space is not None and not callable(self.space):
            allowed = "None or a callable that takes an Optuna trial and returns parameters"
            raise not_allowed(owner, "space", allowed, self.space, TypeError)
        check_number(owner, "n_trials", self.n_trials, low=1, integer=True)
        check_number(owner, "timeout", self.timeout, low=0, closed="neither", optional=True)
        check_option(owner, "refit", self.refit, (True, False))
        final = final_step(self.estimator)[1]
        is_tagger = isinstance(final, TextEstimator) and final.internals.task.info.is_tagger
        if isinstance(self.scoring, str) and is_tagger:
            allowed = (
                "None (its score) or a callable for a tagger, such as entity_f1_scorer or "
                "tag_f1_scorer of skdice.metrics: those of scikit-learn take one label a row"
            )
            raise not_allowed(owner, "scoring", allowed, self.scoring)
        if not isinstance(self.error_score, int | float | np.number):
            check_option(owner, "error_score", self.error_score, ("raise", "a float"))

    predict = _of_best("predict")
    predict_proba = _of_best("predict_proba")
    decision_function = _of_best("decision_function")
    predict_spans = _of_best("predict_spans")
    predict_entities = _of_best("predict_entities")
    predict_iter = _of_best("predict_iter")
    exact_match = _of_best("exact_match")
    transform = _of_best("transform")

    def score(self, X: Any, y: Any = None) -> float:
        """Score the best estimator by ``scoring``, or by its own ``score``."""
        check_is_fitted(self, "best_estimator_")
        return float(self.scorer_(self.best_estimator_, X, y))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags"):
            setattr(tags, name, getattr(inner, name))
        tags.input_tags = inner.input_tags
        return tags
