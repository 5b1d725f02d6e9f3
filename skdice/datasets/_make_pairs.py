"""Generator of sentence pairs, paraphrases and others, with a chosen imbalance."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._parameters import check_number
from .._random_state import RandomState, make_rng
from ._tagging_language import ADJECTIVES, PEOPLE, THINGS, make_language

# Blocks of relations between two persons, companies or places; an event happens somewhere and some
# day. Each line says one relation in several ways; different lines of a block do not mean the same.
# A and B are who takes part, N is a number, THINGS what is counted. A and B swapped say something
# else.
_RELATIONS = """
person event
A thanked B | B was thanked by A | A said thank you to B
A defeated B | B was defeated by A | A won against B | B lost to A
A interviewed B | B was interviewed by A | B gave an interview to A
A invited B to dinner | B was invited to dinner by A | B got an invitation to dinner from A
A replaced B | B was replaced by A | A took the place of B
A hired B | B was hired by A | A gave a job to B | B got a job from A
A phoned B | B was phoned by A | B got a phone call from A

person event
A sold N THINGS to B | B bought N THINGS from A | N THINGS were sold to B by A
A lent N THINGS to B | B borrowed N THINGS from A | N THINGS were lent to B by A
A stole N THINGS from B | B was robbed of N THINGS by A | N THINGS were stolen from B by A

person event
A arrived N minutes before B | B arrived N minutes after A
A scored N points more than B | B scored N points fewer than A

person state
A is N years older than B | B is N years younger than A
A earns N percent more than B | B earns N percent less than A

company event
A acquired B | B was acquired by A | A took over B | B was taken over by A
A sued B | B was sued by A | A took B to court | B was taken to court by A
A shipped N THINGS to B | N THINGS were shipped to B by A | B got a shipment of N THINGS from A

