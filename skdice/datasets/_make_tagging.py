"""Generator of tagged sentences with a chosen imbalance."""

import math
import random
from collections.abc import Iterable, Sequence
from typing import Any

from .._inputs import Span
from .._parameters import check_bool, check_number, check_option
from .._random_state import RandomState, make_rng
from ..metrics import SPELLINGS
from ..text import write_tags
from ._language import ADJECTIVES, PEOPLE, PRONOUNS, THINGS, VERBS, EntityType, make_language

_MAX_ENTITY_LENGTH = 4
_MAX_LISTED = 6
# Share of the nested names of two words or more that have no other name inside.
_PLAIN_SHARE = 0.2
_CONNECTIVES = ("and", "but", "while", "because", "so", ";", "before", "until")
_MODIFIERS = """on Monday | last week | after lunch | every spring | at midnight | by accident
in the morning | near the gate | despite the rain | with great care | before sunrise | this year
during the storm | on the way | for years | without noise""".replace("\n", " | ").split(" | ")
# A word, and of each entity that it begins the number of words and the label.
_Token = tuple[str, tuple[tuple[int, str], ...]]


def make_tagging(
    n_sentences: int = 1000,
    *,
    ratio: float = 10.0,
    n_types: int = 3,
    ambiguity: float = 0.2,
    scheme: str = "IOB2",
    nested: bool = False,
    random_state: RandomState = None,
) -> tuple[list[list[str]], list[list[Any]]]:
    """Generate English-like sentences with tagged entities.

    Entities of one to four words stand in clauses that show their type (``"@ told reporters"``),
    between clauses without entities. Some entity words are ambiguous: they are also names of
    another type, or they modify a common noun and are no entity (``"the Halden nurse told
    reporters"``). The words around them always decide.

    With ``nested=True`` most names of two words and more have another name inside, as in "Kelson
    Holdings", "Holdings of Kelford" or "North Kelford", on up to four levels; the form of the name
    decides what is inside. The best choice of entities without overlap, which is all that chunk
    tags can say, then has an F1 of about 0.78.

    The vocabulary depends on `n_types` and `ambiguity` alone: calls with different `random_state`,
    `n_sentences` or `ratio` give training and test sentences of the same language.

    Parameters
    ----------
    n_sentences : int, default=1000
        Number of sentences.
    ratio : float, default=10.0
        Number of words outside of entities for each word inside one, over all sentences, from 0.5
        to 10,000; met up to a word or two, below 1 within a few percent.
    n_types : int, default=3
        Number of entity types, from 1 to 20: PER, LOC, ORG, EVENT, WORK, PRODUCT, DISEASE, DRUG,
        FOOD, ANIMAL, VESSEL, TYPE12, ..., TYPE20. All are about equally frequent, and all occur as
        soon as there are enough entities.
    ambiguity : float, default=0.2
        Share of each type's vocabulary that also occurs outside of entities (about half of them;
        all with ``n_types=1``) or as another type.
    scheme : {"IOB1", "IOB2", "IOBES", "BIOES", "BMES", "BILOU"}, default="IOB2"
        Tagging scheme. It does not change the sentences, and is not used with ``nested=True``.
    nested : bool, default=False
        Whether entities lie inside others, and y has spans in place of tags.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the sentences. None gives other sentences in each call.

    Returns
    -------
    X : list of list of str
        The words of each sentence, 5 to 40 with the full stop.
    y : list of list of str, or of list of (start, end, label)
        One tag for each word; with ``nested=True`` the entities of each sentence in order, words
        ``start`` to ``end``, ``end`` exclusive.

    Examples
    --------
    >>> from skdice.datasets import make_tagging
    >>> X, y = make_tagging(200, ratio=5, random_state=0)
    >>> tags = [tag for sentence in y for tag in sentence]
    >>> round(tags.count("O") / (len(tags) - tags.count("O")), 1)
    5.0
    >>> X, y = make_tagging(1, ratio=2, nested=True, random_state=4)
    >>> " ".join(X[0])
    'Roads near Korburg , Raldyne Heights and Korock froze in the morning .'
    >>> y[0]
    [(2, 3, 'LOC'), (4, 5, 'ORG'), (4, 6, 'LOC'), (7, 8, 'LOC')]
    """
    check_number("make_tagging", "n_sentences", n_sentences, low=1, integer=True)
    check_number("make_tagging", "ratio", ratio, low=0.5, high=10_000, closed="both")
    check_number("make_tagging", "n_types", n_types, low=1, high=20, closed="both", integer=True)
    check_number("make_tagging", "ambiguity", ambiguity, low=0, high=1, closed="both")
    check_option("make_tagging", "scheme", scheme, SPELLINGS)
    check_bool("make_tagging", "nested", nested)
    rng = make_rng(random_state, "make_tagging")
    writer = _Writer(rng, make_language(n_types, ambiguity), nested)
    weights = (3, 4, 3, 2) if nested else (4, 4, 2, 1)
    if ratio < 2:  # Sentences that are mostly entities need long ones to keep room for a verb.
        weights = (1, 1, 2, 6)
    sentences = []
    n_inside = n_words = 0
    last = n_sentences - 1
    for i in range(n_sentences):
        length = round(rng.triangular(9, 30, 12))
        wanted = min((n_words + length) / (1 + ratio) - n_inside, 0.8 * length)
        # Chance spreads the entities over the sentences; the last tenth makes the ratio exact.
        lengths = _draw_lengths(rng, wanted, weights, i >= 0.9 * n_sentences - 1)
        # The ratio is exact if the last sentence is as long as planned.
        tries = [writer.write_sentence(length, lengths) for _ in range(1 + 20 * (i == last))]
        sentences.append(min(tries, key=lambda sentence: abs(len(sentence) - length)))
        n_inside += sum(lengths)
        n_words += len(sentences[-1])
    rng.shuffle(sentences)
    X = [[word for word, _ in sentence] for sentence in sentences]
    spans: list[list[Span]] = [
        sorted((i, i + n, label) for i, (_, begun) in enumerate(row) for n, label in begun)
        for row in sentences
    ]
    if nested:
        return X, spans
    return X, [write_tags(row, len(words), scheme) for words, row in zip(X, spans)]


