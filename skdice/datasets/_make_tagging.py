"""Generator of tagged sentences with a chosen imbalance."""

import random
from collections.abc import Sequence
from typing import Any

from .._inputs import Span
from .._parameters import check_bool, check_number
from .._random_state import RandomState, make_rng
from ..text import write_tags
from ._language import ADJECTIVES, PEOPLE, PRONOUNS, EntityType, make_language

_SIZES = (1, 2, 3, 4)
_MOST_LISTED = 6
# Of the names of two words or more, those that may have another name inside.
_NESTED_SHARE = 0.8
_CONNECTIVES = ("and", "but", "while", "because", "so", ";", "before", "until")
_MODIFIERS = (
    "on Monday", "last week", "after lunch", "every spring", "at midnight", "by accident",
    "in the morning", "near the gate", "despite the rain", "with great care", "before sunrise",
)  # fmt: skip
# Words, and the entities in them.
_Part = tuple[list[str], list[Span]]


def make_tagging(
    n_sentences: int = 1000,
    *,
    ratio: float = 10.0,
    n_types: int = 3,
    ambiguity: float = 0.2,
    nested: bool = False,
    random_state: RandomState = None,
) -> tuple[list[list[str]], list[list[Any]]]:
    """Generate English-like sentences with tagged entities.

    Entities of one to four words stand in clauses that show their type (``"@ told reporters"``),
    beside clauses without entities. Some words of entities are ambiguous: they are also names of
    another type, or modify a common noun (``"the Halden nurse told reporters"``). The words around
    them always decide. The vocabulary depends on `n_types` and `ambiguity` alone, so that calls
    with other seeds give training and test sentences of one language.

    Parameters
    ----------
    n_sentences : int, default=1000
    ratio : float, default=10.0
        Number of words outside of entities for each word inside one, over all sentences, from 0.5
        to 10,000, met up to a few words.
    n_types : int, default=3
        Number of entity types, from 1 to 11: PER, LOC, ORG, EVENT, WORK, ... They are about equally
        frequent.
    ambiguity : float, default=0.2
        Share of the names of a type that also occur outside of entities, or as another type.
    nested : bool, default=False
        Whether longer names have another name inside, as in "North Kelford" or "Holdings of
        Kelford", and y has spans in place of tags.
    random_state : int, RandomState, Generator or None, default=None

    Returns
    -------
    X : list of list of str
        The words of each sentence.
    y : list of list of str, or of list of (start, end, label)
        One tag in IOB2 for each word; with ``nested=True`` the entities of each sentence in order.

    Examples
    --------
    >>> from skdice.datasets import make_tagging
    >>> X, y = make_tagging(200, ratio=5, random_state=0)
    >>> tags = [tag for sentence in y for tag in sentence]
    >>> round(tags.count("O") / (len(tags) - tags.count("O")), 1)
    5.0
    """
    check_number("make_tagging", "n_sentences", n_sentences, low=1, integer=True)
    check_number("make_tagging", "ratio", ratio, low=0.5, high=10_000, closed="both")
    check_number("make_tagging", "n_types", n_types, low=1, high=11, closed="both", integer=True)
    check_number("make_tagging", "ambiguity", ambiguity, low=0, high=1, closed="both")
    check_bool("make_tagging", "nested", nested)
    rng = make_rng(random_state, "make_tagging")
    types = make_language(n_types, ambiguity)
    # Where sentences are mostly entities, long ones keep room for a verb.
    weights = (1, 1, 2, 6) if ratio < 2 else (4, 4, 2, 1)
    rows: list[_Part] = []
    turns: list[int] = []
    n_words = n_inside = 0
    (size,) = rng.choices(_SIZES, weights)
    for _ in range(n_sentences):
        length = round(rng.triangular(7, 24, 8))
        sentence: _Part = ([], [])
        while len(sentence[0]) < length:
            turns = turns or rng.sample(range(n_types), n_types)
            names: list[_Part] = []
            # As many as are due if the clause has seven words besides.
            while (n_words + 7) / (1 + ratio) >= n_inside + size / 2 and len(names) < _MOST_LISTED:
                names.append(_write_name(rng, types, turns[-1], size, nested))
                n_words, n_inside = n_words + size, n_inside + size
                (size,) = rng.choices(_SIZES, weights)
            clause = _write_clause(rng, types, types[turns[-1]], names, is_short=ratio < 2)
            if names:
                turns.pop()
            n_words += len(clause[0]) + 1 - sum(len(words) for words, _ in names)
            connective = [rng.choice(_CONNECTIVES)] if sentence[0] else []
            sentence = _join(sentence, (connective, []), clause)
        (first, *others), spans = sentence
        rows.append(([first[0].upper() + first[1:], *others, "."], sorted(spans)))
    rng.shuffle(rows)
    X = [words for words, _ in rows]
    if nested:
        return X, [spans for _, spans in rows]
    return X, [write_tags(spans, len(words), "IOB2") for words, spans in rows]