place state
A lies N kilometres north of B | B lies N kilometres south of A
A lies N kilometres east of B | B lies N kilometres west of A
"""
# The first line of a block says who takes part, and whether relations are events.
_BLOCKS = [block.split("\n") for block in _RELATIONS.strip().split("\n\n")]
_TIMES = [
    ("on Monday",), ("last summer",), ("at midnight", "in the middle of the night"),
    ("despite the rain", "although it was raining"), ("before sunrise", "before the sun rose"),
    ("after the storm", "when the storm was over"),
]  # fmt: skip
_NUMBERS = {"2": "two", "3": "three", "5": "five", "7": "seven", "9": "nine", "12": "twelve"}
# Share of the hard negative pairs in which the names are swapped.
_SWAPPED_SHARE = 0.5

# What is told, by the names that the relations use; names of persons, companies and places.
_Fact = dict[str, Any]
_Names = Mapping[str, Sequence[str]]


def make_pairs(
    n_samples: int = 100,
    *,
    positive_share: float = 0.2,
    hard_share: float = 0.8,
    random_state: RandomState = None,
) -> tuple[list[tuple[str, str]], npt.NDArray[np.int64]]:
    r"""Generate pairs of English-like sentences, of which some say the same.

    The sentences of a positive pair say the same in other words: in active and passive, from either
    side (``"Anna sold 9 lamps to Peter."``, ``"Peter bought nine lamps from Anna."``), or in
    another order. In a hard negative pair the second sentence is just such another wording, but in
    it the two names are swapped, or one name, number, thing, place, time or verb is another one.
    The other negative pairs have different subjects. Swapped names are more than a small encoder
    learns from a thousand pairs.

    Parameters
    ----------
    n_samples : int, default=100
        Number of pairs.
    positive_share : float, default=0.2
        Share of the paraphrases, ``round(positive_share * n_samples)``, between 0 and 1.
    hard_share : float, default=0.8
        Share of the negative pairs that are hard, on average.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the sentences. None gives other pairs in each call.

    Returns
    -------
    X : list of tuple of (str, str)
        The pairs. None occurs twice, in either order.
    y : ndarray of shape (n_samples,) and dtype int64
        1 for a paraphrase, else 0.

    Raises
    ------
    ValueError
        If a parameter is invalid, or if there would not be at least one pair of each class.

    Examples
    --------
    >>> from skdice.datasets import make_pairs
    >>> X, y = make_pairs(100, positive_share=0.1, random_state=1)
    >>> len(X), int(y.sum())
    (100, 10)
    >>> print(*X[y.argmax()], sep="\n")
    In Port Larton, Roscorp Partners took over Saltek Holdings despite the rain.
    In Port Larton, Saltek Holdings was acquired by Roscorp Partners despite the rain.
    """
    check_number("make_pairs", "n_samples", n_samples, low=2, integer=True)
    check_number("make_pairs", "positive_share", positive_share, low=0, high=1, closed="neither")
    check_number("make_pairs", "hard_share", hard_share, low=0, high=1, closed="both")
    n_positive = round(float(positive_share) * int(n_samples))
    if not 1 <= n_positive < n_samples:
        raise ValueError(
            f"make_pairs needs at least one pair of each class; {positive_share=} of {n_samples=} "
            f"makes {n_positive} positive and {n_samples - n_positive} negative pairs."
        )
    rng = make_rng(random_state, "make_pairs")
    names = _list_names()
    rows: dict[frozenset[str], tuple[tuple[str, str], int]] = {}
    while len(rows) < n_samples:
        label = int(len(rows) < n_positive)
        fact = other = _draw_fact(rng, names)
        if label == 0:
            draw_other = _change if rng.random() < hard_share else _draw_unlike
            other = draw_other(rng, names, fact)
        first = second = _write(rng, fact)
        while second == first:
            second = _write(rng, other)
        rows.setdefault(frozenset((first, second)), ((first, second), label))
    shuffled = list(rows.values())
    rng.shuffle(shuffled)
    return [pair for pair, _ in shuffled], np.array([label for _, label in shuffled])


def _list_names() -> _Names:
    person, place, company = make_language(3, 0)
    people = [f"{first} {last}" for first in person.prefixes for last in person.names]
    others = [f"the {adjective} {noun}" for adjective in ADJECTIVES for noun in PEOPLE]
    regions = [f"{first} {last}" for first in place.prefixes for last in place.names]
    return {
        "person": people + others,
        "place": place.names + regions,
        "company": [f"{name} {last}" for name in company.names for last in company.suffixes],
    }


def _draw_fact(rng: random.Random, names: _Names) -> _Fact:
    # Each relation is as frequent as any other.
    (block,) = rng.choices(_BLOCKS, [len(block) - 1 for block in _BLOCKS])
    kind, mode = block[0].split()
    a, b = rng.sample(names[kind], 2)
    return {
        "block": block,
        "relation": rng.choice(block[1:]),
        "A": a,
        "B": b,
        "N": rng.choice(list(_NUMBERS)),
        "THINGS": f"{rng.choice(THINGS)}s",
        "place": rng.choice(names["place"]) if mode == "event" and rng.random() < 0.6 else "",
        "time": rng.choice(_TIMES) if mode == "event" and rng.random() < 0.7 else "",
    }


def _draw_unlike(rng: random.Random, names: _Names, fact: _Fact) -> _Fact:
    """Draw a fact of another block about others."""
    while True:
        other = _draw_fact(rng, names)
        is_about_others = {other["A"], other["B"]}.isdisjoint((fact["A"], fact["B"]))
        if is_about_others and other["block"] != fact["block"]:
            return other


def _change(rng: random.Random, names: _Names, fact: _Fact) -> _Fact:
    """Change one thing that the sentence tells."""
    if rng.random() < _SWAPPED_SHARE:
        return {**fact, "A": fact["B"], "B": fact["A"]}
    told = {"A", "B", "N", "THINGS"}.intersection(fact["relation"].split())
    part = rng.choice(sorted(told | {"relation"} | {p for p in ("place", "time") if fact[p]}))
    while True:
        other = _draw_fact(rng, names)
        is_new = other[part] not in ("", fact[part], fact["A"], fact["B"])
        if is_new and other["block"] == fact["block"]:
            return {**fact, part: other[part]}


def _write(rng: random.Random, fact: _Fact) -> str:
    """Write a sentence in one of its wordings, with place and time in front or behind."""
    words = rng.choice(fact["relation"].split(" | ")).split()
    is_spelled = words[0] == "N" or rng.random() < 0.5
    number = _NUMBERS[fact["N"]] if is_spelled else fact["N"]
    values = {"A": fact["A"], "B": fact["B"], "N": number, "THINGS": fact["THINGS"]}
    adverbs = [f"in {fact['place']}"] if fact["place"] else []
    adverbs += [rng.choice(fact["time"])] if fact["time"] else []
    front = rng.choice(["", *adverbs])
    behind = [adverb for adverb in adverbs if adverb != front]
    sentence = " ".join([values.get(word, word) for word in words] + behind)
    sentence = f"{front}, {sentence}" if front else sentence
    return f"{sentence[0].upper()}{sentence[1:]}."
