"""What the classifiers of texts and of pairs share."""

from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import expit, softmax

from .._inputs import column_names
from .._parameters import Parameter, number, parametrised
from .._sklearn import ClassifierMixin
from .._typing import Indicators, Labels, Pairs, Texts, Weights
from ..tasks import Classifying
from ._base import FittedAttribute, TextEstimator

TextRows = Texts | Pairs


@parametrised
class TextClassifier(ClassifierMixin, TextEstimator[Classifying]):
    """Base of the classifiers: a row of one or two texts gets a label, or several of them.

    Parameters
    ----------
    pos_label
        The positive one of two classes, by default the larger label. Set losses leave out the other
        class, and where ``score`` is F1, it is the F1 of this class. None with more classes or
        several labels.
    threshold
        The probability above which the positive one of two classes, or a label, is predicted.
        "auto" is 0.5. If the positive class is rare and the loss is cross-entropy without class
        weights, it is the share of positive training rows, if these are at most 100: better for F1,
        worse for accuracy. "cv" tunes it, or one for each class or label, for the score on the
        training rows: five more models are fitted, and each predicts the fifth of the rows that it
        was not trained on.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted. Multi-label: the names of the columns of y, or their numbers.
    threshold_ : float or read-only ndarray of shape (n_classes,)
        In [0, 1]. Two classes: the probability above which the positive one is predicted. Several
        labels: that of each label. More than two classes: the thresholds are above 0 and sum to 1,
        and the class is predicted whose probability is the largest multiple of its threshold.
        ``threshold`` sets it, and :func:`skdice.model_selection.tune_decision`.
    feature_names_in_ : ndarray of shape (n_columns,), object
        Only if X was a DataFrame.
    """

    pos_label: Annotated[Any, Parameter("label")] = None
    truncation: Annotated[str, Parameter("str")] = "longest_first"
    threshold: Annotated[
        float | str, number(low=0, high=1, closed="both", words=("auto", "cv"))
    ] = "auto"

    classes_ = FittedAttribute[np.ndarray]("task.classes")
    threshold_ = FittedAttribute[float | np.ndarray]("task.decision.threshold")

    _task_class: ClassVar[type[Classifying]]

    def _asked(self) -> Classifying:
        threshold = self.threshold
        return self._task_class(
            owner=type(self).__name__,
            tuning="cv" if threshold == "cv" else None,
            truncation=self.truncation,
            pos_label=self.pos_label,
            threshold=None if isinstance(threshold, str) else float(threshold),
        )

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
        return self._predict_scored(X)[0]

    def predict_proba(self, X: TextRows) -> np.ndarray:
        """Return the class probabilities of each row.

        They are the softmax of the logits for any loss (multi-label: the sigmoid of each). Set
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
        return self._predict_scored(X)[1]

    def _predict_scored(self, X: TextRows) -> tuple[np.ndarray, np.ndarray]:
        logits = self._row_logits(X)
        scores = expit(logits) if self.internals.task.is_multilabel else softmax(logits, axis=1)
        return self.internals.task.decide(logits), scores

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
        return self.internals.task.decision.values(self._row_logits(X))

    def score(self, X: TextRows, y: Labels | Indicators, sample_weight: Weights = None) -> float:
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
        inner = self._ready()
        rows = inner.read_labelled(X, y, sample_weight)
        return inner.task.validator(rows, inner.network)()

    def _feature_names(self, X: Any) -> np.ndarray | None:
        columns = column_names(X)
        if not columns or not all(isinstance(name, str) for name in columns):
            return None
        return np.array(columns, dtype=object)

    def _row_logits(self, X: TextRows) -> np.ndarray:
        """Return the logits of X, of a table with the columns of the fit."""
        inner = self._ready()
        return inner.task.row_logits(inner.read_X(X), inner.network)
