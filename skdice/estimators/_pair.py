"""Classification of pairs of texts: paraphrases, duplicates, records of one thing."""

from typing import Any

import numpy as np
from sklearn.metrics import f1_score

from .._inputs import check_pairs
from ..text._frame import Frame
from ._classifier import TextClassifier
from ._documentation import documented


@documented
class DicePairClassifier(TextClassifier):
    """Classify pairs of texts with a fine-tuned transformer that reads both together.

    X is a list, Series or object array of 2-tuples of str, a table of two columns or an (n, 2)
    object array; y has a label for each pair. ``score`` is F1: of ``pos_label`` if there are two
    classes, else the macro average.

    Parameters
    ----------
    %(shared_parameters)s
    max_length : int, optional
        Longest pair in pieces, special ones included; the model's limit by default.
    stride : None
        Not for classifiers, which truncate.
    pos_label : label, optional
        The positive one of two classes, the larger label by default: ``score`` is its F1, and the
        set losses leave out the other one. None with more classes.
    truncation : {"longest_first", "second", "error"}, default="longest_first"
        Longer pairs lose the end of the longer text ("longest_first") or of the second one, with a
        warning that counts them, or are an error.

    Attributes
    ----------
    %(classifier_attributes)s

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
    >>> classifier = DicePairClassifier("bert-base-cased", loss="dice", random_state=0)
    >>> classifier.fit(pairs, labels)  # doctest: +SKIP
    >>> classifier.predict([("Is it cold?", "Is it warm?")])  # doctest: +SKIP
    array([0])
    """

    _task = "pair-classification"
    _row_name = "pair"

    def _frame(self) -> Frame:
        return self.tokenizer_.pair_frame

    def _check_rows(self, X: Any) -> list[tuple[str, ...]]:
        return list(check_pairs(X))

    def _metric(
        self, y_true: np.ndarray, y_pred: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> float:
        labels = [self.classes_[self._positive()]] if len(self.classes_) == 2 else None
        return float(
            f1_score(
                y_true,
                y_pred,
                labels=labels,
                average="macro",
                sample_weight=sample_weight,
                zero_division=0.0,
            )
        )
