"""Generator of tagged sentences with a chosen imbalance."""

import math
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from .._parameters import check_bool, check_number, check_option
from .._random_state import RandomState, make_rng
from ._tagging_language import (
    ADJECTIVES,
    CONNECTIVES,
    MODIFIERS,
    PEOPLE,
    PRONOUNS,
    THINGS,
    VERBS,
    EntityType,
    make_language,
)

# How the schemes write B, I, E and S. Entities never touch each other, so IOB1 has no use for B.
_PREFIXES = {
    "IOB1": "IIII", "IOB2": "BIIB", "IOBES": "BIES",
    "BIOES": "BIES", "BMES": "BMES", "BILOU": "BILU",
}  # fmt: skip
_MAX_ENTITY_LENGTH = 4
_MAX_LISTED = 6
# How many longer nested names are plain ones, without another name inside.
_PLAIN_SHARE = 0.2


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

    Entities of one to four words stand in clauses that show their type (``"@ told reporters"``,
    ``"the mayor of @ spoke"``), between clauses without entities. A part of the entity words is
    ambiguous: they are also names of another type, or they modify a common noun and are no entity
    at all (``"the Halden nurse told reporters"``). The words around them always decide.

    With ``nested=True`` most names of two words and more have another name inside, as in "Kelson
    Holdings" (an organisation named after a person), "Holdings of Kelford" or "North Kelford", on
    up to four levels; the form of the name decides what is inside. The best choice of entities
    without overlap, which is all that chunk tags can say, then has an F1 of about 0.78.

    The vocabulary depends on `n_types` and `ambiguity` alone: calls with different `random_state`,
    `n_sentences` or `ratio` give training and test sentences of the same language.

    Parameters
    ----------
    n_sentences : int, default=1000
        Number of sentences.
    ratio : float, default=10.0
        Number of words outside of entities (tag ``"O"``) for each word inside one, over all
        sentences, from 0.5 to 10,000; met up to a word or two, below 1 within a few percent.
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
        The tags of each sentence, one for each word; with ``nested=True`` its entities in order,
        words ``start`` to ``end``, ``end`` exclusive.

    Raises
    ------
    ValueError
        If a parameter is invalid.

    Examples
    --------
    >>> from skdice.datasets import make_tagging
    >>> X, y = make_tagging(200, ratio=5, random_state=0)
    >>> tags = [tag for sentence in y for tag in sentence]
    >>> round(tags.count("O") / (len(tags) - tags.count("O")), 1)
    5.0
    >>> X, y = make_tagging(1, ratio=2, nested=True, random_state=1)
    >>> " ".join(X[0])
    'This teacher sued Nelley Gorwell Group this year .'
    >>> y[0]
    [(3, 5, 'PER'), (3, 6, 'ORG')]
    """
    check_number("make_tagging", "n_sentences", n_sentences, low=1, integer=True)
    check_number("make_tagging", "ratio", ratio, low=0.5, high=10_000, closed="both")
    check_number("make_tagging", "n_types", n_types, low=1, high=20, closed="both", integer=True)
    check_number("make_tagging", "ambiguity", ambiguity, low=0, high=1, closed="both")
    check_option("make_tagging", "scheme", scheme, _PREFIXES)
    check_bool("make_tagging", "nested", nested)
    rng = make_rng(random_state, "make_tagging")
    writer = _Writer(rng, make_language(n_types, ambiguity), nested)
    sentences: list[_Sentence] = []
    n_inside = n_outside = 0
    for i in range(n_sentences):
        length = round(rng.triangular(5, 30, 12))
        wanted = (n_inside + n_outside + length) / (1 + ratio) - n_inside
        # Chance spreads the entities over the sentences; the last tenth settles the account.
        is_exact = i >= 0.9 * n_sentences - 1
        entity_lengths = _draw_entity_lengths(rng, wanted, length, ratio, is_exact, nested)
        sentence = writer.write_sentence(length, entity_lengths)
        sentences.append(sentence)
        n_inside += sum(len(chunk.words) for chunk in sentence if chunk.spans)
        n_outside += sum(len(chunk.words) for chunk in sentence if not chunk.spans)
    rng.shuffle(sentences)
    X = [[word for chunk in sentence for word in chunk.words] for sentence in sentences]
    if nested:
        return X, [_list_spans(sentence) for sentence in sentences]
    return X, [
        [tag for chunk in sentence for tag in _make_tags(chunk, scheme)] for sentence in sentences
    ]


def _draw_entity_lengths(
    rng: random.Random, wanted: float, length: int, ratio: float, is_exact: bool, nested: bool
) -> list[int]:
    """Draw the lengths of a sentence's entities, `wanted` words on average."""
    weights = (3, 4, 3, 2) if nested else (4, 4, 2, 1)
    if ratio < 2:  # Sentences that are mostly entities need long ones to keep room for a verb.
        weights = (1, 1, 2, 6)
    wanted = min(wanted, 0.8 * length)
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


