"""Classification of pairs of texts: paraphrases, duplicates, records of one thing."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from sklearn.metrics import f1_score

from .._inputs import check_pairs
from .._parameters import option, parametrised
from ..io._model_card import PIPELINE, SOFTMAX, CardTexts
from ._classifier import CLASSIFIER_STATE, TextClassifier, count_labelled
from ._labels import check_labels
from ._task import Task

_TRUNCATION = """
Longer pairs lose the end of the longer text ("longest_first") or of the second one, with a warning
that counts them, or are an error.
"""


def _read_labels(y: Any, rows: Sequence[Any]) -> tuple[np.ndarray, None]:
    return check_labels(y, len(rows)), None


@parametrised
class DicePairClassifier(TextClassifier):
    """Classify pairs of texts with a fine-tuned transformer that reads both together.

    X is a list, Series or object array of 2-tuples of str, a table of two columns or an (n, 2)
    object array; y has a label for each pair. ``score`` is F1: of ``pos_label`` if there are two
    classes, else the macro average.

    %(containers)s

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    %(attributes)s

    See Also
    --------
    skdice.DiceTextClassifier : The same for single texts.
    skdice.datasets.read_pairs : Reads MRPC, QQP and entity resolution pairs.

    Notes
    -----
    A set loss of two classes is a soft F1 of the positive one over the texts of a step.
    ``VotingClassifier``, ``StackingClassifier`` and ``BaggingClassifier`` encode y as 0, 1, ...
    before they fit: leave ``pos_label`` None inside them.

    Examples
    --------
    >>> from skdice import DicePairClassifier
    >>> classifier = DicePairClassifier(random_state=0)
    >>> classifier.fit(pairs, labels)  # doctest: +SKIP
    >>> classifier.predict([("Is it cold?", "Is it warm?")])  # doctest: +SKIP
    array([0])
    """

    _task = Task(
        row="pair",
        parts=("first", "second"),
        is_classifier=True,
        read_X=check_pairs,
        read_y=_read_labels,
        find_measure=lambda y: "pairs",
        count_rows=count_labelled,
        state=CLASSIFIER_STATE,
        card=CardTexts(
            "text-classification",
            "classifies pairs of texts",
            'model.predict([("Is it cold?", "Is it warm?")])',
            PIPELINE.replace(
                "{call}", 'model({{"text": "Is it cold?", "text_pair": "Is it warm?"}})'
            ),
            SOFTMAX,
        ),
    )

    truncation: Annotated[str, option(_TRUNCATION, "longest_first", "second", "error")] = (
        "longest_first"
    )

    def _metric(
        self, y_true: np.ndarray, y_pred: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> float:
        labels = [self.classes_[self._positive()]] if len(self.classes_) == 2 else None
        options = {"labels": labels, "average": "macro", "zero_division": 0.0}
        return float(f1_score(y_true, y_pred, sample_weight=sample_weight, **options))
