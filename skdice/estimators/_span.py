"""Extractive question answering: the answer is a part of the context."""

import math
import numbers
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Self

import numpy as np
from torch import Tensor

from .._inputs import check_rows, check_sample_weight, column_names, list_rows
from .._parameters import check_number
from .._typing import Answers, Questions, Weights
from ..io._model_card import QUESTION_ANSWERING, CardTexts
from ..losses import Loss
from ..losses._span import SpanLoss, is_over_positions
from ..metrics import squad_exact_match, squad_f1_score
from ..metrics._row_counts import RowCounts, count_rows
from ..metrics._squad import read_answers, score_rows
from ..nn._modules import SpanModule
from ..nn._predicted import predicted_answers
from ..text._answers import Answer, Candidates, SpanDecoder, pick_answers
from ..text._questions import EncodedQuestions, encode_questions
from ._base import TextEstimator
from ._goal import Goal
from ._loss import check_loss_classes, make_training_loss
from ._out_of_fold import out_of_fold_scores
from ._parameter import Parameter, estimator, number, option
from ._questions import GoldAnswers, check_questions
from ._rows import object_array, take
from ._split import split_rows
from ._task import Task
from ._thresholds import tune_thresholds
from ._windows import longest_window

_MAX_LENGTH = """
Longest window in pieces, question and special ones included; the model's limit by default. Longer
contexts are read in several windows.
"""
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


def _check_null_threshold(owner: str, name: str, value: Any) -> None:
    if isinstance(value, str) and value in ("auto", "cv"):
        return
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or math.isnan(value):
        raise ValueError(
            f"The {name!r} parameter of {owner} must be 'auto', 'cv' or a float in the range "
            f"[-inf, inf]. Got {value!r} instead."
        )


def _read_questions(X: Any) -> list[tuple[str, str]]:
    return list(zip(*check_questions(X)))


def _count_answers(estimator: Any, measure: str, y_true: Any, y_pred: Any) -> RowCounts:
    return count_rows(measure, y_true, y_pred)


def _read_answers(y: Any, rows: Any = None) -> list[list[str]]:
    answers = check_rows(y, "y", "answers")
    return [read_answers(row, f"row {i} of y") for i, row in enumerate(answers)]


