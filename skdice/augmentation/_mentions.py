"""Mentions of entities in texts and pairs."""

from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral
from typing import Protocol, TypeAlias

from .._inputs import check_rows, describe
from ..text._entities import Entity
from ._rows import Rows, Texts, read_rows

# (start, end, label) of the mentions of one text, ascending.
Spans: TypeAlias = list[tuple[int, int, str]]
# What the user gives: of one text, of a row, and of all rows.
_OfText: TypeAlias = Sequence[Entity | tuple[int, int, str]]
RowMentions: TypeAlias = _OfText | tuple[_OfText, ...]
Mentions: TypeAlias = Sequence[RowMentions]


class EntityFinder(Protocol):
    """Such as a fitted tagger."""

    def predict_entities(self, texts: list[str]) -> Sequence[Sequence[Entity]]:
        """Return the entities of each text, in their order."""


def find_mentions(tagger: EntityFinder, X: Rows) -> list[list[Entity] | tuple[list[Entity], ...]]:
    """Find the entity mentions of texts or pairs with a tagger.

    Parameters
    ----------
    tagger : object with a method ``predict_entities``
        Such as a fitted :class:`skdice.DiceTokenTagger`. The method gets a list of str, the
        distinct texts of `X`, in one call, and gives a list of ``Entity`` for each.
    X : list, tuple, Series or array of str or of 2-tuples, (n, 2) array or two-column DataFrame

    Returns
    -------
    list
        For each row a list of ``Entity`` with character offsets; for a pair a tuple of two such
        lists.

    Raises
    ------
    TypeError
        If `tagger` has no ``predict_entities``, or X is of another kind.
    ValueError
        If a row is neither a str nor a 2-tuple of str, or the tagger gives another number of
        results than texts.

    Examples
    --------
    >>> from skdice.augmentation import find_mentions
    >>> from skdice.text._entities import Entity
    >>> class CityTagger:
    ...     def predict_entities(self, texts):
    ...         return [[Entity(0, 4, "LOC", 1.0)] if t[:4] == "Oslo" else [] for t in texts]
    >>> find_mentions(CityTagger(), [("Oslo is wet", "It rains")])
    [([Entity(start=0, end=4, label='LOC', score=1.0)], [])]
    """
    if not callable(getattr(tagger, "predict_entities", None)):
        raise TypeError(
            f"tagger must have a method predict_entities(texts); got {describe(tagger)}."
        )
    rows = read_rows(X)
    distinct = list(dict.fromkeys(text for texts in rows for text in texts))
    results = list(tagger.predict_entities(distinct)) if distinct else []
    if len(results) != len(distinct):
        raise ValueError(
            f"tagger.predict_entities must give one list of entities for each text; it got "
            f"{len(distinct)} texts and gave {len(results)} lists."
        )
    found: dict[str, Sequence[Entity]] = dict(zip(distinct, results))
    return [
        list(found[texts[0]]) if len(texts) == 1 else tuple(list(found[text]) for text in texts)
        for texts in rows
    ]


def check_all_mentions(rows: Sequence[Texts], mentions: Mentions | None) -> list[tuple[Spans, ...]]:
    """Return the spans of every row, as `check_mentions` does."""
    listed = check_rows(mentions, "mentions", "the mentions of each row of X, as of find_mentions")
    if len(listed) != len(rows):
        raise ValueError(
            f"mentions must have one entry for each row of X; got {len(listed)} for {len(rows)} "
            "rows."
        )
    return [
        check_mentions(texts, row_mentions, f"row {i}")
        for i, (texts, row_mentions) in enumerate(zip(rows, listed))
    ]


def check_mentions(texts: Texts, mentions: RowMentions, where: str) -> tuple[Spans, ...]:
    """Return the spans of each text of a row, sorted by their start.

    Parameters
    ----------
    texts : tuple of str
        The text of the row, or the two of a pair.
    mentions : list of Entity, for a pair a tuple of two such lists
        Each mention starts with start, end and label; what follows is not used.
    where : str
        What errors call the row.

    Raises
    ------
    ValueError
        If there is not one list for each text, or a mention is malformed, lies outside of its text
        or overlaps another one.
    """
    lists = [mentions] if len(texts) == 1 else mentions
    is_listed = isinstance(lists, list | tuple) and len(lists) == len(texts)
    if not is_listed or not all(isinstance(found, list | tuple) for found in lists):
        wanted = "a list of entities" if len(texts) == 1 else "two lists of entities"
        raise ValueError(f"The mentions of {where} must be {wanted}; got {describe(mentions)}.")
    return tuple(_check_spans(text, found, where) for text, found in zip(texts, lists))


def _check_spans(text: str, mentions: Sequence[object], where: str) -> Spans:
    spans = [_check_span(text, mention, where) for mention in mentions]
    spans.sort()
    for before, span in pairwise(spans):
        if span[0] < before[1]:
            raise ValueError(
                f"The mentions of {where} must not overlap; got {before} and {span} in {text!r}."
            )
    return spans


def _check_span(text: str, mention: object, where: str) -> tuple[int, int, str]:
    if isinstance(mention, list | tuple) and len(mention) >= 3:
        start, end, label = mention[:3]
        are_ints = isinstance(start, Integral) and isinstance(end, Integral)
        if are_ints and isinstance(label, str) and 0 <= start < end <= len(text):
            return int(start), int(end), label
    raise ValueError(
        f"A mention must be (start, end, label, ...) with 0 <= start < end <= {len(text)}, the "
        f"length of its text; {where} has {describe(mention)}."
    )