def _draw_lengths(
    rng: random.Random, wanted: float, weights: Sequence[int], is_exact: bool
) -> list[int]:
    """Draw the lengths of a sentence's entities, `wanted` words on average."""
    lengths = []
    while wanted > 0:
        (drawn,) = rng.choices(range(1, _MAX_ENTITY_LENGTH + 1), weights)
        if is_exact:
            drawn = min(drawn, round(wanted))
        if drawn == 0 or (not is_exact and rng.random() >= wanted / drawn):
            break
        lengths.append(drawn)
        wanted -= drawn
    return lengths


def _tokens(words: Iterable[str]) -> list[_Token]:
    return [(word, ()) for word in words]


def _entity(tokens: list[_Token], label: str) -> list[_Token]:
    """Make an entity of some tokens, in which others may begin."""
    word, begun = tokens[0]
    return [(word, ((len(tokens), label), *begun)), *tokens[1:]]


class _Writer:
    """Writes sentences with entities of given lengths."""

    def __init__(self, rng: random.Random, types: Sequence[EntityType], nested: bool) -> None:
        self._rng = rng
        self._types = types
        self._write_entity = self._write_nested if nested else self._write_flat
        self._deck: list[int] = []  # the types whose turn comes next
        self._outside_names = {name for kind in types for name in kind.outside_names}
        self._owed: list[str] = []  # ambiguous names that are due outside of an entity

    def write_sentence(self, length: int, lengths: Sequence[int]) -> list[_Token]:
        """Write about `length` words, with a clause or more for the entities."""
        rng = self._rng
        room = length - sum(lengths)
        n_clauses = max(min(room // 7, len(lengths)), math.ceil(len(lengths) / _MAX_LISTED))
        parts = [lengths[i::n_clauses] for i in range(n_clauses)]
        clauses = [self._write_entity_clause(part, room < 6 * n_clauses) for part in parts]
        while sum(len(clause) + 1 for clause in clauses) < max(9, length - 6):
            clauses.append(self._write_plain_clause())
        rng.shuffle(clauses)
        sentence = clauses[0]
        for clause in clauses[1:]:
            sentence += _tokens([rng.choice(_CONNECTIVES)]) + clause
        word, begun = sentence[0]
        return [(word[0].upper() + word[1:], begun), *sentence[1:], (".", ())]

    def _write_entity_clause(self, lengths: Sequence[int], is_short: bool) -> list[_Token]:
        """Write a clause about entities of one type, listed as ``A , B and C``."""
        self._deck = self._deck or self._rng.sample(range(len(self._types)), len(self._types))
        kind = self._deck.pop()
        listed: list[_Token] = []
        for i, length in enumerate(lengths):
            if i > 0:
                listed += _tokens(["and" if i == len(lengths) - 1 else ","])
            entity = self._write_entity(kind, length)
            self._owed += [word for word, _ in entity if word in self._outside_names]
            listed += entity
        clauses = sorted(self._types[kind].clauses, key=lambda clause: clause.count(" "))
        clause = self._rng.choice(clauses[:2] if is_short else clauses)
        return self._fill(clause, listed, is_short)

    def _write_flat(self, kind: int, length: int) -> list[_Token]:
        rng, own = self._rng, self._types[kind]
        first: list[str] = []
        last: list[str] = []
        if length > 1 and own.prefixes and rng.random() < 0.5:
            first = [rng.choice(own.prefixes)]
        if length > 1 + len(first) and own.suffixes and rng.random() < 0.5:
            last = [rng.choice(own.suffixes)]
        names = rng.sample(own.names, length - len(first) - len(last))
        return _entity(_tokens(first + names + last), own.name)

    def _write_nested(self, kind: int, length: int) -> list[_Token]:
        """Write the name of an entity, most longer ones with another name inside.

        "North Kelford" is named after another entity of its type; "Holdings of Kelford" after one
        of the type before it, in a ring; "Kelson Holdings" after one of the type two before it,
        which is never nested itself.
        """
        rng, own = self._rng, self._types[kind]
        forms = []
        if length >= 2 and rng.random() >= _PLAIN_SHARE:
            forms += ["after its type"] if own.prefixes else []
            forms += ["before a head"] if own.suffixes else []
            forms += ["after a head"] if length >= 3 else []
        form = rng.choice(forms) if forms else "plain"
        if form == "before a head":
            other = self._types[(kind - 2) % len(self._types)]
            inner = _entity(_tokens(rng.sample(other.names, length - 1)), other.name)
            tokens = inner + _tokens([rng.choice(own.suffixes)])
        elif form == "after its type":
            tokens = _tokens([rng.choice(own.prefixes)]) + self._write_nested(kind, length - 1)
        elif form == "after a head":
            head = rng.choice(own.prefixes + own.suffixes or own.names)
            tokens = _tokens([head, "of"]) + self._write_nested(kind - 1, length - 2)
        else:
            tokens = _tokens(rng.sample(own.names, length))
        return _entity(tokens, own.name)

    def _write_plain_clause(self) -> list[_Token]:
        """Write a clause without entities, often one that could have had one."""
        rng = self._rng
        if rng.random() < 0.5:
            return self._fill(f"WHO {rng.choice(VERBS)} @", self._write_noun(THINGS))
        kind = rng.choice(self._types)
        return self._fill(rng.choice(kind.clauses), self._write_noun(kind.nouns))

    def _write_noun(self, nouns: Sequence[str]) -> list[_Token]:
        """Write a common noun, with an ambiguous name before it if one is due."""
        rng = self._rng
        words = [rng.choice(("the", "the", "that", "this"))]
        if rng.random() < 0.3:
            words.append(rng.choice(ADJECTIVES))
        if self._owed and rng.random() < 0.7:
            words.append(self._owed.pop(rng.randrange(len(self._owed))))
        return _tokens([*words, rng.choice(nouns)])

    def _fill(self, clause: str, slot: list[_Token], is_short: bool = False) -> list[_Token]:
        """Put words into the places of a clause: pronouns for persons if it has to be short."""
        tokens: list[_Token] = []
        for word in clause.split():
            if word == "@":
                tokens += slot
            elif word == "WHO" and not is_short and self._rng.random() < 0.6:
                tokens += self._write_noun(PEOPLE)
            else:
                tokens += _tokens([self._rng.choice(PRONOUNS) if word == "WHO" else word])
        if not is_short and self._rng.random() < 0.5:
            tokens += _tokens(self._rng.choice(_MODIFIERS).split())
        return tokens
