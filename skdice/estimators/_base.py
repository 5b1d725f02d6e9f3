"""What all estimators share: ``fit``, what it leaves behind, and a network for predictions."""

import copy
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import _num_samples, check_is_fitted

from .._inputs import check_rows, check_sample_weight
from .._parameters import check_option
from ..fitting import (
    FitStopped,
    Fitted,
    check_settings,
    fit,
    logits_of,
    out_of_fold_scores,
    settings_of,
)
from ..io import onnx_network
from ..losses import Loss
from ..nn import RUNTIMES, TextNet, check_callbacks, resolve_device
from ..tasks import Logits, Rows, Task, read_fit_rows
from ..text import Reader, WordTokenizer
from ._saving import SavedEstimator
from ._shared import CONTAINERS, FITTED_ATTRIBUTES

_INTERRUPTED = (
    "The estimator can be used: it has the weights of the last step or, with patience, of the best "
    "epoch so far; of an ensemble, the networks that were finished. Its interrupted_ is True."
)


class TextEstimator(SavedEstimator):
    """Base of the estimators: a subclass says what is asked for, and gives predictions."""

    _texts: ClassVar[dict[str, str]] = {"attributes": FITTED_ATTRIBUTES, "containers": CONTAINERS}

    # What fit has learned.
    _learned_task: Task
    tokenizer_: WordTokenizer
    max_length_: int
    net_: TextNet
    loss_: Loss
    choices_: pd.DataFrame
    history_: pd.DataFrame
    max_epochs_: int
    lr_: float
    best_epoch_: int
    negative_ratio_: float | None
    interrupted_: bool

    def _asked(self) -> Task:
        """Return the task as the parameters ask for it."""
        raise NotImplementedError

    @property
    def _task(self) -> Task:
        """The task that was learned, with parameters that may be set later; else what is asked."""
        task: Task | None = vars(self).get("_learned_task")
        if task is None:
            return self._asked()
        return replace(task, **{name: getattr(self, name) for name in task.adjustable})

    def _check_parameters(self) -> None:
        """Raise a ValueError unless all parameters are allowed, also together."""
        check_settings(self)

    def _feature_names(self, X: Any) -> np.ndarray | None:
        """Return the names of the columns of X, if it is a table with names."""
        return None

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        validation: Any = None,
        unlabeled: Any = None,
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
        validation : tuple (X, y), or array of int or bool, optional
            What is scored after every epoch, instead of ``validation_fraction``: other rows, or the
            indices or a mask of rows of X.
        unlabeled : rows as those of X, or a function that returns them, optional
            Rows without labels, some thousands of them. Three networks learn from X and y and label
            these rows; then the estimator learns from both. Each of these rows has as its weight
            the probability of its label times the mean of ``sample_weight``: of a sentence, that of
            its least sure tag. A classifier learns it with every label that has a probability of
            0.03 or more. Takes at least five times as long. For ``DiceTokenTagger`` and the
            classifiers. In cross-validation of scikit-learn pass a function without arguments:
            scikit-learn splits a list of as many rows as X has with its folds, and ``fit`` cannot
            tell.

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
            If X or y is no container of rows, or ``unlabeled`` is given to an estimator that has no
            use for it.
        """
        # Everything that can be refused is refused before the estimator changes.
        self._check_parameters()
        self._check_validation(validation)
        resolve_device(self.device)  # It raises an error if the device is not there.
        task, names = self._asked(), self._feature_names(X)
        unlabeled = unlabeled() if callable(unlabeled) else unlabeled
        X, y, weight, groups, validation = read_fit_rows(X, y, sample_weight, groups, validation)
        X_read, y_read, kept = task.read_training(X, y)
        weight = check_sample_weight(weight, len(X_read))
        groups = task.groups(X_read) if groups is None else groups
        rows = Rows(X_read, y_read, weight, groups, np.arange(len(X_read))).used(kept)
        if not len(rows):
            raise ValueError(f"Found no {task.row} to train on; X has {len(X_read)} rows.")
        valid = None if validation is None else task.read(*validation)
        others = None if unlabeled is None else _read_unlabeled(task, unlabeled, len(X_read))
        for given in (validation and validation[0], unlabeled):
            if given is not None:
                self._check_same_columns(given, names)
        error: BaseException | None = None
        try:
            fitted = fit(task, settings_of(self), rows, valid, others)
        except FitStopped as stopped:
            fitted, error = stopped.fitted, stopped.error
        self._keep(fitted, names)
        if isinstance(error, KeyboardInterrupt):
            error.add_note(_INTERRUPTED)
        if error is not None:
            raise error
        return self

    def _keep(self, fitted: Fitted, names: np.ndarray | None) -> None:
        """Set all fitted attributes; nothing else does."""
        net = fitted.net
        self._set_task(fitted.task)
        self.tokenizer_, self.max_length_ = fitted.reader.tokenizer, fitted.reader.max_length
        self.net_ = net
        self.loss_ = fitted.loss
        self.choices_ = fitted.choices
        self.history_ = fitted.history
        self.max_epochs_, self.lr_ = net.max_epochs, net.lr
        self.best_epoch_ = fitted.best_epoch
        self.negative_ratio_ = fitted.ratio
        self.interrupted_ = fitted.is_interrupted
        self._n_training_rows = fitted.n_rows
        self._n_unlabeled_rows = fitted.n_unlabeled
        vars(self).pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names

    def _set_task(self, task: Any) -> None:
        """Set what was learned of the task; subclasses set the attributes that show it."""
        self._learned_task = task

    def _check_validation(self, validation: Any) -> None:
        """Raise a ValueError if rows to validate on are missing, or are named twice."""
        if validation is not None and self.validation_fraction is not None:
            raise ValueError(
                f"validation takes the place of validation_fraction, which must be None with it. "
                f"Got validation_fraction={self.validation_fraction!r}."
            )
        validates = validation is not None or self.validation_fraction is not None
        needs = self._needs_validation()
        if needs and not validates:
            raise ValueError(
                f"{needs} needs rows to validate on: validation_fraction (a float in (0, 1)), or "
                f"validation=(X, y) in fit. Got validation_fraction=None."
            )
        check_callbacks(self.callbacks, validates)

    def _needs_validation(self) -> str | None:
        """Return the parameter that needs rows to validate on, as it is set."""
        return None if self.patience is None else f"patience={self.patience!r}"

    def _check_feature_names(self, X: Any) -> None:
        """Raise a ValueError unless a table has the columns of the fit, in that order."""
        self._check_same_columns(X, getattr(self, "feature_names_in_", None))

    def _check_same_columns(self, X: Any, known: np.ndarray | None) -> None:
        names = self._feature_names(X)
        if names is not None and known is not None and names.tolist() != known.tolist():
            raise ValueError(
                f"The columns of X must be those of the fit, in that order: {known.tolist()}; got "
                f"{names.tolist()}."
            )

    def _read_labelled(self, X: Any, y: Any, weight: Any = None, groups: Any = None) -> Rows:
        """Return rows of X, of a table with the columns of the fit, with their labels."""
        self._check_feature_names(X)
        rows = self._task.read(X, y, check_sample_weight(weight, _num_samples(X)))
        if groups is None:
            return rows
        return replace(rows, groups=check_rows(groups, "groups", "group names"))

    def _decision_scores(self, rows: Sequence[Any]) -> list[Any]:
        """Return what the decision is made on, for each checked row."""
        return self._task.scores(rows, self._reader, self._logits)

    def _out_of_fold(
        self,
        X: Any,
        y: Any,
        weight: Any = None,
        groups: Any = None,
        **how: Any,
    ) -> list[Any]:
        """Return what the decision is made on, for each row, by a fit that has not seen it."""
        if self._n_unlabeled_rows:
            raise ValueError(
                f"This {type(self).__name__} has learned from {self._n_unlabeled_rows:,} rows "
                f"without labels, and fits of folds would not have them. Tune the decision on rows "
                f"that are held out, or in the fit by 'cv'."
            )
        self._check_feature_names(X)
        task = self._task
        X_read, y_read, kept = task.read_training(X, y)
        weight = check_sample_weight(weight, len(X_read))
        if kept is not None:  # The others are scored, but nothing is learned from them.
            is_kept = np.isin(np.arange(len(X_read)), kept)
            weight = is_kept.astype(np.float32) if weight is None else weight * is_kept
        if groups is not None:
            groups = check_rows(groups, "groups", "group names")
        rows = Rows(X_read, y_read, weight, groups, np.arange(len(X_read)))
        return out_of_fold_scores(task, settings_of(self), rows, **how)

    def _with_task(self, task: Task) -> Self:
        """Return a copy, which shares the network, with another decision."""
        other = copy.copy(self)
        other._set_task(task)
        return other

    @property
    def _reader(self) -> Reader:
        """How texts are read."""
        return Reader(self.tokenizer_, self.max_length_)

    @property
    def _logits(self) -> Logits:
        """The network as the task sees it, computed as ``runtime`` says."""
        settings = settings_of(self)
        return logits_of(self._task, self.net_, self._reader, settings, self._used_runtime())

    def _used_runtime(self) -> str:
        """Return what computes predictions; after an interrupted fit it is torch."""
        check_option(type(self).__name__, "runtime", self.runtime, RUNTIMES)
        return "torch" if self.interrupted_ else self.runtime

    def _network_bytes(self) -> int:
        runtime = self._used_runtime()
        if runtime != "torch":
            return onnx_network(self.net_.module_, runtime, self.max_length_).n_bytes
        return sum(weight.nbytes for weight in self.net_.module_.parameters())

    def _check_is_fitted(self) -> None:
        check_is_fitted(self, "net_")
        if self.interrupted_:
            warnings.warn(
                f"The fit of this {type(self).__name__} did not come to its end: it stopped in "
                f"epoch {len(self.history_)} of {self.max_epochs_} (interrupted_ is True).",
                stacklevel=3,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.non_deterministic = self.random_state is None
        return tags


def _read_unlabeled(task: Task, unlabeled: Any, n_labelled: int) -> Rows:
    """Return checked rows without labels, numbered after those with labels."""
    if not task.can_label:
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


def check_partition(splits: Sequence[Any], n_rows: int, owner: str) -> None:
    """Raise a ValueError unless each row is in one test part."""
    counts = np.bincount([row for _, test in splits for row in test], minlength=n_rows)
    for row in np.flatnonzero(counts != 1)[:1]:
        raise ValueError(
            f"{owner} only works for partitions: every row in exactly one test part of cv; row "
            f"{row} is in {counts[row]}."
        )
