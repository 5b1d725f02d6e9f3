"""What all estimators share: ``fit``, what it leaves behind, and a network for predictions."""

import copy
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Self, TypeVar, cast, overload

import numpy as np
import pandas as pd
from sklearn.exceptions import NotFittedError

from .._inputs import check_groups, check_sample_weight
from .._parameters import check_parameters
from ..exceptions import warn
from ..fitting import Fitted, Given, fit, network_of, out_of_fold_scores, settings_of
from ..losses import Loss
from ..nn import TextNet, check_callbacks, count_processes, failing_together, shared_seed
from ..tasks import Network, Rows, Task, TeachableTask, read_fit_rows
from ..text import WordTokenizer
from ._saving import SavedEstimator
from ._teacher import ask_teacher

# The task of an estimator, and the type of an attribute.
T = TypeVar("T", bound=Task)
V = TypeVar("V")

# A part of the docstrings of all estimators.
_CONTAINERS = """\
    X and y may be lists, arrays, columns and tables of pandas, or anything that has ``to_list``,
    ``tolist`` or ``to_pandas``, such as those of polars, pyarrow and Hugging Face datasets.
"""
_INTERRUPTED = (
    "The estimator can be used: it has the weights of the last step or, with patience, of the best "
    "epoch so far; of several networks, those that were finished. Its interrupted_ is True."
)


class FittedAttribute(Generic[V]):
    """An attribute that ends in "_": a part of what the fit has learned, read where it stands.

    ``path`` leads to it from :class:`skdice.fitting.Fitted`. An attribute that is a decision of the
    task may be set. With ``optional``, None means that there is no such attribute.
    """

    def __init__(self, path: str, *, optional: bool = False) -> None:
        self._read = attrgetter(path)
        self._is_optional = optional

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: "TextEstimator[Any]", owner: type) -> V: ...
    def __get__(self, instance: "TextEstimator[Any] | None", owner: type) -> Any:
        if instance is None:
            return self
        fitted = instance.internals.fitted
        value = self._read(fitted)
        if value is None and self._is_optional:
            raise AttributeError(f"This {owner.__name__} has no {self._name}.")
        if self._name in fitted.task.info.decision:
            # It is read-only: what is written into it would not be checked.
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            return MappingProxyType(value) if isinstance(value, dict) else value
        return value

    def __set__(self, instance: "TextEstimator[Any]", value: V) -> None:
        fitted = instance.internals.fitted
        if self._name not in fitted.task.info.decision:
            raise AttributeError(f"{self._name} is what fit has learned; it cannot be set.")
        task = fitted.task.with_decision(self._name, value)
        instance._fitted = replace(fitted, task=task)


