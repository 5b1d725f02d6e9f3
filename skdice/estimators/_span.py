"""Extractive question answering: the answer is a part of the context."""

from typing import Annotated, Any, Literal

import numpy as np

from .._inputs import column_names, object_array
from .._parameters import check_number, number, option, parametrised
from .._typing import Answers, ObjectArray, Questions
from ..losses import Loss, is_over_positions
from ..metrics import squad_exact_match, squad_f1_score
from ..tasks import Answering
from ..text import Answer, Candidates
from ._base import FittedAttribute, TextEstimator


@parametrised
class DiceSpanExtractor(TextEstimator[Answering]):
    """Answer questions by a part of their context with a fine-tuned transformer.

    X is a DataFrame with the columns ``question`` and ``context`` (others are ignored), or a
    list, Series or object array of dicts with these keys or of pairs (question, context). y has an
    answer for each question: a SQuAD dict ``{"text": [...], "answer_start": [...]}``, empty lists
    for a question without an answer, or a str (``""``) or a list of str, which are looked for in
    the context. ``score`` is the F1 of SQuAD.

    %(containers)s

    Parameters
    ----------
    stride
        Pieces of the context that neighbouring windows share; by default a quarter of what fits
        beside the question.
    null_threshold
        The prediction is "no answer" if its logit exceeds that of the best span by more than this
        number. "auto" tunes it for F1 on the validation part; without one it is 0, and if all
        training questions have answers, "no answer" is never predicted. "cv" tunes it on the
        training rows: five more models are fitted, and each predicts the fifth of the rows that it
        was not trained on. A fit then takes about six times as long.
    n_best
        Answers that ``predict_spans`` gives for each question.
    max_answer_length
        Longest answer, in pieces, that may be predicted.
    on_misaligned
        What ``fit`` does if an answer does not stand at its ``answer_start``: "repair" takes the
        nearest place that has its text, one of whole words if there is any, "raise" raises an
        error, and "skip" leaves the answer out (and its row, if it has no other one).
        ``n_misaligned_`` and a warning have the number of such answers.

    Attributes
    ----------
    null_threshold_ : float
    n_misaligned_ : int
        Answers of y that did not lie at their ``answer_start``.
    feature_names_in_ : ndarray of shape (2,), object
        ``question`` and ``context``; only if X was a DataFrame.
    %(attributes)s

    See Also
    --------
    skdice.metrics.squad_f1_score : What ``score`` computes.
    skdice.datasets.read_squad : Reads SQuAD, Quoref and CMRC files.

    Notes
    -----
    Every piece of the context is a candidate for the start and for the end of the answer, and the
    first special token stands for "no answer"; nothing else counts. Cross-entropy is taken over
    these positions of a window (one softmax), every other loss over each position by itself (a
    sigmoid); the losses of starts and ends are averaged. ``class_weight`` and ``K`` are for the
    classes 0 and 1 (an answer starts, or ends, there); cross-entropy cannot use them.

    With several gold answers, a fit learns the first one, and scores count the best one. So answers
    of several spans (Quoref) are right if one of their spans is found.

    Questions about the same context are kept together when ``validation_fraction`` splits the rows.

    Examples
    --------
    >>> from skdice import DiceSpanExtractor
    >>> extractor = DiceSpanExtractor(random_state=0)
    >>> extractor.fit(X, y)  # doctest: +SKIP
    >>> extractor.predict([("Where does John live?", "John lives in Oslo.")])  # doctest: +SKIP
    array(['Oslo'], dtype=object)
    """

    stride: Annotated[int | None, number(low=0, integer=True, optional=True)] = None
    null_threshold: Annotated[
        float | Literal["auto", "cv"], number(closed="both", words=("auto", "cv"))
    ] = "auto"
    n_best: Annotated[int, number(low=1, integer=True)] = 20
    max_answer_length: Annotated[int, number(low=1, integer=True)] = 30
    on_misaligned: Annotated[Literal["repair", "raise", "skip"], option()] = "repair"

    null_threshold_ = FittedAttribute[float]("task.null_threshold")
    n_misaligned_ = FittedAttribute[int]("task.n_misaligned")

    def _asked(self) -> Answering:
        threshold = self.null_threshold
        is_open = isinstance(threshold, str)
        return Answering(
            owner=type(self).__name__,
            tuning=("cv" if threshold == "cv" else "validation") if is_open else None,
            stride=self.stride,
            null_threshold=None if isinstance(threshold, str) else float(threshold),
            n_best=self.n_best,
            max_answer_length=self.max_answer_length,
            on_misaligned=self.on_misaligned,
        )

    def predict(self, X: Questions) -> ObjectArray[str]:
        """Answer questions.

        Parameters
        ----------
        X : DataFrame, or list, Series or object array of dicts or pairs

        Returns
        -------
        ndarray of shape (n_questions,), object
            The text of each answer, ``""`` for no answer.
        """
        task, rows, found = self._find(X, 1)
        return object_array(task.answers(found, rows))

    def predict_spans(self, X: Questions, n_best: int | None = None) -> ObjectArray[list[Answer]]:
        """Find the best spans of the contexts; ``null_threshold_`` does not matter.

        Parameters
        ----------
        X : DataFrame, or list, Series or object array of dicts or pairs
        n_best : int, optional
            Answers to each question, at most; the parameter of the estimator by default.

        Returns
        -------
        ndarray of shape (n_questions,), object
            A list of ``Answer(text, start, end, score)`` for each question, best first, with
            ``context[start:end] == text``. The scores are shares among all spans of the context and
            "no answer", so they sum to at most 1.
        """
        _, rows, found = self._find(X, n_best)
        answers = [
            [Answer(context[a:b], a, b, score) for a, b, score in candidates.spans]
            for candidates, (_, context) in zip(found, rows)
        ]
        return object_array(answers)

    def no_answer_score(self, X: Questions) -> np.ndarray:
        """Return by how much the logit of "no answer" exceeds that of the best span.

        ``predict`` gives ``""`` where it is above ``null_threshold_``.

        Parameters
        ----------
        X : DataFrame, or list, Series or object array of dicts or pairs

        Returns
        -------
        ndarray of shape (n_questions,)
            Infinite where the tokenizer keeps nothing of the context.
        """
        return np.array([found.no_answer for found in self._find(X, 1)[2]], dtype=np.float64)

    def _find(
        self, X: Questions, n_best: int | None
    ) -> tuple[Answering, list[Any], list[Candidates]]:
        """Return the task, the checked rows, and the best spans of each."""
        inner = self._ready()
        check_number("predict_spans", "n_best", n_best, low=1, integer=True, optional=True)
        task = inner.task
        rows = task.read_X(X)
        encoded, n_best = task.encode(rows, inner.fitted.reader), n_best or task.n_best
        return task, rows, task.find(encoded, inner.network, n_best)

    def score(self, X: Questions, y: Answers) -> float:
        """Return the F1 of SQuAD (version 2.0).

        Parameters
        ----------
        X : DataFrame, or list, Series or object array of dicts or pairs
        y : list, Series or object array of SQuAD dicts, str or lists of str
            Of several answers the best one counts. Offsets are ignored.

        Returns
        -------
        float
            In [0, 1].
        """
        return float(squad_f1_score(y, self.predict(X)))

    def exact_match(self, X: Questions, y: Answers) -> float:
        """Return the share of the questions whose answer is right as a whole, as SQuAD counts.

        Parameters
        ----------
        X : DataFrame, or list, Series or object array of dicts or pairs
        y : list, Series or object array of SQuAD dicts, str or lists of str

        Returns
        -------
        float
            In [0, 1].
        """
        return float(squad_exact_match(y, self.predict(X)))

    def check_parameters(self) -> None:
        super().check_parameters()
        owner = type(self).__name__
        if self.loss in ("ce", "auto", "cv") or is_over_positions(self.loss):
            weights: dict[str, Any] = {"K": self.K, "class_weight": self.class_weight}
            if isinstance(self.loss, Loss):
                weights["class_weight of the loss"] = self.loss.class_weight
            for name, value in weights.items():
                if value is not None:
                    raise ValueError(
                        f"{name}={value!r} cannot be used with cross-entropy in {owner}: it is "
                        f"taken over the positions of a window, which have no classes. "
                        f"loss='wce' and all others judge single positions."
                    )

    def _feature_names(self, X: Any) -> np.ndarray | None:
        names = np.array(["question", "context"], dtype=object)
        return None if column_names(X) is None else names
