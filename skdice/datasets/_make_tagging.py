"""Generator of tagged sentences with a chosen imbalance."""

import random
from collections.abc import Sequence
from typing import Any

from .._inputs import Span
from .._parameters import RandomState, check_number, check_option, make_rng
from ..text import write_tags
from ._language import PEOPLE, PRONOUNS, EntityType, make_language

# The numbers of words that a name may have, and how often each number occurs.
_SIZES, _WEIGHTS = (1, 2, 3, 4), (4, 4, 2, 1)
_MOST_LISTED = 6
# If names are nested, this share of the names of two words or more have another name inside.
_NESTED_SHARE = 0.8
_CONNECTIVES = ("and", "but", "while", "because", "so", ";", "before", "until")
_MODIFIERS = ("on Monday", "last week", "after lunch", "every spring", "at midnight")
# Words, and the entities in them.
_Part = tuple[list[str], list[Span]]


def make_tagging(
    n_sentences: int = 1000,
    *,
    ratio: float = 10.0,
    ambiguity: float = 0.2,
    nested: bool = False,
    random_state: RandomState = None,
) -> tuple[list[list[str]], list[list[Any]]]:
    """Generate English-like sentences with tagged entities.

    Entities of one to four words stand in clauses that show their type (``"@ told reporters"``),
    beside clauses without entities. Some names are ambiguous: they also modify a common noun
    (``"the Halson nurse told reporters"``). The words around them always decide. The three types,
    PER, LOC and ORG, are about equally frequent. The vocabulary depends on `ambiguity` alone, so
    that calls with other seeds give training and test sentences of one language.

    Parameters
    ----------
    n_sentences : int, default=1000
    ratio : float, default=10.0
        Number of words outside of entities for each word inside one, over all sentences, from 2 to
        10,000, met up to a few words.
    ambiguity : float, default=0.2
        Share of the names that also occur outside of entities.
    nested : bool, default=False
        Whether most longer names have another name inside, as "North Kelford" and "Kelford
        Holdings" have the place "Kelford", and y has spans in place of tags.
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
    check_number("make_tagging", "ratio", ratio, low=2, high=10_000, closed="both")
    check_number("make_tagging", "ambiguity", ambiguity, low=0, high=1, closed="both")
    check_option("make_tagging", "nested", nested, (True, False))
    rng = make_rng(random_state, "make_tagging")
    types = make_language(ambiguity)
    X: list[list[str]] = []
    y: list[list[Any]] = []
    n_words = n_inside = 0
    (size,) = rng.choices(_SIZES, _WEIGHTS)
    for _ in range(n_sentences):
        words: list[str] = []
        spans: list[Span] = []
        length = round(rng.triangular(7, 24, 8))
        while len(words) < length:
            kind = rng.randrange(len(types))
            names: list[_Part] = []
            # A clause has about seven words besides its names.
            while (n_words + 7) / (1 + ratio) >= n_inside + size / 2 and len(names) < _MOST_LISTED:
                names.append(_write_name(rng, types[kind], types[kind - 1], size, nested))
                n_words, n_inside = n_words + size, n_inside + size
                (size,) = rng.choices(_SIZES, _WEIGHTS)
            clause = _write_clause(rng, types, types[kind], names)
            parts = [([rng.choice(_CONNECTIVES)], []), *clause] if words else clause
            for part, inside in parts:
                spans += [(len(words) + a, len(words) + b, label) for a, b, label in inside]
                words += part
                n_words += 0 if inside else len(part)
        X.append([words[0][0].upper() + words[0][1:], *words[1:], "."])
        y.append(sorted(spans) if nested else write_tags(spans, len(X[-1]), "IOB2"))
        n_words += 1
    order = rng.sample(range(n_sentences), n_sentences)
    return [X[i] for i in order], [y[i] for i in order]


def _write_name(
    rng: random.Random, kind: EntityType, other: EntityType, size: int, nested: bool
) -> _Part:
    """Write the name of an entity, with a first or last word of its type if it is long.

    A nested name is named after another one, of its type if the first word is that of the type, or
    of another type if the last one is.
    """
    names = rng.sample(kind.names, size)
    inside: list[Span] = []
    if nested and size > 1 and rng.random() < _NESTED_SHARE:
        if rng.random() < 0.5:
            names[0] = rng.choice(kind.first)
            inside = [(1, size, kind.name)]
        else:
            names = [*rng.sample(other.names, size - 1), rng.choice(kind.last)]
            inside = [(0, size - 1, other.name)]
    elif not nested and size > 2:
        for place, words in ((0, kind.first), (-1, kind.last)):
            names[place] = rng.choice(words) if rng.random() < 0.5 else names[place]
    return names, [(0, size, kind.name), *inside]


def _write_clause(
    rng: random.Random, types: Sequence[EntityType], kind: EntityType, names: Sequence[_Part]
) -> list[_Part]:
    """Write a clause about names of a type as ``A , B and C``, or about a common noun."""
    parts: list[_Part] = []
    for word in rng.choice(kind.clauses).split():
        if word == "@" and names:
            for i, name in enumerate(names, start=1):
                if i > 1:
                    parts.append((["and" if i == len(names) else ","], []))
                parts.append(name)
        elif word == "@" or (word == "WHO" and rng.random() < 0.6):
            parts.append((_write_noun(rng, types, kind.nouns if word == "@" else PEOPLE), []))
        else:
            parts.append(([rng.choice(PRONOUNS) if word == "WHO" else word], []))
    modifier = rng.choice(_MODIFIERS).split() if rng.random() < 0.5 else []
    return [*parts, (modifier, [])]


def _write_noun(rng: random.Random, types: Sequence[EntityType], nouns: Sequence[str]) -> list[str]:
    """Write a common noun, sometimes with an ambiguous name before it."""
    words = [rng.choice(("the", "the", "that", "this"))]
    ambiguous = rng.choice(types).ambiguous
    if ambiguous and rng.random() < 0.5:
        words.append(rng.choice(ambiguous))
    return [*words, rng.choice(nouns)]