def _join(*parts: _Part) -> _Part:
    words: list[str] = []
    spans: list[Span] = []
    for part_words, part_spans in parts:
        spans += [(len(words) + a, len(words) + b, label) for a, b, label in part_spans]
        words += part_words
    return words, spans


def _write_name(
    rng: random.Random, types: Sequence[EntityType], kind: int, size: int, nested: bool
) -> _Part:
    """Write the name of an entity, with first and last words of its type or another name inside.

    "North Kelford" is named after another entity of its type; "Holdings of Kelford" after one of
    the type before it, in a ring; "Kelson Holdings" after one of the type two before it.
    """
    own, other = types[kind], types[(kind - 2) % len(types)]
    forms = ["plain"]
    if nested and size > 1 and rng.random() < _NESTED_SHARE:
        forms = ["after its type"] * bool(own.prefixes) + ["before a head"] * bool(own.suffixes)
        forms = [*forms, *["after a head"] * (size > 2)] or ["plain"]
    form = rng.choice(forms)
    name: _Part
    if form == "after its type":
        inside = _write_name(rng, types, kind, size - 1, nested)
        name = _join(([rng.choice(own.prefixes)], []), inside)
    elif form == "before a head":
        inner = rng.sample(other.names, size - 1)
        name = [*inner, rng.choice(own.suffixes)], [(0, size - 1, other.name)]
    elif form == "after a head":
        head = rng.choice(own.prefixes + own.suffixes or own.names)
        name = _join(
            ([head, "of"], []), _write_name(rng, types, (kind - 1) % len(types), size - 2, nested)
        )
    else:
        ends = [rng.choice(part) if part and rng.random() < 0.5 else "" for part in own[4:6]]
        first, last = ends if size > 2 and not nested else ("", "")
        names = rng.sample(own.names, size - bool(first) - bool(last))
        name = [word for word in (first, *names, last) if word], []
    return name[0], [(0, size, own.name), *name[1]]


def _write_clause(
    rng: random.Random,
    types: Sequence[EntityType],
    kind: EntityType,
    names: Sequence[_Part],
    is_short: bool,
) -> _Part:
    """Write a clause about names of a type as ``A , B and C``, or about a common noun."""
    kind = kind if names else rng.choice(types)
    listed = names[0] if names else _write_noun(rng, types, kind.nouns)
    for i, name in enumerate(names[1:], start=2):
        listed = _join(listed, (["and" if i == len(names) else ","], []), name)
    clauses = sorted(kind.clauses, key=lambda clause: clause.count(" "))
    clause: _Part = ([], [])
    for word in rng.choice(clauses[:2] if is_short and names else clauses).split():
        if word == "WHO":
            is_pronoun = is_short or rng.random() < 0.4
            part = ([rng.choice(PRONOUNS)], []) if is_pronoun else _write_noun(rng, types, PEOPLE)
        else:
            part = listed if word == "@" else ([word], [])
        clause = _join(clause, part)
    modifier = rng.choice(_MODIFIERS).split() if not is_short and rng.random() < 0.5 else []
    return _join(clause, (modifier, []))


def _write_noun(rng: random.Random, types: Sequence[EntityType], nouns: Sequence[str]) -> _Part:
    """Write a common noun, sometimes with an ambiguous name before it."""
    words = [rng.choice(("the", "the", "that", "this"))]
    outside = sorted(rng.choice(types).outside_names)
    if outside and rng.random() < 0.4:
        words.append(rng.choice(outside))
    elif rng.random() < 0.3:
        words.append(rng.choice(ADJECTIVES))
    return [*words, rng.choice(nouns)], []
