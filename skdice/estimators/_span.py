"""Extractive question answering: the answer is a part of the context."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np

from .._inputs import check_rows, column_names, list_rows
from .._parameters import check_number, number, option, parametrised
from .._typing import Answers, ObjectArray, Questions
from ..io import QUESTION_ANSWERING, CardTexts
from ..losses import Loss, SpanLoss, is_over_positions
from ..metrics import count_rows, read_answers, score_rows, squad_exact_match, squad_f1_score
from ..nn import SpanModule
from ..text import (
    Answer,
    Candidates,
    EncodedDataset,
    EncodedQuestions,
    SpanDecoder,
    encode_questions,
    pick_answers,
)
from ._base import TextEstimator
from ._goal import F1, Goal, tune_thresholds
from ._lesson import Lesson, prior_shift
from ._loss import check_loss_classes
from ._out_of_fold import out_of_fold_scores
from ._questions import GoldAnswers, align_answers, check_questions
from ._rows import Rows, Task, object_array

_STRIDE = """
Pieces of the context that neighbouring windows share; by default a quarter of what fits beside the
question.
"""
_NULL_THRESHOLD = """
The prediction is "no answer" if its logit exceeds that of the best span by more than this number.
"auto" tunes it for F1 on the validation part; without one it is 0, and if all training questions
have answers, "no answer" is never predicted. "cv" tunes it on the training rows: five more models
are fitted, and each predicts the fifth of the rows that it was not trained on. A fit then takes
about five times as long.
"""
_ON_MISALIGNED = """
What ``fit`` does if an answer does not stand at its ``answer_start``: "repair" takes the nearest
place that has its text, "raise" raises an error, and "skip" leaves the answer out (and its row, if
it has no other one). ``n_misaligned_`` and a warning have the number of such answers.
"""


def _read_questions(X: Any) -> list[tuple[str, str]]:
    return list(zip(*check_questions(X)))


def _contexts(rows: Sequence[tuple[str, str]]) -> list[str]:
    return [context for _, context in rows]


def _read_answers(y: Any, rows: Any = None) -> list[list[str]]:
    answers = check_rows(y, "y", "answers")
    return [read_answers(row, f"row {i} of y") for i, row in enumerate(answers)]


@parametrised
class DiceSpanExtractor(TextEstimator):
    """Answer questions by a part of their context with a fine-tuned transformer.

    X is a DataFrame with the columns ``question`` and ``context`` (others are ignored), or a
    list, Series or object array of dicts with these keys or of pairs (question, context). y has an
    answer for each question: a SQuAD dict ``{"text": [...], "answer_start": [...]}``, empty lists
    for a question without an answer, or a str (``""``) or a list of str, which are looked for in
    the context. ``score`` is the F1 of SQuAD.

    %(containers)s

    Parameters
    ----------
    %(parameters)s

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
    sigmoid); the losses of starts and ends are averaged. ``class_weight`` and ``K`` are about the
    classes 0 and 1 (an answer starts, or ends, there), so cross-entropy has no use for them.

    Of several gold answers the first one is learned, and the best one counts in scores: so answers
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

    _module_class = SpanModule
    _task = Task(
        row="question",
        reads_two_texts=True,
        read_X=_read_questions,
        read_y=_read_answers,
        find_measure=lambda y: "questions",
        count_rows=lambda estimator, *given: count_rows(*given),
        find_groups=lambda X: check_questions(X)[1],
        state={"n_misaligned_": int, "null_threshold_": (int, float)},
        card=CardTexts(
            "question-answering",
            "answers questions by a part of a context",
            'model.predict([("Where does John live?", "John lives in Oslo.")])',
            QUESTION_ANSWERING,
            "The scores of `predict_spans` are shares among all spans of the context and no "
            "answer.",
        ),
    )

    stride: Annotated[int | None, number(_STRIDE, low=0, integer=True, optional=True)] = None
    null_threshold: Annotated[
        float | Literal["auto", "cv"],
        number(_NULL_THRESHOLD, closed="both", words=("auto", "cv"), in_folds="auto"),
    ] = "auto"
    n_best: Annotated[
        int,
        number("Answers that ``predict_spans`` gives for each question.", low=1, integer=True),
    ] = 20
    max_answer_length: Annotated[
        int, number("Longest answer, in pieces, that may be predicted.", low=1, integer=True)
    ] = 30
    on_misaligned: Annotated[Literal["repair", "raise", "skip"], option(_ON_MISALIGNED)] = "repair"

    def _read_training(self, X: Any, y: Any) -> tuple[Sequence[Any], Any, np.ndarray | None]:
        rows = self._task.read_X(X)
        gold = align_answers(y, [context for _, context in rows], self.on_misaligned)
        return rows, gold, gold.kept

    def _read_labelled(self, X: Any, y: Any) -> tuple[Sequence[Any], Any]:
        rows, answers = super()._read_labelled(X, y)
        return rows, GoldAnswers(answers, [None] * len(rows), np.arange(len(rows)), 0)

    def _check_learnable(self, rows: Rows) -> None:
        check_loss_classes(self.loss, 1)

    def _learn(self, rows: Rows) -> None:
        self.n_misaligned_ = rows.y.n_misaligned
        threshold = self.null_threshold
        if isinstance(threshold, str):
            threshold = math.inf if None not in rows.y.spans else 0.0
        self.null_threshold_ = float(threshold)

    def _prepare(self, rows: Rows, rng: np.random.Generator) -> Lesson:
        encoded = self._encode(rows.X, rows.y.spans, rows.weight)
        if len(encoded.uncovered):
            uncovered = list_rows(rows.number[encoded.uncovered].tolist())
            warnings.warn(
                f"The answers of {len(encoded.uncovered)} questions are longer than what "
                f"neighbouring windows share and lie in no window as a whole, so they are not "
                f"learned; a larger stride or max_length helps: {uncovered}.",
                stacklevel=3,
            )
        group = np.array([int(span is None) for span in rows.y.spans], dtype=np.int64)
        counts = encoded.count_starts()
        return Lesson(encoded.dataset, [0, 1], counts, 0, binary=True, group=group)

    def _shift(self, lesson: Lesson) -> np.ndarray:
        # The first item of a window stands for "no answer".
        target, first = lesson.dataset.target, lesson.dataset.items.offsets[:-1]
        assert target is not None
        shift = np.zeros((len(target), 2), dtype=np.float32)
        weight, share = lesson.item_weight, lesson.item_share
        others = np.delete(np.arange(len(target)), first)
        # Of one softmax over a window, the odds of "no answer" say all.
        for items in (first,) if is_over_positions(self.loss_) else (first, others):
            shift[items] = prior_shift(target[items], 2, weight[items], share[items])
        return shift

    def _criterion(self, loss: Any) -> Any:
        return SpanLoss(loss)

    def _n_outputs(self) -> int:
        return 2

    def _tunes(self) -> bool:
        """Whether the threshold is to be found, and questions may have no answer."""
        return isinstance(self.null_threshold, str) and self.null_threshold_ != math.inf

    def _validator(self, rows: Rows) -> Callable[[], float]:
        encoded, answers = self._encode(rows.X), rows.y.answers
        contexts = _contexts(rows.X)

        def validate() -> float:
            found = self._find(encoded, n_best=1)
            if self._tunes():
                self._tune_decision(rows, scores=lambda: found)
            return self._metric(answers, pick_answers(found, contexts, self.null_threshold_))

        return validate

    def _decide_on(self, rows: Rows, valid: Rows, held_out: tuple[Any, Any] | None) -> None:
        if not self._tunes():
            return
        if self.null_threshold == "cv":
            answers = rows.y.answers
            given = (rows.X, answers, rows.weight, rows.groups, held_out)
            unseen = partial(out_of_fold_scores, self, *given)
            self._tune_decision(rows, scores=unseen)
        elif len(valid):
            self._validator(valid)()  # Sets the threshold of the weights that were kept.

    def _predicted(self, logits: np.ndarray, dataset: EncodedDataset) -> np.ndarray:
        # The first position of a window stands for "no answer".
        first = dataset.items.offsets[:-1]
        none, logits = logits[first].sum(1), logits.copy()
        logits[first] = -np.inf
        best = np.maximum.reduceat(logits, first).sum(1)
        return (best > none - self.null_threshold_).any(keepdims=True)

    def _missed(self, predicted: np.ndarray, target: np.ndarray) -> str | None:
        return None if predicted.any() else "answered no question"

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
        self._check_is_fitted()
        questions = _read_questions(X)
        found = self._find(self._encode(questions), n_best=1)
        return object_array(pick_answers(found, _contexts(questions), self.null_threshold_))

    def predict_spans(self, X: Questions, n_best: int | None = None) -> ObjectArray[list[Answer]]:
        """Find the best spans of the contexts, whatever ``null_threshold_`` is.

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
        self._check_is_fitted()
        check_number("predict_spans", "n_best", n_best, low=1, integer=True, optional=True)
        questions = _read_questions(X)
        n_best = self.n_best if n_best is None else n_best
        found = self._find(self._encode(questions), n_best)
        return object_array(
            [
                [Answer(context[a:b], a, b, score) for a, b, score in candidates.spans]
                for candidates, (_, context) in zip(found, questions)
            ]
        )

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
        self._check_is_fitted()
        found = self._decision_scores(X)
        return np.array([candidates.no_answer for candidates in found], dtype=np.float64)

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
        return self._metric(y, self.predict(X))

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

    def _metric(self, y_true: Any, y_pred: Any) -> float:
        return float(squad_f1_score(y_true, y_pred))

    def _decision_scores(self, X: Questions) -> list[Candidates]:
        """Return the best span of each question, and by how much no answer exceeds it."""
        return self._find(self._encode(_read_questions(X)), n_best=1)

    def _tune_decision(self, rows: Rows, goal: Goal = F1, scores: Any = None) -> None:
        """Set ``null_threshold_`` to what is best on held-out questions."""
        y, contexts = rows.y.answers, _contexts(rows.X)
        found = self._decision_scores(rows.X) if scores is None else scores()
        no_answer = np.array([candidates.no_answer for candidates in found])
        if goal.has_floor:
            answers = pick_answers(found, contexts, math.inf)
            f1 = score_rows(y, answers, "2.0").f1
            can_answer = np.array([text != "" for text in answers])
            n_actual = sum(map(any, _read_answers(y)))

            def score(threshold: float) -> float:
                is_answered = can_answer & (no_answer <= threshold)
                return float(goal.value(f1[is_answered].sum(), is_answered.sum(), n_actual))
        elif goal.metric is None:
            answered = score_rows(y, pick_answers(found, contexts, math.inf), "2.0").f1
            silent = score_rows(y, [""] * len(found), "2.0").f1

            def score(threshold: float) -> float:
                return float(np.where(no_answer > threshold, silent, answered).mean())
        else:

            def score(threshold: float) -> float:
                return goal.metric(pick_answers(found, contexts, threshold))

        finite = no_answer[np.isfinite(no_answer)]
        self.null_threshold_ = float(tune_thresholds(finite, score, is_multilabel=False))
        goal.warn_if_missed(score(self.null_threshold_))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        owner = type(self).__name__
        if self.loss in ("ce", "auto") or is_over_positions(self.loss):
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

    def _encode(
        self,
        rows: Sequence[tuple[str, str]],
        answers: Any = None,
        weight: np.ndarray | None = None,
    ) -> EncodedQuestions:
        questions, contexts = [question for question, _ in rows], _contexts(rows)
        encoded = self._encode_once(
            (self.stride, questions, contexts, answers),
            lambda: encode_questions(
                questions, contexts, self.tokenizer_, self.max_length_, self.stride, answers=answers
            ),
        )
        return replace(encoded, dataset=replace(encoded.dataset, weight=weight))

    def _find(self, encoded: EncodedQuestions, n_best: int) -> list[Candidates]:
        decoder = SpanDecoder(self.max_answer_length, n_best)
        return decoder.decode(encoded, self._predict_logits(encoded.dataset))
