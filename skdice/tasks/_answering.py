"""Answering: the answer to a question is a part of its context, or there is none."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from .._inputs import check_rows, count_of, list_rows
from .._parameters import check_number
from ..losses import Loss, SpanLoss, check_loss_classes, is_over_positions
from ..metrics import read_answers, score_rows
from ..text import (
    Candidates,
    EncodedQuestions,
    SpanDecoder,
    TextReader,
    encode_questions,
    pick_answers,
)
from ._goal import F1, Goal, tune_thresholds
from ._questions import GoldAnswers, align_answers, check_questions
from ._rows import Rows
from ._task import (
    QUESTION_ANSWERING,
    CardTexts,
    Correction,
    HeadSpec,
    LabelFacts,
    Logits,
    Task,
    TaskInfo,
    TrainingSet,
    correct_draw,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Answering(Task):
    """The answer to a question is a part of its context, or there is none."""

    info = TaskInfo(
        name="answering",
        row="question",
        columns=("question", "context"),
        predicts="answer",
        measure="questions",
        decision={"null_threshold_": "null_threshold"},
        n_texts=2,
        group_column=1,
        choosable=("null_threshold",),
        adjustable=("n_best",),
        card=CardTexts(
            "question-answering",
            "answers questions by a part of a context",
            'model.predict([("Where does John live?", "John lives in Oslo.")])',
            QUESTION_ANSWERING,
            "The scores of `predict_spans` are shares among all spans of the context and no "
            "answer.",
        ),
    )

    # Pieces of the context that windows share; a quarter of the room beside the question if None.
    stride: int | None = None
    # "No answer" is predicted if its logit exceeds that of the best span by more; None is open.
    null_threshold: float | None = None
    n_best: int = 20
    max_answer_length: int = 30  # in pieces
    on_misaligned: str = "repair"  # or "raise", "skip"
    n_misaligned: int = 0  # training answers that did not lie at their answer_start

    def read_X(self, X: Any) -> list[tuple[str, str]]:
        return list(zip(*check_questions(X)))

    def read_y(self, y: Any, rows: Sequence[Any]) -> GoldAnswers:
        answers = [
            read_answers(row, f"row {i} of y")
            for i, row in enumerate(check_rows(y, "y", "answers"))
        ]
        return GoldAnswers(answers, [None] * len(rows), np.arange(len(rows)), 0)

    def read_training(self, X: Any, y: Any) -> tuple[list[Any], GoldAnswers, np.ndarray | None]:
        rows = self.read_X(X)
        gold = align_answers(y, contexts_of(rows), self.on_misaligned)
        return rows, gold, gold.kept

    # -- learning ---------------------------------------------------------------------------------

    def check_learnable(self, rows: Rows, loss: Any) -> None:
        check_loss_classes(loss, 1)

    def facts(self, rows: Rows) -> LabelFacts:
        return LabelFacts(n_unanswered=sum(span is None for span in rows.y.spans))

    def learn(self, rows: Rows, reader: TextReader) -> Self:
        return replace(self, n_misaligned=rows.y.n_misaligned)

    def encode(
        self,
        rows: Sequence[tuple[str, str]],
        reader: TextReader,
        answers: Any = None,
        weight: np.ndarray | None = None,
    ) -> EncodedQuestions:
        """Return questions with their contexts as windows of pieces."""
        questions, contexts = [question for question, _ in rows], contexts_of(rows)
        encoded = encode_questions(
            questions,
            contexts,
            reader.tokenizer,
            reader.max_length,
            self.stride,
            answers=answers,
        )
        return replace(encoded, dataset=replace(encoded.dataset, weight=weight))

    def training_set(self, rows: Rows, reader: TextReader, sampled: bool) -> TrainingSet:
        encoded = self.encode(rows.X, reader, rows.y.spans, rows.weight)
        if len(encoded.uncovered):
            uncovered = list_rows(rows.number[encoded.uncovered].tolist())
            warnings.warn(
                f"The answers of {count_of(len(encoded.uncovered), 'question')} are longer than "
                f"what neighbouring windows share and lie in no window as a whole, so they are not "
                f"learned; a larger stride or max_length helps: {uncovered}.",
                stacklevel=4,
            )
        group = np.array([int(span is None) for span in rows.y.spans], dtype=np.int64)
        counts = encoded.count_starts()
        return TrainingSet(encoded.dataset, [0, 1], counts, 0, binary=True, group=group)

    @property
    def class_names(self) -> list[Any]:
        return []

    @property
    def head(self) -> HeadSpec:
        return HeadSpec(kind="spans", suffix="ForQuestionAnswering", n_outputs=2)

    def criterion(self, loss: Loss) -> SpanLoss:
        return SpanLoss(loss)

    def correct(
        self, training_set: TrainingSet, loss: Loss, weight: np.ndarray, share: np.ndarray
    ) -> Correction:
        # The first item of a window stands for "no answer".
        target, first = training_set.dataset.target, training_set.dataset.items.offsets[:-1]
        assert target is not None
        shift = np.zeros(target.shape, dtype=np.float32)
        each = np.ones(target.shape, dtype=np.float32)
        others = np.delete(np.arange(len(target)), first)
        # Of one softmax over a window, the odds of "no answer" say all.
        for items in (first,) if is_over_positions(loss) else (first, others):
            of_items = correct_draw(target[items], 2, weight[items], share[items])
            shift[items], each[items] = of_items
        return Correction(shift, each)

    # -- deciding ---------------------------------------------------------------------------------

    @property
    def is_tuned(self) -> bool:
        return self.tuning is not None and self.null_threshold != math.inf

    def find(self, encoded: EncodedQuestions, logits: Logits, n_best: int) -> list[Candidates]:
        """Return the best spans of each question."""
        decoder = SpanDecoder(self.max_answer_length, n_best)
        return decoder.decode(encoded, logits(encoded.dataset))

    def answers(self, found: Sequence[Candidates], rows: Sequence[tuple[str, str]]) -> list[str]:
        """Return the answer to each question, "" for none."""
        assert self.null_threshold is not None
        return pick_answers(found, contexts_of(rows), self.null_threshold)

    def validator(self, rows: Rows, reader: TextReader) -> Callable[[Logits], float]:
        encoded = self.encode(rows.X, reader)

        def validate(logits: Logits) -> float:
            found = self.find(encoded, logits, n_best=1)
            task = self.tune(rows, found) if self.is_tuned else self
            f1 = score_rows(rows.y.answers, task.answers(found, rows.X), "2.0").f1
            return float(np.average(f1, weights=rows.weight))

        return validate

    def scores(
        self, rows: Sequence[tuple[str, str]], reader: TextReader, logits: Logits
    ) -> list[Candidates]:
        return self.find(self.encode(rows, reader), logits, n_best=1)

    def tune(self, rows: Rows, scores: Sequence[Candidates], goal: Goal = F1) -> Self:
        y, contexts = rows.y.answers, contexts_of(rows.X)
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        no_answer = np.array([candidates.no_answer for candidates in scores])
        answers = pick_answers(scores, contexts, math.inf)
        answered = score_rows(y, answers, "2.0").f1
        silent = score_rows(y, [""] * len(scores), "2.0").f1
        can_answer = np.array([text != "" for text in answers])
        n_actual = weight @ [any(row) for row in self.read_y(y, rows.X).answers]

        def score(threshold: float) -> float:
            if goal.metric is not None:
                return goal.metric(pick_answers(scores, contexts, threshold))
            is_given = no_answer <= threshold
            if goal.has_floor:
                given = weight * (can_answer & is_given)
                return float(goal.value(given @ answered, given.sum(), n_actual))
            return float(np.average(np.where(is_given, answered, silent), weights=weight))

        finite = no_answer[np.isfinite(no_answer)]
        threshold = float(tune_thresholds(finite, score, is_multilabel=False))
        goal.warn_if_missed(score(threshold))
        return replace(self, null_threshold=threshold)

    def with_null_threshold(self, threshold: float) -> Self:
        """Return the task with another threshold of "no answer"."""
        check_number(self.owner, "null_threshold_", threshold, closed="both")
        return replace(self, null_threshold=float(threshold))


def contexts_of(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Return the contexts of rows (question, context)."""
    return [context for _, context in rows]
