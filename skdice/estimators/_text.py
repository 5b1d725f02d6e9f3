"""Text classification, with one label or several."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from sklearn.metrics import accuracy_score, f1_score

from .._inputs import check_texts
from .._parameters import option, parametrised
from ..io import PIPELINE, SOFTMAX, CardTexts
from ._classifier import CLASSIFIER_STATE, TextClassifier, count_labelled
from ._rows import Task
from ._targets import check_indicator, check_labels, is_indicator

_TRUNCATION = "Longer texts lose their end, with a warning that counts them, or are an error."


def _read_texts(X: Any) -> list[tuple[str]]:
    return [(text,) for text in check_texts(X)]


def _read_labels(y: Any, rows: Sequence[Any]) -> tuple[np.ndarray, np.ndarray | None]:
    n_rows = len(rows)
    return check_indicator(y, n_rows) if is_indicator(y) else (check_labels(y, n_rows), None)


@parametrised
class DiceTextClassifier(TextClassifier):
    """Classify texts with a fine-tuned transformer.

    X is a list, Series or object array of str, or a table of one column; y has a label for each
    row, or is a 0/1 indicator matrix (multi-label, one sigmoid per label). ``score`` is accuracy,
    multi-label micro F1.

    %(containers)s

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    %(attributes)s

    See Also
    --------
    skdice.DicePairClassifier : The same for pairs of texts.

    Notes
    -----
    Multi-label, a set loss pools all labels of a step (a soft micro F1;
    ``DiceLoss(average="macro")`` takes each by itself), and ``class_weight={label: weight}`` weighs
    the rows with that label.

    ``predict_proba`` is a softmax whatever the loss. A set loss makes scores, not calibrated
    probabilities; sklearn's ``CalibratedClassifierCV`` works on top.

    Examples
    --------
    >>> from skdice import DiceTextClassifier
    >>> classifier = DiceTextClassifier(random_state=0)
    >>> classifier.fit(texts, labels)  # doctest: +SKIP
    >>> classifier.predict(["You have won a prize! Call now."])  # doctest: +SKIP
    array(['spam'], dtype=object)
    """

    _task = Task(
        row="text",
        is_classifier=True,
        read_X=_read_texts,
        read_y=_read_labels,
        find_measure=lambda y: "texts",
        count_rows=count_labelled,
        state=CLASSIFIER_STATE,
        card=CardTexts(
            "text-classification",
            "classifies texts",
            'model.predict(["You have won a prize! Call now."])',
            PIPELINE.replace("{call}", 'model("You have won a prize! Call now.")'),
            SOFTMAX,
        ),
    )

    truncation: Annotated[Literal["longest_first", "error"], option(_TRUNCATION)] = "longest_first"

    def _metric_name(self) -> str:
        return "F1" if self._is_multilabel else "accuracy"

    def _metric(
        self, y_true: np.ndarray, y_pred: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> float:
        if y_pred.ndim == 1:
            return float(accuracy_score(y_true, y_pred, sample_weight=sample_weight))
        options = {"average": "micro", "zero_division": 0.0}
        return float(f1_score(y_true, y_pred, sample_weight=sample_weight, **options))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
