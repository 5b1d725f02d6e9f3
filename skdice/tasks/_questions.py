"""Checks of questions, contexts and answers."""

import numbers
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

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
)
from ..metrics import read_answers
from ..text import Span, find_word
from ._rows import take

_FIELDS = ("question", "context")


def check_questions(X: Any) -> tuple[list[str], list[str]]:
    """Return the questions and the contexts of a table, dicts or pairs, none of them empty."""
    if is_table(X):
        rows = _table_rows(X)
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
    return [str(question) for question, _ in rows], [str(context) for _, context in rows]


def _table_rows(X: Any) -> list[tuple[Any, Any]]:
    columns = column_names(X)
    if columns is not None:
        for name in _FIELDS:
            if columns.count(name) != 1:
                what = f"{columns.count(name)} times" if name in columns else "not"
                raise ValueError(
                    f"A table X must have the columns 'question' and 'context'; {name!r} is {what} "
                    f"among {columns}."
                )
        return list(zip(*(list_items(X[name]) or () for name in _FIELDS)))
    if sparse.issparse(X):
        raise TypeError(f"A table X must be of texts; got {describe(X)}, which holds numbers.")
    if X.shape[1] != 2:
        raise ValueError(
            f"An array X must have two columns, questions and contexts; got {X.shape[1]}."
        )
    return [tuple(row) for row in np.asarray(X).tolist()]


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


@dataclass(frozen=True)
class GoldAnswers:
    """The answers to questions, and where they lie in their contexts."""

    answers: list[Any]  # as given
    # Characters of the first answer of each question that is not left out, None if it has none.
    spans: list[Span | None]
    # The questions to learn from: all but those of which every answer was left out.
    kept: np.ndarray
    n_misaligned: int  # answers that did not lie where they should

    def take(self, index: np.ndarray) -> "GoldAnswers":
        """Return the answers to some questions, all of which are learned from."""
        answers, spans = take(self.answers, index), take(self.spans, index)
        return GoldAnswers(answers, spans, np.arange(len(index)), self.n_misaligned)


def align_answers(y: Any, contexts: list[str], on_misaligned: str) -> GoldAnswers:
    """Find the answers, which are SQuAD dicts, str or lists of str, in their contexts.

    An answer without an ``answer_start`` is learned where it first stands as words of its context,
    or inside of others if it does so only there. Where the context has another text at an
    ``answer_start``, "repair" takes the nearest such place, "raise" raises, and "skip" leaves the
    answer out.
    """
    rows = check_y(y, len(contexts), "answers (SQuAD dicts or str)")
    first: list[Span | None] = []
    kept, misaligned, n_left_out = [], [], 0
    repeated: dict[int, int] = {}
    inside_words: list[int] = []
    for i, (row, context) in enumerate(zip(rows, contexts)):
        answers = _read_gold(row, i)
        found = [_find(answer, context, i, on_misaligned) for answer in answers]
        spans = [span for span in found if span is not None]
        if answers and not spans and on_misaligned != "skip":
            shown = " or ".join(_shorten(answer.text) for answer in answers[:3])
            raise ValueError(
                f"The answer of row {i} must be in its context; {shown} is nowhere in it. "
                f"on_misaligned='skip' leaves it out."
            )
        learned = next((a for a, span in zip(answers, found) if span is not None), None)
        if learned is not None and learned.start is None:
            places, are_words = find_word(learned.text, context)
            if not are_words:
                inside_words.append(i)
            elif len(places) > 1:
                repeated[i] = len(places)
        first.append(spans[0] if spans else None)
        if spans or not answers:
            kept.append(i)
        for answer, span in zip(answers, found):
            if not answer.is_at_start(context) or not spans:
                misaligned.append(i)
                n_left_out += span is None
    if misaligned:
        warnings.warn(
            f"{count_of(len(misaligned), 'answer')} not at the answer_start: "
            f"{len(misaligned) - n_left_out} moved to the nearest place that has their text, "
            f"{n_left_out} left out, {count_of(len(rows) - len(kept), 'question')} without "
            f"another answer with them (on_misaligned={on_misaligned!r}). They are in "
            f"{list_rows(list(dict.fromkeys(misaligned)))}.",
            stacklevel=4,
        )
    for answered, what in (
        (
            [*repeated],
            f"several places ({sum(repeated.values())} in all) in the context, "
            "the first is learned",
        ),
        (inside_words, "inside of other words of the context only, and learned there"),
    ):
        if answered:
            warnings.warn(
                f"{count_of(len(answered), 'answer')} without an answer_start: {what}. An "
                f"answer_start says which place is meant ({list_rows(answered)}).",
                stacklevel=4,
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
    # Of equally near places, and without a start, the first one.
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
