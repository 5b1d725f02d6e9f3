"""Entities as y: tags, or rows of (start, end, label)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from .._inputs import Span, check_span, check_tags, check_y, list_items, list_spans
from ..metrics import get_entities
from ..text._tags import are_chunk_tags, infer_scheme
from ._rows import take

# Letters that only one spelling of IOBES has, and how that spelling writes I, E and S.
_SPELLINGS = {"M": {"I": "M"}, "L": {"E": "L", "S": "U"}, "U": {"E": "L", "S": "U"}}


@dataclass(frozen=True)
class EntityRows:
    """The entities of sentences."""

    spans: list[list[Span]]  # words, ``end`` exclusive; each span once
    scheme: str | None  # of the tags ("IOB1", "IOB2", "IOBES"), None if y was rows of spans
    roles: dict[str, str]  # how the tags spell I, E and S, where they do it differently

    def take(self, index: np.ndarray) -> "EntityRows":
        return replace(self, spans=take(self.spans, index))


def check_entities(y: Any, sentences: Sequence[Sequence[str]]) -> EntityRows:
    """Return the entities of chunk tags, or of rows of (start, end, label), scored or not."""
    rows = check_y(y, len(sentences), "lists of tags or of (start, end, label)")
    if _are_tags(rows, sentences):
        return _read_tags(check_tags(rows, sentences))
    return _check_spans(rows, sentences)


def _are_tags(rows: list[Any], sentences: Sequence[Sequence[str]]) -> bool:
    """Whether y is meant to be tags: most rows are, so that an error names those that are not."""
    filled = [row for row in rows if _has_strings(row) or list_items(row)]
    if not filled:
        return not any(map(len, sentences))
    return 2 * sum(map(_has_strings, filled)) >= len(filled)


def _read_tags(tags: list[list[str]]) -> EntityRows:
    distinct = {tag for row in tags for tag in row}
    if distinct - {"O"} and not are_chunk_tags(sorted(distinct)):
        stray = {tag for tag in distinct if tag != "O" and not are_chunk_tags([tag])}
        i, tag = next((i, tag) for i, row in enumerate(tags) for tag in row if tag in stray)
        raise ValueError(
            f"Tags must be 'O' or a chunk tag ('B-x', 'I-x', ...), or rows of (start, end, label); "
            f"row {i} of y has the tag {tag!r}. For other tags there is DiceTokenTagger."
        )
    spans = [[(start, end, label) for start, end, label in get_entities(row)] for row in tags]
    spelled = {tag[0] for tag in distinct}
    roles: dict[str, str] = {}
    for letter in sorted(spelled & set(_SPELLINGS)):
        roles |= _SPELLINGS[letter]
    return EntityRows(spans, infer_scheme(tags), roles)


def _check_spans(rows: list[Any], sentences: Sequence[Sequence[str]]) -> EntityRows:
    spans = [
        list(
            dict.fromkeys(
                check_span(span, "y", f"row {i}", len(sentence)) for span in list_spans(row, "y", i)
            )
        )
        for i, (row, sentence) in enumerate(zip(rows, sentences))
    ]
    return EntityRows(spans, None, {})


def find_overlap(spans: Sequence[Span]) -> tuple[Span, Span] | None:
    """Return the first two spans of a sentence that share a word."""
    ordered = sorted(spans)
    for before, after in pairwise(ordered):
        if after[0] < before[1]:
            return before, after
    return None


def span_f1_score(y_true: Sequence[Sequence[Any]], y_pred: Sequence[Sequence[Any]]) -> float:
    """Return the micro F1 of spans, which may overlap; 0 if there is none in both."""
    found = [{span[:3] for span in row} for row in y_pred]
    n_both = sum(len(pred.intersection(true)) for true, pred in zip(y_true, found))
    n_all = sum(map(len, y_true)) + sum(map(len, y_pred))
    return 2 * n_both / n_all if n_all else 0.0


def _has_strings(row: Any) -> bool:
    return isinstance(row, str) or any(isinstance(item, str) for item in list_items(row) or ())
