"""Gold and predicted entities as users pass them: rows of tags or of spans."""

import math
import numbers
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from .._inputs import check_rows, check_span, check_token_lists, describe, list_items
from .._typing import Spans, TagSequences, TokenLists
from ..metrics import EntitySpan, get_entities
from ..metrics._validation import check_tags

EntityRows: TypeAlias = TagSequences | Spans

_ROWS = "lists of tags or of (start, end, label)"
_SCORED_ROWS = "lists of Entity(start, end, label, score)"


class EntityTagger(Protocol):
    """What finds entities with scores."""

    def predict_spans(self, X: TokenLists) -> Any:
        """Return the entities of each sentence."""


class EntityRow(NamedTuple):
    """The entities of a sentence.

    Attributes
    ----------
    spans : list of EntitySpan
        Each once.
    n_words : int or None
        Words of the sentence; None if its entities were given as spans.
    """

    spans: list[EntitySpan]
    n_words: int | None


def read_entities(
    rows: Any, name: str, n_words: Sequence[int | None] | None = None
) -> list[EntityRow]:
    """Read rows of tags or of (start, end, label); a score after them is not looked at.

    Parameters
    ----------
    rows : object
    name : str
        Of the argument, for errors.
    n_words : sequence of n_sentences (int or None), optional
        Words of each sentence, None where that is not known.

    Raises
    ------
    TypeError, ValueError
        If a row is neither, or does not fit its sentence; the message names it.
    """
    return [
        _read_row(items, name, where, n) for items, where, n in _walk(rows, name, n_words, _ROWS)
    ]


def read_scored_entities(
    rows: Any, name: str, n_words: Sequence[int | None]
) -> list[dict[EntitySpan, float]]:
    """Read what ``predict_spans`` gives; of equal entities the highest score counts.

    Parameters and errors are those of `read_entities`; it is also an error if a score is missing or
    no finite number.
    """
    scored = []
    for items, where, n in _walk(rows, name, n_words, _SCORED_ROWS):
        best: dict[EntitySpan, float] = {}
        for entity in items:
            span = EntitySpan(*check_span(entity, name, where, n))
            best[span] = max(_check_score(entity, where), best.get(span, -math.inf))
        scored.append(best)
    return scored


def find_entities(estimator: EntityTagger, X: TokenLists, y: EntityRows) -> Any:
    """Return what ``predict_spans`` gives, after a check that y has the sentences of X."""
    if isinstance(estimator, type) or not hasattr(estimator, "predict_spans"):
        raise TypeError(
            f"estimator must be a fitted estimator with the method predict_spans; got "
            f"{estimator!r}."
        )
    read_entities(y, "y", [len(words) for words in check_token_lists(X)])
    return estimator.predict_spans(X)


def _walk(
    rows: Any, name: str, n_words: Sequence[int | None] | None, what: str
) -> Iterator[tuple[list[Any], str, int | None]]:
    """Yield what each row holds, what errors call it, and its number of words."""
    listed = check_rows(rows, name, what)
    sizes = [None] * len(listed) if n_words is None else n_words
    if len(listed) != len(sizes):
        raise ValueError(
            f"{name} must have one row for each sentence; got {len(listed)} rows for "
            f"{len(sizes)} sentences."
        )
    for i, (row, size) in enumerate(zip(listed, sizes)):
        where = f"row {i} of {name}"
        items = list_items(row)
        if items is None:
            raise TypeError(f"{name} must have {what}; {where} is {describe(row)}.")
        yield items, where, size


def _read_row(items: list[Any], name: str, where: str, n_words: int | None) -> EntityRow:
    if not any(isinstance(item, str) for item in items):
        spans = [EntitySpan(*check_span(item, name, where, n_words)) for item in items]
        return EntityRow(list(dict.fromkeys(spans)), None)
    tags = check_tags(items, where)
    if n_words is not None and len(tags) != n_words:
        raise ValueError(f"Every word needs one tag; {where} has {len(tags)} for {n_words} words.")
    return EntityRow(get_entities(tags), len(tags))


def _check_score(entity: Any, where: str) -> float:
    score = entity[3] if len(entity) == 4 else None
    if not isinstance(score, numbers.Real) or not math.isfinite(score):
        raise ValueError(
            f"Each entity must have a finite score, as in (start, end, label, score) of "
            f"predict_spans; {where} has {entity!r}."
        )
    return float(score)