class TextEstimator(SavedEstimator, Generic[T]):
    """Base of the estimators: a subclass says what is asked for, and gives predictions.

    What a fit has learned is one value, which ``internals`` has with all that other modules of the
    library ask of an estimator.

    Attributes
    ----------
    loss_ : Loss
        The loss that was used, with all parameters set.
    choices_ : DataFrame
        A row for each parameter that was left open: ``parameter``, the ``value`` that was taken,
        and ``why``, in a sentence.
    runs_ : DataFrame
        A row for each network of the fit, numbered from 1 on: its ``loss``, learning rate ``lr``,
        ``max_epochs``, the ``epochs`` that it made, its ``best_epoch``, the ``score`` of that epoch
        on rows to validate on, and whether it ``began_again`` with a third of the rate,
        ``is_finished``, and ``is_kept``, alone or in an ensemble.
    history_ : DataFrame
        A row for each network (``run``, from 1 on) and epoch: training loss, validation score,
        learning rate, number of texts, seconds.
    negative_ratio_ : float or None
        The ``negative_ratio`` that was used; None if every epoch has all texts.
    max_epochs_, lr_ : int, float
        The ``max_epochs`` and ``lr`` that were used.
    best_epoch_ : int
        Epoch of the weights that are kept; of several networks, that of the first.
    interrupted_ : bool
        Whether ``fit`` ended before its end, by Ctrl-C or an error; predictions then warn.
    max_length_ : int
    net_ : skorch net
        To be read only: ``net_.history``, ``net_.module_`` (the torch module),
        ``net_.callbacks_``.
    """

    _texts: ClassVar[dict[str, str]] = {"containers": _CONTAINERS}
    _tuned: ClassVar[str | None] = None  # what "auto" tunes on rows to validate on

    net_ = FittedAttribute[TextNet]("net")
    loss_ = FittedAttribute[Loss]("loss")
    choices_ = FittedAttribute[pd.DataFrame]("choice_table")
    runs_ = FittedAttribute[pd.DataFrame]("runs")
    history_ = FittedAttribute[pd.DataFrame]("history")
    max_epochs_ = FittedAttribute[int]("net.max_epochs")
    lr_ = FittedAttribute[float]("net.lr")
    best_epoch_ = FittedAttribute[int]("best_epoch")
    negative_ratio_ = FittedAttribute[float | None]("negative_ratio")
    interrupted_ = FittedAttribute[bool]("interrupted")
    tokenizer_ = FittedAttribute[WordTokenizer]("reader.tokenizer")
    max_length_ = FittedAttribute[int]("reader.max_length")
    feature_names_in_ = FittedAttribute[np.ndarray]("feature_names", optional=True)

    def _asked(self) -> T:
        """Return the task as the parameters ask for it."""
        raise NotImplementedError

    @property
    def internals(self) -> "Internals[T]":
        """For other modules of this library only: it may change at any time."""
        return Internals(self)

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted is not None

    def _feature_names(self, X: Any) -> np.ndarray | None:
        """Return the names of the columns of X, if it is a table with names."""
        return None

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of a loss object (``loss__gamma``).

        Raises
        ------
        ValueError
            If a parameter is unknown, or ``loss__...`` is set while ``loss`` is a name.
        """
        loss = params.get("loss", self.loss)
        nested = [name.removeprefix("loss__") for name in params if name.startswith("loss__")]
        if nested and isinstance(loss, str):
            raise ValueError(
                f"'loss__{nested[0]}' needs a loss object, as loss=DiceLoss() of skdice.losses; "
                f"loss={loss!r} is a name. Set {nested[0]!r} on the estimator."
            )
        known = list(self.get_params(deep=False))
        for name in (name.partition("__")[0] for name in params):
            if name not in known and (near := get_close_matches(name, known, n=1)):
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {type(self).__name__}. Did you mean "
                    f"{near[0]!r}? Valid parameters are: {known}."
                )
        return super().set_params(**params)

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        validation: Any = None,
        unlabeled: Any = None,
        teacher: Any = None,
    ) -> Self:
        """Fine-tune the model.

        Parameters
        ----------
        X, y : rows and labels
            As the class says.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row; 2 counts as repetition, 0 as absence.
        groups : array-like of shape (n_rows,), optional
            Rows of one group, such as a document, are kept together when rows are split for
            validation or folds.
        validation : tuple (X, y) or (X, y, sample_weight), optional
            Other rows, which are scored after every epoch, instead of ``validation_fraction``.
        unlabeled : rows as those of X, or a function that returns them, optional
            Rows without labels, some thousands of them. Three networks learn from X and y and label
            these rows; then the estimator learns from both. Each of these rows has as its weight
            the probability of its label times the mean of ``sample_weight``: of a sentence, that of
            its least sure tag. A classifier learns it with every label that has a probability of
            0.03 or more. Takes several times as long. For ``DiceTokenTagger`` and the
            classifiers. In cross-validation of scikit-learn pass a function without arguments:
            scikit-learn splits a list of as many rows as X has with its folds, and ``fit`` cannot
            tell.
        teacher : fitted estimator, optional
            Labels the rows of ``unlabeled`` in place of the three networks: a tagger or classifier
            with the classes of y, such as one with a larger encoder, or any object with
            ``classes_``, ``predict`` and ``predict_proba``. What it says is checked like any input.

        Returns
        -------
        estimator
            self

        Raises
        ------
        ValueError
            If parameters or data are not allowed, or the loss stops being finite; the message says
            what was got, what is allowed, and which row.
        TypeError
            If X or y is no container of rows, a group is no name, ``unlabeled`` is given to an
            estimator that has no use for it, or ``teacher`` cannot predict.
        """
        # Everything that can be refused is refused before the estimator changes.
        with failing_together(self.device):
            self.check_parameters()
            self._check_validation(validation)
            deadline = time.monotonic() + (self.time_limit or math.inf)
            task, names = self._asked(), self._feature_names(X)
            unlabeled = unlabeled() if callable(unlabeled) else unlabeled
            groups, validation = read_fit_rows(X, groups, validation)
            X_read, y_read, kept = task.read_training(X, y)
            weight = check_sample_weight(sample_weight, len(X_read))
            groups = task.groups(X_read) if groups is None else groups
            rows = Rows(X_read, y_read, weight, groups, np.arange(len(X_read))).used(kept)
            if not len(rows):
                raise ValueError(f"Found no {task.info.row} to train on; X has {len(X_read)} rows.")
            if count_processes() > 1:  # The others would wait for one that fails later.
                task.check_learnable(rows, task.facts(rows), self.loss)
            valid = None if validation is None else task.read(*validation)
            others = None if unlabeled is None else _read_unlabeled(task, unlabeled, len(X_read))
            for more in (validation and validation[0], unlabeled):
                if more is not None:
                    self._check_same_columns(more, names)
            if teacher is not None:
                if others is None:
                    raise ValueError(
                        "teacher labels the rows of unlabeled, which must not be None."
                    )
                others = replace(others, y=ask_teacher(teacher, task, unlabeled, others.X, rows))
        settings = settings_of(self)
        given = Given(
            settings=settings,
            rows=rows,
            valid=valid,
            unlabeled=others,
            seed=shared_seed(settings.random_state, settings.device),
            feature_names=names,
            deadline=deadline,
        )
        self._fitted, error = fit(task, given)
        if isinstance(error, KeyboardInterrupt):
            error.add_note(_INTERRUPTED)
        if error is not None:
            raise error
        return self

    def _check_validation(self, validation: Any) -> None:
        """Raise a ValueError if rows to validate on are missing, or are named twice."""
        if validation is not None and self.validation_fraction is not None:
            raise ValueError(
                f"validation takes the place of validation_fraction, which must be None with it. "
                f"Got validation_fraction={self.validation_fraction!r}."
            )
        validates = validation is not None or self.validation_fraction is not None
        needs = None if self.patience is None else f"patience={self.patience!r}"
        if self._tuned is not None and getattr(self, self._tuned) == "auto":
            needs = f"{self._tuned}='auto'"
        if needs and not validates:
            raise ValueError(
                f"{needs} needs rows to validate on: validation_fraction (a float in (0, 1)), or "
                f"validation=(X, y) in fit. Got validation_fraction=None."
            )
        check_callbacks(self.callbacks, validates)

    def _check_same_columns(self, X: Any, known: np.ndarray | None) -> None:
        """Raise a ValueError unless a table has the columns of the fit, in that order."""
        names = self._feature_names(X)
        if names is not None and known is not None and names.tolist() != known.tolist():
            raise ValueError(
                f"The columns of X must be those of the fit, in that order: {known.tolist()}; got "
                f"{names.tolist()}."
            )

    def _ready(self) -> "Internals[T]":
        """Return what predicts; warn if the fit did not come to its end."""
        inner = Internals(self)
        if inner.fitted.interrupted:
            warn(
                f"The fit of this {type(self).__name__} did not come to its end: "
                f"{_where_it_stopped(self.runs_)} (interrupted_ is True)."
            )
        return inner

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.non_deterministic = self.random_state is None
        return tags


@dataclass(frozen=True, eq=False)
class Internals(Generic[T]):
    """What other modules of the library ask of an estimator."""

    estimator: TextEstimator[T]

    @property
    def fitted(self) -> Fitted:
        """What the fit has learned."""
        estimator = self.estimator
        if estimator._fitted is None:
            name = type(estimator).__name__
            raise NotFittedError(f"This {name} instance is not fitted yet. Call fit, or load one.")
        return estimator._fitted

    @property
    def task(self) -> T:
        """The task that was learned, with parameters that may be set later; else what is asked."""
        estimator = self.estimator
        if estimator._fitted is None:
            return estimator._asked()
        task = cast(T, estimator._fitted.task)
        names = task.info.adjustable
        check_parameters(estimator, names)
        return replace(task, **{name: getattr(estimator, name) for name in names})

    @property
    def network(self) -> Network:
        """The network as the task sees it, computed as ``runtime`` says."""
        estimator, fitted = self.estimator, self.fitted
        # They may be set after the fit.
        check_parameters(estimator, ("runtime", "batch_size", "verbose"))
        runtime = estimator.runtime
        return network_of(fitted.task, fitted.net, fitted.reader, estimator, runtime)

    def predict_scored(self, X: Any) -> tuple[Any, Any]:
        """Return what a tagger or classifier predicts and its probabilities, at the cost of one."""
        estimator: Any = self.estimator
        scored: tuple[Any, Any] = estimator._predict_scored(X)
        return scored

    def check_parameters(self) -> None:
        """Raise a ValueError unless all parameters are allowed in a fit of rows."""
        self.estimator.check_parameters()
        self.estimator._check_validation(None)

    def read_X(self, X: Any) -> list[Any]:
        """Return checked rows of X, of a table with the columns of the fit, if there was one."""
        if self.estimator._fitted is not None:
            self.estimator._check_same_columns(X, self.fitted.feature_names)
        return self.task.read_X(X)

    def read_labelled(self, X: Any, y: Any, weight: Any = None) -> Rows:
        """Return rows of X, of a table with the columns of the fit, with their labels."""
        self.estimator._check_same_columns(X, self.fitted.feature_names)
        return self.task.read(X, y, weight)

    def decision_scores(self, rows: Sequence[Any]) -> list[Any]:
        """Return the scores of each checked row that the decision is made on."""
        return self.task.scores(rows, self.network)

    def out_of_fold_scores(
        self, X: Any, y: Any, weight: Any = None, groups: Any = None, *, n_folds: int
    ) -> list[Any]:
        """Return the scores of each row by a fit that has not seen it."""
        estimator, task = self.estimator, self.task
        if n_unlabeled := self.fitted.n_unlabeled:
            raise ValueError(
                f"This {type(estimator).__name__} has learned from {n_unlabeled:,} rows "
                f"without labels, and fits of folds would not have them. Tune the decision on rows "
                f"that are held out, or in the fit by 'cv'."
            )
        estimator._check_same_columns(X, self.fitted.feature_names)
        estimator.check_parameters()
        X_read, y_read, kept = task.read_training(X, y)
        weight = check_sample_weight(weight, len(X_read))
        if kept is not None:  # The others are scored, but nothing is learned from them.
            is_kept = np.isin(np.arange(len(X_read)), kept)
            weight = is_kept.astype(np.float32) if weight is None else weight * is_kept
        groups = task.groups(X_read) if groups is None else check_groups(groups, len(X_read))
        rows = Rows(X_read, y_read, weight, groups, np.arange(len(X_read)))
        settings = settings_of(estimator)
        given = Given(
            settings=settings,
            rows=rows,
            seed=shared_seed(settings.random_state, settings.device),
            deadline=time.monotonic() + n_folds * (settings.time_limit or math.inf),
        )
        return out_of_fold_scores(task, given, n_folds)

    def with_task(self, task: T) -> TextEstimator[T]:
        """Return a copy of the estimator, which shares the network, with another decision."""
        other = copy.copy(self.estimator)
        other._fitted = replace(self.fitted, task=task)
        return other


def _where_it_stopped(runs: pd.DataFrame) -> str:
    """Return in which epoch a fit stopped and, of several networks, in which one."""
    left = runs[~runs["is_finished"]]
    if not len(left):
        return "it stopped after the last epoch"
    run, n_runs = left.iloc[0], len(runs)
    which = f" of network {left.index[0]} of {n_runs}" if n_runs > 1 else ""
    epoch = min(run["epochs"] + 1, run["max_epochs"])
    return f"it stopped in epoch {epoch} of {run['max_epochs']}{which}"


def _read_unlabeled(task: Task, unlabeled: Any, n_labelled: int) -> Rows:
    """Return checked rows without labels, numbered after those with labels."""
    if not isinstance(task, TeachableTask):
        raise TypeError(
            f"{task.owner} does not learn from rows without labels: unlabeled must be None."
        )
    try:
        rows = task.read_X(unlabeled)
    except (TypeError, ValueError) as error:
        raise type(error)(f"unlabeled is read as X is. {error}") from error
    if not len(rows):
        raise ValueError("unlabeled must have a row; got none.")
    return Rows(rows, None, None, None, n_labelled + np.arange(len(rows)))
