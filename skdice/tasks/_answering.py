"""Answering: the answer to a question is a part of its context, or there is none."""

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from .._inputs import (
    check_rows,
    check_y,
    column_names,
    count_of,
    describe,
    is_pair,
    is_table,
    list_items,
    list_rows,
    text_cells,
)
from .._parameters import check_number
from ..exceptions import warn
from ..losses import Loss, SpanLoss, check_loss_classes, is_over_positions
from ..metrics import read_answers, score_rows
from ..text import (
    Candidates,
    EncodedQuestions,
    Span,
    SpanDecoder,
    TextReader,
    encode_questions,
    find_word,
    pick_answers,
)
from ._decisions import best_cut
from ._goal import F1, Goal
from ._rows import Label, Row, Rows, take
from ._task import HeadSpec, LabelFacts, Network, Task, TaskInfo, TrainingSet, correct_draw

_FIELDS = ("question", "context")


@dataclass(frozen=True)
class GoldAnswers:
    """The answers to questions, and where they lie in their contexts."""

    answers: list[Any]  # as given
    # The characters of the first answer to each question that is not left out; None for no answer.
    spans: list[Span | None]
    # The questions to learn from: those without an answer, or with one that is not left out.
    kept: np.ndarray
    n_misaligned: int  # answers that did not lie where they should

    def take(self, index: np.ndarray) -> "GoldAnswers":
        """Return the answers to some questions, which are all learned from."""
        answers, spans = take(self.answers, index), take(self.spans, index)
        return GoldAnswers(answers, spans, np.arange(len(index)), self.n_misaligned)


