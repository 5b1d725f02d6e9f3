"""What the classifiers of texts and of pairs share."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import expit, logit, softmax

from .._inputs import check_sample_weight, column_names, list_rows, list_some
from .._parameters import Parameter, not_allowed, number, parametrised
from .._typing import Indicators, Pairs, Texts, Weights
from .._typing import Labels as LabelsLike
from ..exceptions import TruncationWarning
from ..io import label_config
from ..metrics import RowCounts, count_rows
from ..nn import SequenceModule
from ..text import EncodedDataset, encode_rows
from ._base import TextEstimator
from ._goal import F1, Goal, tune_thresholds
from ._lesson import Lesson, Rule, positives_first
from ._loss import check_loss_classes
from ._out_of_fold import out_of_fold_scores
from ._reuse import active_reuse
from ._rows import Rows
from ._shared_parameters import FITTED_ATTRIBUTES
from ._sklearn import ClassifierMixin
from ._targets import check_known_columns

TextRows = Texts | Pairs

CLASSIFIER_STATE = {
    "_is_multilabel": bool,
    "classes_": np.ndarray,
    "threshold_": (int, float, np.ndarray),
}
_POS_LABEL = """
The positive one of two classes, by default the larger label. Set losses leave out the other class,
and where ``score`` is F1, it is the F1 of this class. None with more classes or several labels.
"""
_THRESHOLD = """
The probability above which the positive one of two classes, or a label, is predicted. "auto" is
0.5; where the positive class is rare and cross-entropy has no class weights, its share of the
training rows, which serves F1 and not accuracy. "cv" tunes it, or one for each class or label, for
the score on the training rows: five more models are fitted, and each predicts the fifth of the rows
that it was not trained on.
"""
_ATTRIBUTES = """\
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted. Multi-label: the names of the columns of y, or their numbers.
    threshold_ : float or ndarray of shape (n_classes,)
        Threshold of the decision function, in log-odds: 0 is a probability of .5. ``threshold``
        sets it, and :func:`skdice.model_selection.tune_decision`. With more than two classes it
        is subtracted from the logits.
    feature_names_in_ : ndarray of shape (n_columns,), object
        Only if X was a DataFrame.