_Span = tuple[int, int, str]


class _Chunk(NamedTuple):
    """A stretch of words that is an entity, with those inside it, or lies outside of all."""

    words: list[str]
    spans: Sequence[_Span] = ()


_Sentence = list[_Chunk]


def _make_tags(chunk: _Chunk, scheme: str) -> list[str]:
    n_words = len(chunk.words)
    if not chunk.spans:
        return ["O"] * n_words
    ((_, _, label),) = chunk.spans
    first, inner, last, single = list(_PREFIXES[scheme])
    prefixes = single if n_words == 1 else first + inner * (n_words - 2) + last
    return [f"{prefix}-{label}" for prefix in prefixes]


def _list_spans(sentence: _Sentence) -> list[_Span]:
    spans: list[_Span] = []
    n_before = 0
    for chunk in sentence:
        spans += [(n_before + start, n_before + end, label) for start, end, label in chunk.spans]
        n_before += len(chunk.words)
    return sorted(spans)


class _Writer:
    """Writes sentences with entities of given lengths."""

    def __init__(self, rng: random.Random, types: Sequence[EntityType], nested: bool) -> None:
        self._rng = rng
        self._types = types
        self._is_nested = nested
        self._deck: list[EntityType] = []
        self._outside_names = {name for kind in types for name in kind.outside_names}
        self._owed: list[str] = []  # ambiguous names that are due outside of an entity

    def write_sentence(self, length: int, entity_lengths: Sequence[int]) -> _Sentence:
        """Write about `length` words, with a clause or more for the entities."""
        rng = self._rng
        if entity_lengths:
            room = length - sum(entity_lengths)
            n_clauses = max(min(room // 7, len(entity_lengths)), 1)
            n_clauses = max(n_clauses, math.ceil(len(entity_lengths) / _MAX_LISTED))
            parts = [entity_lengths[i::n_clauses] for i in range(n_clauses)]
            clauses = [self._write_entity_clause(part, room < 6 * n_clauses) for part in parts]
        else:
            clauses = [self._write_plain_clause()]
        n_words = sum(_count_words(clause) + 1 for clause in clauses)
        n_modified = 0
        while (room := length - n_words) >= 2 or n_words < 5:
            if n_modified < len(clauses) and (room < 8 or rng.random() < 0.5):
                modifier = rng.choice([m for m in MODIFIERS if len(m) <= max(room, 2)])
                clauses[n_modified].append(_Chunk(modifier))
                n_modified += 1
                n_words += len(modifier)
            elif room >= 6:
                clauses.append(self._write_plain_clause())
                n_words += _count_words(clauses[-1]) + 1
            else:
                break
        rng.shuffle(clauses)
        return self._join(clauses)

    def _join(self, clauses: Sequence[_Sentence]) -> _Sentence:
        sentence = list(clauses[0])
        for clause in clauses[1:]:
            sentence.append(_Chunk(self._rng.choice(CONNECTIVES).split()))
            sentence += clause
        words, spans = sentence[0]
        sentence[0] = _Chunk([words[0][:1].upper() + words[0][1:], *words[1:]], spans)
        sentence.append(_Chunk(["."]))
        return sentence

    def _write_entity_clause(self, lengths: Sequence[int], is_short: bool) -> _Sentence:
        """Write a clause about entities of one type, listed as ``A , B and C``."""
        if not self._deck:
            self._deck = self._rng.sample(self._types, len(self._types))
        kind = self._deck.pop()
        listed: _Sentence = []
        for i, length in enumerate(lengths):
            if i > 0:
                listed.append(_Chunk(["and" if i == len(lengths) - 1 else ","]))
            entity = self._write_entity(kind, length)
            self._owed += [word for word in entity.words if word in self._outside_names]
            listed.append(entity)
        frames = sorted(kind.frames, key=lambda frame: frame.count(" "))
        return self._fill(self._rng.choice(frames[:2] if is_short else frames), listed, is_short)

    def _write_entity(self, kind: EntityType, length: int) -> _Chunk:
        rng = self._rng
        if self._is_nested:
            return _write_nested_name(rng, self._types, self._types.index(kind), length)
        has_prefix = length > 1 and bool(kind.prefixes) and rng.random() < 0.5
        has_suffix = length > 1 + has_prefix and bool(kind.suffixes) and rng.random() < 0.5
        names = rng.sample(kind.names, length - has_prefix - has_suffix)
        prefix = [rng.choice(kind.prefixes)] if has_prefix else []
        suffix = [rng.choice(kind.suffixes)] if has_suffix else []
        return _Chunk(prefix + names + suffix, [(0, length, kind.name)])

    def _write_plain_clause(self) -> _Sentence:
        """Write a clause without entities, often one that could have had one."""
        rng = self._rng
        if rng.random() < 0.5:
            kind = rng.choice(self._types)
            return self._fill(rng.choice(kind.frames), [_Chunk(self._write_noun(kind.nouns))])
        return self._fill(f"WHO {rng.choice(VERBS)} @", [_Chunk(self._write_noun(THINGS))])

    def _write_noun(self, nouns: Sequence[str]) -> list[str]:
        """Write a common noun, with an ambiguous name before it if one is due."""
        rng = self._rng
        words = [rng.choice(("the", "the", "that", "this"))]
        if rng.random() < 0.3:
            words.append(rng.choice(ADJECTIVES))
        if self._owed and rng.random() < 0.7:
            words.append(self._owed.pop(rng.randrange(len(self._owed))))
        return [*words, rng.choice(nouns)]

    def _fill(self, frame: str, slot: _Sentence, is_short: bool = False) -> _Sentence:
        clause: _Sentence = []
        for word in frame.split():
            if word == "@":
                clause += slot
            elif word == "WHO":
                is_pronoun = is_short or self._rng.random() < 0.4
                who = [self._rng.choice(PRONOUNS)] if is_pronoun else self._write_noun(PEOPLE)
                clause.append(_Chunk(who))
            else:
                clause.append(_Chunk([word]))
        return clause


def _count_words(sentence: _Sentence) -> int:
    return sum(len(chunk.words) for chunk in sentence)


def _write_nested_name(
    rng: random.Random, types: Sequence[EntityType], kind: int, length: int
) -> _Chunk:
    """Write the name of an entity, most longer ones with another name inside.

    "North Kelford" is named after another entity of its type; "Holdings of Kelford" after one of
    the type before it, in a ring; "Kelson Holdings" after one of the type two before it, which is
    never nested itself.
    """
    own = types[kind]
    forms = []
    if length >= 2 and rng.random() >= _PLAIN_SHARE:
        forms += ["after its type"] if own.prefixes else []
        forms += ["before a head"] if own.suffixes else []
        forms += ["after a head"] if length >= 3 else []
    form = rng.choice(forms) if forms else "plain"
    if form == "plain":
        return _Chunk(rng.sample(own.names, length), [(0, length, own.name)])
    if form == "before a head":
        other = types[(kind - 2) % len(types)]
        words = [*rng.sample(other.names, length - 1), rng.choice(own.suffixes)]
        return _Chunk(words, [(0, length, own.name), (0, length - 1, other.name)])
    if form == "after its type":
        inner = _write_nested_name(rng, types, kind, length - 1)
        before = [rng.choice(own.prefixes)]
    else:
        inner = _write_nested_name(rng, types, kind - 1, length - 2)
        before = [rng.choice(own.prefixes + own.suffixes or own.names), "of"]
    spans = [(start + len(before), end + len(before), label) for start, end, label in inner.spans]
    return _Chunk([*before, *inner.words], [(0, length, own.name), *spans])