@estimator
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
    >>> extractor = DiceSpanExtractor("bert-base-cased", loss="dice", random_state=0)
    >>> extractor.fit(X, y)  # doctest: +SKIP
    >>> extractor.predict([("Where does John live?", "John lives in Oslo.")])  # doctest: +SKIP
    array(['Oslo'], dtype=object)
    """

    _module_class = SpanModule
    _task = Task(
        row="question",
        takes_words=False,
        parts=("question", "context"),
        is_classifier=False,
        read_X=_read_questions,
        read_y=_read_answers,
        find_measure=lambda y: "questions",
        count_rows=_count_answers,
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

    max_length: Annotated[int | None, number(_MAX_LENGTH, low=1, integer=True, optional=True)] = (
        None
    )
    stride: Annotated[int | None, number(_STRIDE, low=0, integer=True, optional=True)] = None
    null_threshold: Annotated[
        float | str, Parameter('float, "auto" or "cv"', _NULL_THRESHOLD, _check_null_threshold)
    ] = "auto"
    n_best: Annotated[
        int,
        number("Answers that ``predict_spans`` gives for each question.", low=1, integer=True),
    ] = 20
    max_answer_length: Annotated[
        int, number("Longest answer, in pieces, that may be predicted.", low=1, integer=True)
    ] = 30
    on_misaligned: Annotated[str, option(_ON_MISALIGNED, "repair", "raise", "skip")] = "repair"

    def fit(
        self,
        X: Questions,
        y: Answers,
        sample_weight: Weights = None,
        *,
        groups: Any = None,
        validation: Any = None,
    ) -> Self:
        """Fine-tune the model.

        Parameters
        ----------
        X : DataFrame, or list, Series or object array of dicts or pairs
            Questions and contexts.
        y : list, Series or object array of SQuAD dicts, str or lists of str
            Answers; empty if there is none.
        sample_weight : array-like of shape (n_questions,), optional
            Weight of each question; 2 counts as repetition, 0 as absence.
        groups : array-like of shape (n_questions,), optional
            Questions of one group, such as a document, are kept together when rows are split for
            validation or folds.
        validation : tuple (X, y), or array of int or bool, optional
            What is scored after every epoch, instead of ``validation_fraction``: other
            questions, or the indices or a mask of questions of X.

        Returns
        -------
        DiceSpanExtractor
            self

        Raises
        ------
        ValueError
            If parameters or data are not allowed, or the loss stops being finite; the message says
            what was got, what is allowed, and which row.
        """
        given = self._read_fit(X, y, sample_weight, groups, validation)
        questions, contexts = check_questions(given.X)
        gold = GoldAnswers(given.y, contexts, self.on_misaligned)
        weight = check_sample_weight(given.sample_weight, len(questions))
        if given.held_out is not None:
            valid_questions, valid_contexts = check_questions(given.held_out[0])
            y_valid = self._task.read_y(given.held_out[1], valid_questions)
        rows = gold.rows
        if weight is not None:
            # Weight 0 is absence, from the validation part too.
            rows = rows[weight[rows] > 0]
        if not len(rows):
            raise ValueError(f"Found no question to train on; X has {len(questions)} rows.")
        check_loss_classes(self.loss, 1)
        seed = self._draw_seed()
        rng = np.random.default_rng(seed)
        self.tokenizer_ = self._load_tokenizer()
        self.max_length_ = longest_window(self, self.tokenizer_, self._frame())
        self._keep_names(X)
        self.n_misaligned_ = gold.n_misaligned

        whole = self._encode(questions, contexts, gold.spans, weight)
        if len(whole.uncovered):
            rows_ = list_rows(whole.uncovered.tolist())
            warnings.warn(
                f"The answers of {len(whole.uncovered)} questions are longer than what "
                f"neighbouring windows share and lie in no window as a whole, so they are not "
                f"learned; a larger stride or max_length helps: {rows_}.",
                UserWarning,
                stacklevel=2,
            )
        groups = take(contexts if given.groups is None else given.groups, rows)
        train, valid = split_rows(len(rows), self.validation_fraction, rng, groups=groups)
        train, valid = rows[train], rows[valid]
        train_set, valid_set = whole.take(train), whole.take(valid)
        if given.held_out is None:
            valid_questions, valid_contexts = take(questions, valid), take(contexts, valid)
            y_valid = take(gold.y, valid)
        else:
            valid_set = self._encode(valid_questions, valid_contexts)
        self._n_training_rows = len(train)
        tunes = isinstance(self.null_threshold, str)
        if tunes:
            never = all(gold.spans[i] is not None for i in rows)
            tunes = not never
            self.null_threshold_ = math.inf if never else 0.0
        else:
            self.null_threshold_ = float(self.null_threshold)

        def validate() -> float:
            found = self._find(valid_set, n_best=1)
            if tunes:
                self.null_threshold_ = self._tune_threshold(found, valid_contexts, y_valid)
            return self._metric(y_valid, self._pick(found, valid_contexts))

        loss = make_training_loss(
            self,
            [0, 1],
            train_set.count_starts(),
            background=0,
            binary=True,
            n_steps=self._count_steps(train_set.dataset),
        )
        held_out = (valid_questions, valid_contexts, y_valid)
        scored = validate if valid_contexts else None
        self._fit_network(train_set.dataset, SpanLoss(loss), 2, seed, rng, held_out, scored)
        if tunes and self.null_threshold == "cv":
            X, y = list(zip(take(questions, rows), take(contexts, rows))), take(gold.y, rows)
            weight = None if weight is None else weight[rows]
            unseen = partial(out_of_fold_scores, self, X, y, weight, groups, given.held_out)
            self._tune_decision(X, y, scores=unseen)
        elif tunes and valid_contexts:
            validate()  # Sets the threshold of the weights that were kept.
        self.interrupted_ = False
        return self

    def _predicted(self, logits: Tensor, target: Tensor) -> Tensor:
        return predicted_answers(logits, target)

    def _missed(self, predicted: np.ndarray, target: np.ndarray) -> str | None:
        never_silent = self.null_threshold_ == math.inf
        return None if never_silent or predicted.any() else "answered no question"

    def predict(self, X: Questions) -> np.ndarray:
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
        questions, contexts = check_questions(X)
        found = self._find(self._encode(questions, contexts), n_best=1)
        return object_array(self._pick(found, contexts))

    def predict_spans(self, X: Questions, n_best: int | None = None) -> np.ndarray:
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
        questions, contexts = check_questions(X)
        n_best = self.n_best if n_best is None else n_best
        found = self._find(self._encode(questions, contexts), n_best)
        return object_array(
            [
                [Answer(context[a:b], a, b, score) for a, b, score in candidates.spans]
                for candidates, context in zip(found, contexts)
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
        return self._find(self._encode(*check_questions(X)), n_best=1)

    def _tune_decision(
        self,
        X: Questions,
        y: Answers,
        metric: Callable[..., float] | None = None,
        sample_weight: Weights = None,
        goal: Goal | None = None,
        scores: Callable[[], list[Candidates]] | None = None,
    ) -> None:
        """Set ``null_threshold_`` to what is best on held-out questions."""
        if sample_weight is not None:
            raise ValueError("sample_weight must be None for an extractor: its scores take none.")
        contexts = check_questions(X)[1]
        found = self._decision_scores(X) if scores is None else scores()
        self.null_threshold_ = self._tune_threshold(found, contexts, y, metric, goal)

    def _tune_threshold(
        self,
        found: list[Candidates],
        contexts: list[str],
        y: Any,
        metric: Callable[..., float] | None = None,
        goal: Goal | None = None,
    ) -> float:
        """Return the threshold with the best score on held-out questions."""
        no_answer = np.array([candidates.no_answer for candidates in found])
        if goal is not None and goal.has_floor:
            answers = self._pick(found, contexts, math.inf)
            f1 = score_rows(y, answers, "2.0").f1
            can_answer = np.array([text != "" for text in answers])
            n_actual = sum(map(any, _read_answers(y)))

            def score(threshold: float) -> float:
                is_answered = can_answer & (no_answer <= threshold)
                return float(goal.value(f1[is_answered].sum(), is_answered.sum(), n_actual))
        elif metric is None:
            answered = score_rows(y, self._pick(found, contexts, math.inf), "2.0").f1
            silent = score_rows(y, [""] * len(found), "2.0").f1

            def score(threshold: float) -> float:
                return float(np.where(no_answer > threshold, silent, answered).mean())
        else:

            def score(threshold: float) -> float:
                return float(metric(y, self._pick(found, contexts, threshold)))

        finite = no_answer[np.isfinite(no_answer)]
        best = float(tune_thresholds(finite, score, is_multilabel=False))
        if goal is not None:
            goal.warn_if_missed(score(best))
        return best

    def _check_together(self) -> None:
        owner = type(self).__name__
        is_ce = self.loss in ("ce", "recommended")
        if is_ce or (isinstance(self.loss, Loss) and is_over_positions(self.loss)):
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

    def _keep_names(self, X: Any) -> None:
        self.__dict__.pop("feature_names_in_", None)
        if column_names(X) is not None:
            self.feature_names_in_ = np.array(["question", "context"], dtype=object)

    def _encode(
        self,
        questions: list[str],
        contexts: list[str],
        answers: Any = None,
        weight: np.ndarray | None = None,
    ) -> EncodedQuestions:
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

    def _pick(
        self, found: list[Candidates], contexts: list[str], threshold: float | None = None
    ) -> list[str]:
        return pick_answers(
            found, contexts, self.null_threshold_ if threshold is None else threshold
        )
