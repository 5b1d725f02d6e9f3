"""What all estimators share: the template of ``fit``, a network, predictions."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from .._inputs import check_sample_weight
from ..nn import check_callbacks, resolve_device
from ..text import WordTokenizer
from ._lesson import Lesson, choose_ratio, draw_of, longest_window, prior_shift
from ._loss import make_training_loss, warn_of_collapse
from ._network import NetworkEstimator
from ._reuse import active_reuse
from ._rows import Rows, read_fit_rows
from ._self_training import read_unlabeled, with_taught
from ._shared_parameters import CONTAINERS, FITTED_ATTRIBUTES


class TextEstimator(NetworkEstimator):
    """Base of the estimators: ``fit`` is a template, of which a subclass fills in the steps.

    Rows are read (:meth:`_read_training`), what a fit knows of them is set (:meth:`_learn`), they
    are encoded and counted (:meth:`_prepare`); then the loss is made, the network trained, and the
    decision tuned (:meth:`_decide_on`).
    """

    _texts: ClassVar[dict[str, str]] = {"attributes": FITTED_ATTRIBUTES, "containers": CONTAINERS}

    def _read_training(self, X: Any, y: Any) -> tuple[Sequence[Any], Any, np.ndarray | None]:
        """Return checked rows and labels, and which of them can be learned from (None: all)."""
        return (*self._read_labelled(X, y), None)

    def _read_labelled(self, X: Any, y: Any) -> tuple[Sequence[Any], Any]:
        """Return checked rows and labels to compare predictions with."""
        rows = self._task.read_X(X)
        return rows, self._task.read_y(y, rows)

    def _check_learnable(self, rows: Rows) -> None:
        """Raise a ValueError if nothing can be learned from the rows."""
        raise NotImplementedError

    def _learn(self, rows: Rows) -> None:
        """Set what a fit knows of its rows: classes, scheme, decisions before they are tuned."""
        raise NotImplementedError

    def _strata(self, rows: Rows) -> np.ndarray | None:
        """Return the class of each row, if both parts of a split should have all of them."""
        return None

    def _prepare(self, rows: Rows, rng: np.random.Generator) -> Lesson:
        """Return the encoded training rows and the counts of their classes."""
        raise NotImplementedError

    def _as_given(self, rows: Rows) -> tuple[Any, Any]:
        """Return checked rows as X and y that ``fit`` takes."""
        return rows.X, rows.y

    def _decide_on(self, rows: Rows, valid: Rows, held_out: tuple[Any, Any] | None) -> None:
        """Tune the decision, if that was asked for; ``held_out`` is (X, y), if ``fit`` got it."""

    def _tunes_on_validation(self) -> str | None:
        """Return the parameter that needs rows to validate on, as it is set."""
        return None if self.patience is None else f"patience={self.patience!r}"

    def _feature_names(self, X: Any) -> np.ndarray | None:
        """Return the names of the columns of X, if it is a table with names."""
        return None

    def _groups(self, X: Any) -> Sequence[Any] | None:
        """Return what rows of X have in common that have to be in the same part of a split."""
        return None if self._task.find_groups is None else self._task.find_groups(X)

    def _choose_loss(self, rows: Rows, lesson: Lesson) -> tuple[str, str]:
        """Return the name of what ``loss="auto"`` is for training rows, and why."""
        return "ce", "cross-entropy, as no other loss was better on such rows"

    def _shift(self, lesson: Lesson) -> np.ndarray:
        """Return by how much the draw of a lesson raises the logits of its items."""
        target = lesson.dataset.target
        assert target is not None
        return prior_shift(target, self._n_outputs(), lesson.item_weight, lesson.item_share)

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
        unlabeled : rows as those of X, optional
            Rows without labels, some thousands of them. Three networks learn from X and y and label
            these rows; then the estimator learns from both, each of these rows with the probability
            of its least sure label as its weight. Takes about five times as long. For
            ``DiceTokenTagger`` and the classifiers.

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
        self._check_parameters()
        self._check_validation(validation)
        resolve_device(self.device)  # An error if it is not there.
        names = self._feature_names(X)
        X, y, weight, groups, validation = read_fit_rows(X, y, sample_weight, groups, validation)
        X_read, y_read, kept = self._read_training(X, y)
        weight = check_sample_weight(weight, len(X_read))
        others = None if unlabeled is None else read_unlabeled(self, unlabeled, len(X_read))
        groups = self._groups(X_read) if groups is None else groups
        rows = Rows(X_read, y_read, weight, groups, np.arange(len(X_read))).used(kept)
        valid = None if validation is None else Rows.of(*self._read_labelled(*validation))
        if not len(rows):
            raise ValueError(f"Found no {self._task.row} to train on; X has {len(X_read)} rows.")
        self._check_learnable(rows)

        # A fit that fails from here on must not leave new classes on the old network.
        self.__dict__.pop("net_", None)
        self.interrupted_ = True
        seed = self._draw_seed()
        rng = np.random.default_rng(seed)
        self.tokenizer_ = self._load_tokenizer()
        self.max_length_ = longest_window(self, self.tokenizer_, self._frame())
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names
        if validation is not None:
            self._check_feature_names(validation[0])
        if unlabeled is not None:
            self._check_feature_names(unlabeled)
        self._learn(rows)

        training, held_out = rows.split(self.validation_fraction, rng, self._strata(rows))
        valid = held_out if valid is None else valid
        self._n_training_rows = len(training)
        self._n_unlabeled_rows = 0 if others is None else len(others)
        if others is not None:
            training = with_taught(self, training, others, valid, seed)
        lesson = self._prepare(training, rng)
        if not lesson.dataset.n_items:
            raise ValueError("Found no word to train on: the training sentences have no words.")
        self.negative_ratio_ = choose_ratio(self.negative_ratio, lesson)
        if self.negative_ratio_ is not None:
            lesson = replace(lesson, draw=draw_of(self.negative_ratio_, lesson))
        name: Any = self.loss
        self.loss_reason_ = None
        if name == "auto":
            name, self.loss_reason_ = self._choose_loss(training, lesson)
        self.loss_ = make_training_loss(self, name, lesson, self._count_steps(lesson))
        if lesson.draw is not None:
            # A ratio forgives the weights of what was drawn; a mean of single losses does not.
            is_mean = self.loss_.separable
            lesson = replace(lesson, shift=self._shift(lesson)) if is_mean else lesson.weighted()
        self._fit_network(lesson, seed, rng, valid)
        self._decide_on(rows, valid, validation)
        if missed := self._missed_by_predict(lesson):
            warn_of_collapse(self, missed)
        self.interrupted_ = False
        return self

    def _check_validation(self, validation: Any) -> None:
        """Raise a ValueError if rows to validate on are missing, or are named twice."""
        if validation is not None and self.validation_fraction is not None:
            raise ValueError(
                f"validation takes the place of validation_fraction, which must be None with it. "
                f"Got validation_fraction={self.validation_fraction!r}."
            )
        validates = validation is not None or self.validation_fraction is not None
        needs = self._tunes_on_validation()
        if needs and not validates:
            raise ValueError(
                f"{needs} needs rows to validate on: validation_fraction (a float in (0, 1)), or "
                f"validation=(X, y) in fit. Got validation_fraction=None."
            )
        check_callbacks(self.callbacks, validates)

    def _check_feature_names(self, X: Any) -> None:
        """Raise a ValueError unless a table has the columns of the fit, in that order."""
        names, known = self._feature_names(X), getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and names.tolist() != known.tolist():
            raise ValueError(
                f"The columns of X must be those of the fit, in that order: {known.tolist()}; got "
                f"{names.tolist()}."
            )

    def _draw_seed(self) -> int:
        """Return the seed of a fit: in all processes of a job, that of the first."""
        state = self.random_state
        if isinstance(state, np.random.RandomState):
            drawn = int(state.randint(2**31 - 1))
        elif state is None or isinstance(state, np.random.Generator):
            drawn = int(np.random.default_rng(state).integers(2**31))
        else:
            drawn = int(state)
        seed = torch.tensor(drawn)
        self._ranks().copy_first([seed])
        return int(seed)

    def _load_tokenizer(self) -> WordTokenizer:
        reuse, model = active_reuse(), os.fspath(self.model)
        return WordTokenizer(model) if reuse is None else reuse.tokenizer(model)

    def _check_is_fitted(self) -> None:
        check_is_fitted(self, "net_")
        if getattr(self, "interrupted_", False):
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
