"""What the classifiers of texts and of pairs share."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from torch import Tensor

from .._inputs import check_sample_weight, list_rows, list_some
from ..io._network import label_config
from ..nn._modules import SequenceModule
from ..nn._predicted import predicted_classes, predicted_labels
from ..text._encoding import EncodedDataset, encode_rows
from ..text._truncation import TRUNCATIONS
from ._base import TextEstimator
from ._labels import check_known_columns, check_labels
from ._thresholds import tune_thresholds

Metric = Callable[..., float]


class TextClassifier(ClassifierMixin, TextEstimator):
    """Base of the classifiers: a row of one or two texts gets a label, or several of them.

    A subclass says how X is read, and which metric ``score`` is.
    """

    _module_class = SequenceModule
    _truncations: tuple[str, ...] = TRUNCATIONS
    _row_name = "text"

    classes_: np.ndarray
    threshold_: Any

    def __init__(
        self,
        model: Any = "bert-base-cased",
        *,
        loss: Any = "dsc",
        alpha: float | None = None,
        beta: float | None = None,
        gamma: float | None = None,
        memory: float | None = None,
        ce_weight: float | None = None,
        class_weight: Any = None,
        K: float | None = None,
        max_epochs: int = 3,
        batch_size: int = 16,
        batch_tokens: int | None = None,
        lr: float = 5e-5,
        head_lr: float | None = None,
        weight_decay: float = 0.01,
        warmup: float = 0.1,
        schedule: str = "linear",
        clip_norm: float | None = 1.0,
        accumulate: int = 1,
        max_length: int | None = None,
        stride: int | None = None,
        n_frozen_layers: int | None = None,
        validation_fraction: float | None = None,
        patience: int | None = None,
        precision: str = "auto",
        device: str = "auto",
        random_state: Any = None,
        checkpoint_dir: Any = None,
        verbose: int = 1,
        callbacks: Any = None,
        pos_label: Any = None,
        truncation: str = "longest_first",
    ) -> None:
        self.model = model
        self.loss = loss
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.memory = memory
        self.ce_weight = ce_weight
        self.class_weight = class_weight
        self.K = K
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.batch_tokens = batch_tokens
        self.lr = lr
        self.head_lr = head_lr
        self.weight_decay = weight_decay
        self.warmup = warmup
        self.schedule = schedule
        self.clip_norm = clip_norm
        self.accumulate = accumulate
        self.max_length = max_length
        self.stride = stride
        self.n_frozen_layers = n_frozen_layers
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.precision = precision
        self.device = device
        self.random_state = random_state
        self.checkpoint_dir = checkpoint_dir
        self.verbose = verbose
        self.callbacks = callbacks
        self.pos_label = pos_label
        self.truncation = truncation

    # -- what a subclass brings -------------------------------------------------------------------

    def _check_rows(self, X: Any) -> list[tuple[str, ...]]:
        """Return the rows of X as tuples of one or two texts."""
        raise NotImplementedError

    def _check_y(self, y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return labels, (n_rows,), or a 0/1 matrix and the names of its columns."""
        return check_labels(y, n_rows), None

    def _metric(
        self, y_true: np.ndarray, y_pred: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> float:
        """Return what ``score`` is."""
        raise NotImplementedError

    # -- fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "TextClassifier":
        """Fine-tune the model.

        Parameters
        ----------
        X : rows of text
            As the class says.
        y : list, Series or array of shape (n_rows,)
            Labels: str, int or bool. (Or what else the class says.)
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row; 2 counts as repetition, 0 as absence.

        Returns
        -------
        TextClassifier
            self

        Raises
        ------
        ValueError
            If parameters or data are not allowed, or the loss stops being finite; the message says
            what was got, what is allowed, and which row.
        """
        self._check_parameters()
        rows = self._check_rows(X)
        labels, names = self._check_y(y, len(rows))
        weight = check_sample_weight(sample_weight, len(rows))
        # Weight 0 is absence, from the classes and the validation part too.
        used = np.arange(len(rows)) if weight is None else np.flatnonzero(weight)
        self._check_learnable(labels[used], names)
        seed = self._draw_seed()
        rng = np.random.default_rng(seed)
        self._load_tokenizer()
        target = self._set_classes(labels, used, names)
        self._keep_names(X)

        whole = self._encode(rows, target, weight).take(used)
        train, valid = self._split(len(used), rng, None if self._is_multilabel else target[used])
        dataset = whole.take(train)
        valid_set = whole.take(valid)
        y_valid = labels[used][valid]

        def validate() -> float:
            predicted = self._decide(self._predict_logits(valid_set))
            return self._metric(y_valid, predicted, valid_set.weight)

        n_classes = len(self.classes_)
        is_binary = n_classes == 2 and not self._is_multilabel
        background = 1 - self._positive() if is_binary else None
        labels_ = self.classes_.tolist()
        counts, n_steps = self._count(dataset), self._count_steps(dataset)
        loss = self._make_loss(labels_, counts, background, binary=is_binary, n_steps=n_steps)
        held_out = (valid_set.fingerprint, y_valid)
        self._train(dataset, loss, n_classes, seed, rng, validate if len(valid) else None, held_out)
        self.interrupted_ = False
        return self

    def _predicted(self, logits: Tensor, target: Tensor) -> Tensor:
        predicted = predicted_labels if self._is_multilabel else predicted_classes
        return predicted(logits, target)

    def _missed(self, predicted: np.ndarray, target: np.ndarray) -> str | None:
        # A label of no training row is not expected.
        is_searched = target.any(0) if self._is_multilabel else True
        never = self.classes_[~predicted & is_searched].tolist()
        return f"never predicted {list_some(never)}" if never else None

    def _check_learnable(self, labels: np.ndarray, names: np.ndarray | None) -> None:
        owner = type(self).__name__
        if names is not None:
            if self.pos_label is not None:
                raise ValueError(
                    f"The 'pos_label' parameter of {owner} must be None with a multi-label y, "
                    f"where every label is looked for. Got {self.pos_label!r} instead."
                )
            if not labels.any():
                raise ValueError(
                    f"{owner} needs a row with a label; got {len(labels)} rows and no 1 in y."
                )
            return
        if not len(labels):
            raise ValueError(f"Found no row to train on; X has {len(labels)} rows.")
        classes = np.unique(labels).tolist()
        if len(classes) < 2:
            raise ValueError(
                f"{owner} needs at least two classes in y; got one class, {classes[0]!r}."
            )
        if self.pos_label is None:
            return
        if len(classes) > 2:
            raise ValueError(
                f"The 'pos_label' parameter of {owner} must be None with more than two classes; y "
                f"has {list_some(classes)}. Got {self.pos_label!r} instead."
            )
        if not any(_same_label(label, self.pos_label) for label in classes):
            raise ValueError(
                f"The 'pos_label' parameter of {owner} must be a label of y: {list_some(classes)}. "
                f"Got {self.pos_label!r} instead."
            )

    def _set_classes(
        self, labels: np.ndarray, used: np.ndarray, names: np.ndarray | None
    ) -> np.ndarray:
        """Set ``classes_`` and the thresholds; return the target of every row."""
        self._is_multilabel = names is not None
        if names is not None:
            self.classes_ = names
            self.threshold_ = np.zeros(len(names))
            return labels
        self.classes_ = np.unique(labels[used])
        self.threshold_ = 0.0 if len(self.classes_) == 2 else np.zeros(len(self.classes_))
        # Labels of rows without weight may be no class; their targets are not used.
        target = np.searchsorted(self.classes_, labels)
        return np.minimum(target, len(self.classes_) - 1).astype(np.int64)

    def _keep_names(self, X: Any) -> None:
        """Set ``feature_names_in_`` for a table whose columns have names."""
        self.__dict__.pop("feature_names_in_", None)
        names = _column_names(X)
        if names is not None:
            self.feature_names_in_ = names

    def _encode(
        self,
        rows: Sequence[tuple[str, ...]],
        target: np.ndarray | None = None,
        weight: np.ndarray | None = None,
    ) -> EncodedDataset:
        dataset, cut = self._encode_once(
            (self.truncation, rows),
            lambda: encode_rows(
                rows, self.tokenizer_, self._frame(), self.max_length_, self.truncation
            ),
        )
        if len(cut):
            warnings.warn(
                f"{len(cut)} of {len(rows)} {self._row_name}s are longer than max_length="
                f"{self.max_length_} pieces and were cut (truncation={self.truncation!r}): "
                f"{list_rows(cut.tolist())}.",
                UserWarning,
                stacklevel=3,
            )
        return replace(dataset, target=target, weight=weight)

    def _count(self, dataset: EncodedDataset) -> np.ndarray:
        """Return how many training rows each class has; a weight counts as repetition."""
        target, n_classes = dataset.target, len(self.classes_)
        assert target is not None
        weight = np.ones(len(target)) if dataset.weight is None else dataset.weight
        weight = weight.astype(np.float64)
        if not self._is_multilabel:
            return np.bincount(target, weight, minlength=n_classes)
        return np.stack([weight @ (1 - target), weight @ target], axis=1)

    def _positive(self) -> int:
        """Return the index of the positive one of two classes."""
        if self.pos_label is None:
            return 1
        return self.classes_.tolist().index(self.pos_label)

    def _model_config(self) -> dict[str, Any]:
        kind = "multi" if self._is_multilabel else "single"
        return {
            **label_config(self.classes_.tolist()),
            "problem_type": f"{kind}_label_classification",
        }

    def _more_parameters(self) -> None:
        owner = type(self).__name__
        if self.truncation not in self._truncations:
            allowed = ", ".join(map(repr, self._truncations))
            raise ValueError(
                f"The 'truncation' parameter of {owner} must be one of {{{allowed}}}. Got "
                f"{self.truncation!r} instead."
            )
        if self.stride is not None:
            raise ValueError(
                f"The 'stride' parameter of {owner} must be None: texts that are too long are "
                f"truncated, not cut into windows. Got {self.stride!r} instead."
            )

    # -- prediction -------------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """Predict the label of each row.

        Parameters
        ----------
        X : rows of text
            As the class says.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels of ``classes_``. Multi-label: a 0/1 matrix of shape (n_rows, n_labels).
        """
        return self._decide(self._logits(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class probabilities of each row.

        They are the softmax of the logits whatever the loss (multi-label: the sigmoid of each); set
        losses give scores, not calibrated probabilities. ``threshold_`` does not touch them.

        Parameters
        ----------
        X : rows of text
            As the class says.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns as ``classes_``; rows sum to 1, unless multi-label.
        """
        logits = self._logits(X)
        return expit(logits) if self._is_multilabel else softmax(logits, axis=1)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores that the decision is made on.

        Parameters
        ----------
        X : rows of text
            As the class says.

        Returns
        -------
        ndarray of shape (n_rows,) if there are two classes, else (n_rows, n_classes)
            The log-odds of ``classes_[1]``, or the logits of all classes or labels.
        """
        return self._decision(self._logits(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score predictions by the metric that the class names.

        Parameters
        ----------
        X : rows of text
            As the class says.
        y : labels of the rows
            As in ``fit``.
        sample_weight : array-like of shape (n_rows,), optional

        Returns
        -------
        float
            In [0, 1].
        """
        rows = self._known_rows(X)
        labels = self._known_labels(y, len(rows))
        weight = check_sample_weight(sample_weight, len(rows))
        return self._metric(labels, self._decide(self._row_logits(rows)), weight)

    def _known_rows(self, X: Any) -> list[tuple[str, ...]]:
        """Return the rows of X, of a table with the columns of the fit."""
        self._check_is_fitted()
        names = _column_names(X)
        known = getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and names.tolist() != known.tolist():
            raise ValueError(
                f"The columns of X must be those of the fit, in that order: {known.tolist()}; got "
                f"{names.tolist()}."
            )
        return self._check_rows(X)

    def _known_labels(self, y: Any, n_rows: int) -> np.ndarray:
        """Return labels to compare predictions with; a table must have the columns of the fit."""
        labels, names = self._check_y(y, n_rows)
        if n_rows and (names is not None) != self._is_multilabel:
            wanted, got = "a label per row", "a 0/1 matrix"
            if self._is_multilabel:
                wanted, got = f"a 0/1 matrix of {len(self.classes_)} columns", wanted
            raise ValueError(f"y must be {wanted}, as in the fit; got {got}.")
        if names is not None:
            check_known_columns(y, len(names), self.classes_.tolist())
        return labels

    def _logits(self, X: Any) -> np.ndarray:
        return self._row_logits(self._known_rows(X))

    def _row_logits(self, rows: Sequence[tuple[str, ...]]) -> np.ndarray:
        return self._predict_logits(self._encode(rows)).astype(np.float64)

    def _decision(self, logits: np.ndarray) -> np.ndarray:
        if len(self.classes_) == 2 and not self._is_multilabel:
            return logits[:, 1] - logits[:, 0]
        return logits

    def _decide(self, logits: np.ndarray) -> np.ndarray:
        return self._labels_of(self._decision(logits), self.threshold_)

    def _labels_of(self, decision: np.ndarray, threshold: Any) -> np.ndarray:
        if self._is_multilabel:
            return (decision > threshold).astype(np.int64)
        if decision.ndim == 1:
            return self.classes_[(decision > threshold).astype(np.int64)]
        return self.classes_[(decision - threshold).argmax(axis=1)]

    def _tune_decision(self, X: Any, y: Any, metric: Metric | None, sample_weight: Any) -> None:
        """Set ``threshold_`` to what is best on held-out rows."""
        rows = self._known_rows(X)
        labels = self._known_labels(y, len(rows))
        weight = check_sample_weight(sample_weight, len(rows))
        decision = self._decision(self._row_logits(rows))

        def score(threshold: Any) -> float:
            predicted = self._labels_of(decision, threshold)
            if metric is None:
                return self._metric(labels, predicted, weight)
            return metric(
                labels, predicted, **({} if weight is None else {"sample_weight": weight})
            )

        self.threshold_ = tune_thresholds(decision, score, is_multilabel=self._is_multilabel)


def _column_names(X: Any) -> np.ndarray | None:
    columns = list(getattr(X, "columns", []))
    if not columns or not all(isinstance(name, str) for name in columns):
        return None
    return np.array(columns, dtype=object)


def _same_label(label: Any, other: Any) -> bool:
    return isinstance(label, str) == isinstance(other, str) and bool(label == other)