@dataclass(frozen=True, eq=False, kw_only=True)
class Answering(Task):
    """The answer to a question is a part of its context, or there is none."""

    info = TaskInfo(
        name="questions",
        row="question",
        columns=("question", "context"),
        decision={"null_threshold_": "null_threshold"},
        n_texts=2,
        group_column=1,
        choosable=("null_threshold",),
        adjustable=("n_best",),
        pipeline_tag="question-answering",
        summary="answers questions by a part of a context",
        call='model.predict([("Where does John live?", "John lives in Oslo.")])',
        scores=(
            "The scores of `predict_spans` are shares among all spans of the context and no answer."
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

    def __post_init__(self) -> None:
        threshold = self.null_threshold
        check_number(self.owner, "null_threshold_", threshold, closed="both", optional=True)

    def read_X(self, X: object) -> list[tuple[str, str]]:
        return check_questions(X)

    def read_y(self, y: object, rows: Sequence[Any]) -> GoldAnswers:
        given = check_y(y, len(rows), "answers")
        answers = [read_answers(row, f"row {i} of y") for i, row in enumerate(given)]
        return GoldAnswers(answers, [None] * len(rows), np.arange(len(rows)), 0)

    def read_training(
        self, X: object, y: object
    ) -> tuple[list[tuple[str, str]], GoldAnswers, np.ndarray | None]:
        rows = self.read_X(X)
        gold = align_answers(y, contexts_of(rows), self.on_misaligned)
        return rows, gold, gold.kept

    def check_learnable(self, rows: Rows, facts: LabelFacts, loss: str | Loss) -> None:
        if facts.n_unanswered == len(rows):
            raise ValueError(f"{self.owner} needs an answer in y; got {len(rows)} without any.")
        check_loss_classes(loss, 1)

    def facts(self, rows: Rows) -> LabelFacts:
        return LabelFacts(n_unanswered=sum(span is None for span in rows.y.spans))

    def learn(self, rows: Rows, facts: LabelFacts, reader: TextReader) -> Self:
        tuning = None if self.null_threshold == math.inf else self.tuning
        return replace(self, tuning=tuning, n_misaligned=rows.y.n_misaligned)

    def encode(
        self, rows: Sequence[Row], reader: TextReader, learned: Rows | None = None
    ) -> EncodedQuestions:
        """Return questions with their contexts as windows; of rows to learn with targets."""
        questions, contexts = [question for question, _ in rows], contexts_of(rows)
        answers, number = (None, None) if learned is None else (learned.y.spans, learned.number)
        return encode_questions(
            questions, contexts, reader, self.stride, answers=answers, number=number
        )

    def training_set(self, rows: Rows, reader: TextReader, sampled: bool) -> TrainingSet:
        encoded = self.encode(rows.X, reader, rows)
        encoded = replace(encoded, dataset=replace(encoded.dataset, weight=rows.weight))
        if len(encoded.uncovered):
            uncovered = list_rows(rows.number[encoded.uncovered].tolist())
            warn(
                f"The answers of {count_of(len(encoded.uncovered), 'question')} are longer than "
                f"what neighbouring windows share and lie in no window as a whole, so they are not "
                f"learned; a larger stride or max_length helps: {uncovered}."
            )
        group = np.array([int(span is None) for span in rows.y.spans], dtype=np.int64)
        return TrainingSet(
            dataset=encoded.dataset,
            labels=[0, 1],
            counts=encoded.count_starts(),
            background=0,
            binary=True,
            group=group,
        )

    @property
    def class_names(self) -> Sequence[Label]:
        return []

    @property
    def head(self) -> HeadSpec:
        return HeadSpec(suffix="ForQuestionAnswering", n_outputs=2)

    def criterion(self, loss: Loss) -> SpanLoss:
        return SpanLoss(loss)

    def correct(
        self, training_set: TrainingSet, loss: Loss, weight: np.ndarray, share: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        # The first item of a window stands for "no answer".
        target, first = training_set.dataset.target, training_set.dataset.items.offsets[:-1]
        assert target is not None
        shift = np.zeros(target.shape, dtype=np.float32)
        each = np.ones(target.shape, dtype=np.float32)
        others = np.delete(np.arange(len(target)), first)
        # If a loss has one softmax over a window, a draw changes only the odds of "no answer".
        for items in (first,) if is_over_positions(loss) else (first, others):
            found = correct_draw(target[items], 2, weight[items], share[items])
            shift[items], each[items] = found
        return shift, each

    def find(self, encoded: EncodedQuestions, network: Network, n_best: int) -> list[Candidates]:
        """Return the best spans of each question."""
        decoder = SpanDecoder(self.max_answer_length, n_best)
        return decoder.decode(encoded, network.logits(encoded.dataset))

    def answers(self, found: Sequence[Candidates], rows: Sequence[Row]) -> list[str]:
        """Return the answer to each question, "" for none."""
        assert self.null_threshold is not None
        return pick_answers(found, contexts_of(rows), self.null_threshold)

    def validator(self, rows: Rows, network: Network) -> Callable[[], float]:
        encoded = self.encode(rows.X, network.reader)

        def validate() -> float:
            found = self.find(encoded, network, n_best=1)
            task = self if self.tuning is None else self.tune(rows, found)
            f1 = score_rows(rows.y.answers, task.answers(found, rows.X), "2.0").f1
            return float(np.average(f1, weights=rows.weight))

        return validate

    def scores(self, rows: Sequence[Row], network: Network) -> list[Candidates]:
        return self.find(self.encode(rows, network.reader), network, n_best=1)

    def tune(self, rows: Rows, scores: Sequence[Candidates], goal: Goal = F1) -> Self:
        y, contexts = rows.y.answers, contexts_of(rows.X)
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight.astype(np.float64)
        no_answer = np.array([candidates.no_answer for candidates in scores])
        answers = pick_answers(scores, contexts, math.inf)
        answered = score_rows(y, answers, "2.0").f1
        silent = score_rows(y, [""] * len(scores), "2.0").f1
        can_answer = np.array([text != "" for text in answers])
        n_actual = float(weight @ [any(row) for row in self.read_y(y, rows.X).answers])

        def score(threshold: float) -> float:
            if goal.metric is not None:
                return goal.metric(pick_answers(scores, contexts, threshold))
            is_given = no_answer <= threshold
            if goal.has_floor:
                given = weight * (can_answer & is_given)
                return float(goal.value(given @ answered, given.sum(), n_actual))
            return float(np.average(np.where(is_given, answered, silent), weights=weight))

        finite = no_answer[np.isfinite(no_answer)]
        threshold, reached = best_cut(finite, score)
        goal.warn_if_missed({"an answer": (reached, n_actual)})
        return replace(self, null_threshold=threshold)

    def with_decision(self, attribute: str, value: Any) -> Self:
        check_number(self.owner, attribute, value, closed="both")
        return replace(self, null_threshold=float(value))


def contexts_of(rows: Sequence[Row]) -> list[str]:
    """Return the contexts of rows (question, context)."""
    return [context for _, context in rows]


def check_questions(X: Any) -> list[tuple[str, str]]:
    """Return each question with its context, of a table, dicts or pairs; none is empty."""
    if (columns := column_names(X)) is not None:
        for name in _FIELDS:
            if columns.count(name) != 1:
                what = f"{columns.count(name)} times" if name in columns else "not"
                raise ValueError(
                    f"A table X must have the columns 'question' and 'context'; {name!r} is {what} "
                    f"among {columns}."
                )
        rows = list(zip(*(list_items(X[name]) or () for name in _FIELDS)))
    elif is_table(X):
        rows = text_cells(X, 2, "two columns, questions and contexts").tolist()
    else:
        rows = [_read_row(row, i) for i, row in enumerate(check_rows(X, "X", "questions"))]
    for i, row in enumerate(rows):
        for name, text in zip(_FIELDS, row):
            if not isinstance(text, str):
                raise ValueError(
                    f"The {name} of row {i} of X must be a str; it is {describe(text)}."
                )
            if not text.strip():
                raise ValueError(f"The {name} of row {i} of X is empty: {text!r}.")
    return [(str(question), str(context)) for question, context in rows]


def _read_row(row: Any, i: int) -> tuple[Any, Any]:
    if isinstance(row, Mapping):
        missing = [name for name in _FIELDS if name not in row]
        if missing:
            raise ValueError(f"Row {i} of X has no {missing[0]!r}; got the keys {list(row)}.")
        return row["question"], row["context"]
    if not is_pair(row):
        raise ValueError(
            f"Each row of X must be a dict with 'question' and 'context' or a pair (question, "
            f"context); row {i} is {describe(row)}."
        )
    return row[0], row[1]


def align_answers(y: Any, contexts: list[str], on_misaligned: str) -> GoldAnswers:
    """Find the answers, which are SQuAD dicts, str or lists of str, in their contexts.

    An answer without an ``answer_start`` is learned where its words first stand in its context, or
    inside other words if they stand only there. If the context has another text at the
    ``answer_start``, "repair" takes the nearest place that has the answer, one of whole words if
    there is any, "raise" raises an error, and "skip" leaves the answer out.
    """
    rows = check_y(y, len(contexts), "answers (SQuAD dicts or str)")
    first: list[Span | None] = []
    kept, misaligned, inside_words, n_left_out = [], [], [], 0
    repeated: dict[int, int] = {}
    for i, (row, context) in enumerate(zip(rows, contexts)):
        answers = _read_gold(row, i)
        found = [_find(answer, context, i, on_misaligned) for answer in answers]
        pairs = [(answer, span) for answer, span in zip(answers, found) if span is not None]
        learned, span = pairs[0] if pairs else (None, None)
        if answers and span is None and on_misaligned != "skip":
            shown = " or ".join(_shorten(answer.text) for answer in answers[:3])
            raise ValueError(
                f"The answer of row {i} must be in its context; {shown} is nowhere in it. "
                f"on_misaligned='skip' leaves it out."
            )
        if learned is not None and learned.start is None:
            places, are_words = find_word(learned.text, context)
            if not are_words:
                inside_words.append(i)
            elif len(places) > 1:
                repeated[i] = len(places)
        first.append(span)
        if span is not None or not answers:
            kept.append(i)
        for answer, place in zip(answers, found):
            if not answer.is_at_start(context) or span is None:
                misaligned.append(i)
                n_left_out += place is None
    if misaligned:
        warn(
            f"{count_of(len(misaligned), 'answer')} not at the answer_start: "
            f"{len(misaligned) - n_left_out} moved to the nearest place that has their text, "
            f"{n_left_out} left out, {count_of(len(rows) - len(kept), 'question')} without "
            f"another answer with them (on_misaligned={on_misaligned!r}). They are in "
            f"{list_rows(list(dict.fromkeys(misaligned)))}."
        )
    n_places = sum(repeated.values())
    several = f"several places ({n_places} in all) in the context, the first is learned"
    inside = "inside of other words of the context only, and learned there"
    for answered, what in (([*repeated], several), (inside_words, inside)):
        if answered:
            warn(
                f"{count_of(len(answered), 'answer')} without an answer_start: {what}. An "
                f"answer_start says which place is meant ({list_rows(answered)})."
            )
    n_misaligned = len(misaligned) + len(inside_words)
    return GoldAnswers(rows, first, np.array(kept, dtype=np.int64), n_misaligned)


def _find(answer: "_GoldAnswer", context: str, i: int, on_misaligned: str) -> Span | None:
    text, start = answer
    if not answer.is_at_start(context):
        if on_misaligned == "raise":
            raise ValueError(
                f"The answer of row {i}, {_shorten(text)}, must lie at its answer_start="
                f"{start}; the context has {_shorten(context[max(start or 0, 0) :], 30)} "
                f"there. on_misaligned='repair' takes the nearest place that has it, 'skip' "
                f"leaves it out."
            )
        if on_misaligned == "skip":
            return None
    elif start is not None:
        return start, start + len(text)
    places, _ = find_word(text, context)
    # The first of equally near places, and the first one if there is no start.
    nearest = min(places, key=lambda place: abs(place - (start or 0)), default=None)
    return None if nearest is None else (nearest, nearest + len(text))


class _GoldAnswer(NamedTuple):
    text: str
    start: int | None  # None: not known, so that any place is right.

    def is_at_start(self, context: str) -> bool:
        return self.start is None or (self.start >= 0 and context.startswith(self.text, self.start))


def _read_gold(row: Any, i: int) -> list[_GoldAnswer]:
    """Return the answers of a row that are not empty, with their places where they are known."""
    where = f"row {i} of y"
    texts = read_answers(row, where)
    if not isinstance(row, Mapping) or "answer_start" not in row:
        return [_GoldAnswer(text, None) for text in texts if text]
    starts = list_items(row["answer_start"])
    if starts is None:
        starts = [row["answer_start"]]
    if len(starts) != len(texts):
        raise ValueError(
            f"{where} must have one answer_start for each text; got {len(texts)} texts and "
            f"{len(starts)} starts."
        )
    for start in starts:
        if not isinstance(start, numbers.Integral) or isinstance(start, bool):
            raise ValueError(f"Each answer_start of {where} must be an int; got {describe(start)}.")
    return [_GoldAnswer(text, int(start)) for text, start in zip(texts, starts) if text]


def _shorten(text: str, most: int = 60) -> str:
    return repr(text) if len(text) <= most else repr(text[: most - 3]) + "..."