"""


def count_labelled(estimator: Any, measure: str, y_true: Any, y_pred: Any) -> RowCounts:
    """Count what each row adds to the metrics; of two classes the positive one counts."""
    labels = estimator._known_labels(y_true, y_pred)
    is_binary = len(estimator.classes_) == 2
    pos_label = estimator.classes_[estimator._positive()] if is_binary else None
    return count_rows(measure, labels, np.asarray(y_pred), pos_label)


@dataclass(frozen=True)
class Labels:
    """Checked labels of rows."""

    values: np.ndarray  # (n_rows,), or (n_rows, n_labels) of 0 and 1
    names: np.ndarray | None  # of the labels of a 0/1 matrix

    def take(self, index: np.ndarray) -> "Labels":
        return Labels(self.values[index], self.names)

    def join(self, other: "Labels") -> "Labels":
        return Labels(np.concatenate([self.values, other.values]), self.names)


@parametrised
class TextClassifier(ClassifierMixin, TextEstimator):
    """Base of the classifiers: a row of one or two texts gets a label, or several of them.

    A subclass says how X and y are read, how long texts are cut (``truncation``), and which metric
    ``score`` is.
    """

    _module_class = SequenceModule
    _texts: ClassVar[dict[str, str]] = {
        **TextEstimator._texts,
        "attributes": _ATTRIBUTES + FITTED_ATTRIBUTES,
    }

    pos_label: Annotated[Any, Parameter("label", _POS_LABEL)] = None
    truncation: Annotated[str, Parameter("str", "What is done with longer texts.")] = (
        "longest_first"
    )

    threshold: Annotated[
        float | str,
        number(_THRESHOLD, low=0, high=1, closed="neither", words=("auto", "cv"), in_folds="auto"),
    ] = "auto"

    # -- what a subclass brings -------------------------------------------------------------------

    def _metric(
        self, y_true: np.ndarray, y_pred: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> float:
        """Return what ``score`` is."""
        raise NotImplementedError

    # -- fitting ----------------------------------------------------------------------------------

    def _read_labelled(self, X: Any, y: Any) -> tuple[Sequence[Any], Any]:
        rows = self._task.read_X(X)
        return rows, Labels(*self._task.read_y(y, rows))

    def _check_learnable(self, rows: Rows) -> None:
        owner = type(self).__name__
        labels, names = rows.y.values, rows.y.names
        if names is not None:
            if self.pos_label is not None:
                allowed = "None with a multi-label y, where every label is looked for"
                raise not_allowed(owner, "pos_label", allowed, self.pos_label)
            if not labels.any():
                raise ValueError(
                    f"{owner} needs a row with a label; got {len(labels)} rows and no 1 in y."
                )
            check_loss_classes(self.loss, len(names), is_multilabel=True)
            return
        classes = np.unique(labels).tolist()
        if len(classes) < 2:
            raise ValueError(
                f"{owner} needs at least two classes in y; got one class, {classes[0]!r}."
            )
        check_loss_classes(self.loss, len(classes))
        if len(classes) > 2 and not isinstance(self.threshold, str):
            allowed = f"'auto' or 'cv' with more than two classes; y has {list_some(classes)}"
            raise not_allowed(owner, "threshold", allowed, self.threshold)
        if self.pos_label is None:
            return
        if len(classes) > 2:
            allowed = f"None with more than two classes; y has {list_some(classes)}"
            raise not_allowed(owner, "pos_label", allowed, self.pos_label)
        if self.pos_label not in classes:
            allowed = f"a label of y: {list_some(classes)}"
            raise not_allowed(owner, "pos_label", allowed, self.pos_label)

    def _learn(self, rows: Rows) -> None:
        self._is_multilabel = rows.y.names is not None
        self.classes_ = rows.y.names if self._is_multilabel else np.unique(rows.y.values)
        threshold = self.threshold
        if isinstance(threshold, str):
            threshold = self._open_threshold(rows) if threshold == "auto" else 0.5
        log_odds = float(logit(threshold))
        self.threshold_: Any = np.full(len(self.classes_), log_odds)
        if self._is_binary:
            self.threshold_ = log_odds if self._positive() else -log_odds

    def _open_threshold(self, rows: Rows) -> float:
        """Return what ``threshold="auto"`` is (benchmarks/RESULTS.md)."""
        is_plain = self.loss in ("auto", "ce") and self.class_weight is None and self.K is None
        if not (self._is_binary and is_plain):
            return 0.5
        is_positive = rows.y.values == self.classes_[self._positive()]
        share = float(np.average(is_positive, weights=rows.weight))
        return share if 0 < share < 1 / (1 + Rule().rare) else 0.5

    def _as_given(self, rows: Rows) -> tuple[Any, Any]:
        X = rows.X if self._task.reads_two_texts else [text for (text,) in rows.X]
        names, y = rows.y.names, rows.y.values
        return X, y if names is None else pd.DataFrame(y, columns=names)

    def _label(self, rows: Sequence[Any]) -> tuple[Labels, np.ndarray]:
        logits = self._row_logits(rows)
        if self._is_multilabel:
            sure = expit(np.abs(logits)).min(axis=1)
            return Labels((logits > 0).astype(np.int64), self.classes_), sure
        best = logits.argmax(axis=1)
        return Labels(self.classes_[best], None), softmax(logits, axis=1).max(axis=1)

    def _decide_on(self, rows: Rows, valid: Rows, held_out: tuple[Any, Any] | None) -> None:
        if self.threshold != "cv":
            return
        X, y = self._as_given(rows)
        given = (X, y, rows.weight, rows.groups, held_out)
        unseen = partial(out_of_fold_scores, self, *given)
        self._tune_decision(rows, scores=unseen)

    def _strata(self, rows: Rows) -> np.ndarray | None:
        return None if self._is_multilabel else np.searchsorted(self.classes_, rows.y.values)

    def _prepare(self, rows: Rows, rng: np.random.Generator) -> Lesson:
        labels = rows.y.values
        target = labels if self._is_multilabel else np.searchsorted(self.classes_, labels)
        dataset = self._encode(rows.X, target.astype(np.int64), rows.weight, rows.number)
        background = 1 - self._positive() if self._is_binary else None
        counts = self._count(dataset)
        if self._is_multilabel:
            group = positives_first(dataset, target.any(1))
        else:
            group = np.argsort(np.argsort(np.bincount(target), kind="stable"))[target]
        classes = self.classes_.tolist()
        return Lesson(dataset, classes, counts, background, self._is_binary, group=group)

    def _validator(self, rows: Rows) -> Callable[[], float]:
        dataset, labels = self._encode(rows.X, number=rows.number), self._known(rows.y)

        def validate() -> float:
            predicted = self._decide(self._predict_logits(dataset))
            return self._metric(labels, predicted, rows.weight)

        return validate

    def _predicted(self, logits: np.ndarray, dataset: EncodedDataset) -> np.ndarray:
        logits = logits - ((0.0, self.threshold_) if self._is_binary else self.threshold_)
        return logits.max(0) > 0 if self._is_multilabel else super()._predicted(logits, dataset)

    def _missed(self, predicted: np.ndarray, target: np.ndarray) -> str | None:
        # A label of no training row is not expected.
        is_searched = target.any(0) if self._is_multilabel else True
        never = self.classes_[~predicted & is_searched].tolist()
        return f"never predicted {list_some(never)}" if never else None

    def _feature_names(self, X: Any) -> np.ndarray | None:
        columns = column_names(X)
        if not columns or not all(isinstance(name, str) for name in columns):
            return None
        return np.array(columns, dtype=object)

    def _encode(
        self,
        rows: Sequence[tuple[str, ...]],
        target: np.ndarray | None = None,
        weight: np.ndarray | None = None,
        number: np.ndarray | None = None,
    ) -> EncodedDataset:
        dataset, cut = self._encode_once(
            (self.truncation, rows),
            lambda: encode_rows(
                rows, self.tokenizer_, self._frame(), self.max_length_, self.truncation
            ),
        )
        reuse = active_reuse()
        if len(cut) and (reuse is None or reuse.is_first(TruncationWarning)):
            n_rows, order = len(rows), ""
            if number is not None:
                n_rows, cut = len(np.unique(number)), np.unique(number[cut])
                # Rows with labels are there twice beside those without.
                order = " (those of unlabeled follow those of X)" if n_rows < len(rows) else ""
            warnings.warn(
                f"{len(cut)} of {n_rows} {self._task.row}s are longer than max_length="
                f"{self.max_length_} pieces and were cut (truncation={self.truncation!r}): "
                f"{list_rows(cut.tolist())}{order}."
                f"{'' if reuse is None else ' Other fits that share their work do not say so.'}",
                TruncationWarning,
                stacklevel=3,
            )
        return replace(dataset, target=target, weight=weight)

    def _count(self, dataset: EncodedDataset) -> np.ndarray:
        """Return how many training rows each class has; a weight counts as repetition."""
        target, weight, n_classes = dataset.target, dataset.text_weight, len(self.classes_)
        assert target is not None
        if not self._is_multilabel:
            return np.bincount(target, weight, minlength=n_classes)
        return np.stack([weight @ (1 - target), weight @ target], axis=1)

    @property
    def _is_binary(self) -> bool:
        return len(self.classes_) == 2 and not self._is_multilabel

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

    # -- prediction -------------------------------------------------------------------------------

    def predict(self, X: TextRows) -> np.ndarray:
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

    def predict_proba(self, X: TextRows) -> np.ndarray:
        """Return the class probabilities of each row.

        They are the softmax of the logits whatever the loss (multi-label: the sigmoid of each); set
        losses give scores, not calibrated probabilities. ``threshold_`` does not change them.

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

    def decision_function(self, X: TextRows) -> np.ndarray:
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

    def score(
        self, X: TextRows, y: LabelsLike | Indicators, sample_weight: Weights = None
    ) -> float:
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
        labels = self._known_labels(y, rows)
        weight = check_sample_weight(sample_weight, len(rows))
        return self._metric(labels, self._decide(self._row_logits(rows)), weight)

    def _known_rows(self, X: Any) -> list[tuple[str, ...]]:
        """Return the rows of X, of a table with the columns of the fit."""
        self._check_is_fitted()
        self._check_feature_names(X)
        return list(self._task.read_X(X))

    def _known_labels(self, y: Any, rows: Sequence[Any]) -> np.ndarray:
        """Return labels to compare predictions with; a table must have the columns of the fit."""
        return self._known(Labels(*self._task.read_y(y, rows)))

    def _known(self, labels: Labels) -> np.ndarray:
        names = labels.names
        if len(labels.values) and (names is not None) != self._is_multilabel:
            wanted, got = "a label per row", "a 0/1 matrix"
            if self._is_multilabel:
                wanted, got = f"a 0/1 matrix of {len(self.classes_)} columns", wanted
            raise ValueError(f"y must be {wanted}, as in the fit; got {got}.")
        if names is not None:
            check_known_columns(names.tolist(), self.classes_.tolist())
        return labels.values

    def _logits(self, X: Any) -> np.ndarray:
        return self._row_logits(self._known_rows(X))

    def _row_logits(self, rows: Sequence[tuple[str, ...]]) -> np.ndarray:
        return self._predict_logits(self._encode(rows)).astype(np.float64)

    def _decision(self, logits: np.ndarray) -> np.ndarray:
        if self._is_binary:
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

    def _decision_scores(self, X: TextRows) -> list[np.ndarray]:
        """Return the logits of each row, of shape (n_classes,)."""
        return list(self._logits(X))

    def _tune_decision(self, rows: Rows, goal: Goal = F1, scores: Any = None) -> None:
        """Set ``threshold_`` to what is best on held-out rows."""
        labels, weight = self._known(rows.y), rows.weight
        logits = self._row_logits(rows.X) if scores is None else np.stack(scores())
        decision = self._decision(logits)

        if goal.has_floor and decision.ndim == 2 and not self._is_multilabel:
            raise ValueError(
                f"min_precision and min_recall need two classes, of which one is looked for, or "
                f"several labels; this classifier has {len(self.classes_)} classes."
            )

        def values(threshold: Any) -> np.ndarray:
            """Return what the goal makes of each label, or of the positive class."""
            is_predicted = self._labels_of(decision, threshold)
            is_actual = labels
            if not self._is_multilabel:
                positive = self.classes_[self._positive()]
                is_predicted, is_actual = is_predicted == positive, is_actual == positive
            cells = np.stack([is_actual & is_predicted, is_predicted, is_actual])
            if weight is not None:
                cells = cells * (weight[:, None] if self._is_multilabel else weight)
            return goal.value(*cells.sum(axis=1))

        def score(threshold: Any) -> float:
            if goal.has_floor:
                return float(values(threshold).mean())
            predicted = self._labels_of(decision, threshold)
            if goal.metric is not None:
                return goal.metric(predicted)
            return self._metric(labels, predicted, weight)

        self.threshold_ = tune_thresholds(decision, score, is_multilabel=self._is_multilabel)
        if goal.has_floor:
            goal.warn_if_missed(float(values(self.threshold_).min()))
