"""Generator of sentence pairs, paraphrases and others, with a chosen imbalance."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._parameters import check_number
from .._random_state import RandomState, make_rng
from ._tagging_language import ADJECTIVES, PEOPLE, THINGS, make_language

# What is told: facts by the names that they use.
_Fact = Mapping[str, Any]

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
A criticised B | B was criticised by A | A found fault with B
A replaced B | B was replaced by A | A took the place of B
A visited B | B was visited by A | A paid a visit to B | B received a visit from A
A hired B | B was hired by A | A gave a job to B | B got a job from A
A phoned B | B was phoned by A | B got a phone call from A

person event
A sold N THINGS to B | B bought N THINGS from A | N THINGS were sold to B by A
A lent N THINGS to B | B borrowed N THINGS from A | N THINGS were lent to B by A
A stole N THINGS from B | B was robbed of N THINGS by A | N THINGS were stolen from B by A
A donated N THINGS to B | N THINGS were donated to B by A | B got N THINGS as a donation from A

person event
A arrived N minutes before B | B arrived N minutes after A
A spoke N minutes longer than B | B spoke N minutes less than A
A scored N points more than B | B scored N points fewer than A

person state
A is N years older than B | B is N years younger than A
A earns N percent more than B | B earns N percent less than A

company event
A acquired B | B was acquired by A | A took over B | B was taken over by A
A sued B | B was sued by A | A took B to court | B was taken to court by A
A hired N engineers from B | N engineers moved from B to A | B lost N engineers to A
A shipped N THINGS to B | N THINGS were shipped to B by A | B got a shipment of N THINGS from A

place state
A lies N kilometres north of B | B lies N kilometres south of A
A lies N kilometres east of B | B lies N kilometres west of A
A has N schools more than B | B has N schools fewer than A
"""
# The first line of a block says who takes part, and whether relations are events.
_BLOCKS = [block.split("\n") for block in _RELATIONS.strip().split("\n\n")]
_TIMES = [
    ("on Monday",), ("on Thursday",), ("in early May",), ("during the strike",), ("last summer",),
    ("at noon", "in the middle of the day"), ("at midnight", "in the middle of the night"),
    ("despite the rain", "although it was raining"), ("before sunrise", "before the sun rose"),
    ("after the storm", "when the storm was over"),
]  # fmt: skip
_UNITS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
# From 20 to 99, in digits and in words.
_NUMBERS = [
    (f"{i}{j}", f"{ten}-{unit}" if j else ten)
    for i, ten in enumerate(_TENS, start=2)
    for j, unit in enumerate(["", *_UNITS])
]
# Share of the hard negative pairs in which the names are swapped.
_SWAPPED_SHARE = 0.5


def make_pairs(
    n_samples: int = 100,
    *,
    positive_share: float = 0.2,
    hard_share: float = 0.8,
    random_state: RandomState = None,
) -> tuple[list[tuple[str, str]], npt.NDArray[np.int64]]:
    r"""Generate pairs of English-like sentences, of which some say the same.

    The sentences of a positive pair say the same in other words: in active and passive, from either
    side (``"Anna sold 22 lamps to Peter."``, ``"Peter bought twenty-two lamps from Anna."``), or in
    another order. In a hard negative pair the second sentence is just such another wording, but in
    it the two names are swapped, or one name, number, thing, place, time or verb is another one.
    The other negative pairs have different subjects. So the more pairs are hard, the less it tells
    how many words two sentences share; their meaning always decides. Swapped names are more than a
    small encoder learns from a thousand pairs.

    Parameters
    ----------
    n_samples : int, default=100
        Number of pairs.
    positive_share : float, default=0.2
        Share of the paraphrases, between 0 and 1. ``round(positive_share * n_samples)`` pairs are
        positive.
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
    Lake Calford lies fifty-four kilometres east of North Venburg.
    North Venburg lies 54 kilometres west of Lake Calford.
    """
    check_number("make_pairs", "n_samples", n_samples, low=2, integer=True)
    check_number("make_pairs", "positive_share", positive_share, low=0, high=1, closed="neither")
    check_number("make_pairs", "hard_share", hard_share, low=0, high=1, closed="both")
    n_positive = round(float(positive_share) * int(n_samples))
    if not 1 <= n_positive < n_samples:
        raise ValueError(
            f"make_pairs needs at least one pair of each class. {positive_share=} of {n_samples=} "
            f"makes {n_positive} positive and {n_samples - n_positive} negative pairs. Take "
            "a larger n_samples."
        )
    rng = make_rng(random_state, "make_pairs")
    names = _list_names()
    rows: list[tuple[tuple[str, str], int]] = []
    seen: set[frozenset[str]] = set()
    while len(rows) < n_samples:
        label = int(len(rows) < n_positive)
        fact = other = _draw_fact(rng, names)
        if label == 0 and rng.random() < hard_share:
            other = _change(rng, names, fact)
        elif label == 0:
            is_near = True
            while is_near:
                other = _draw_fact(rng, names)
                is_near = other["block"] == fact["block"]
                is_near |= not {other["A"], other["B"]}.isdisjoint((fact["A"], fact["B"]))
        first = second = _write(rng, fact)
        while second == first:
            second = _write(rng, other)
        if frozenset((first, second)) not in seen:
            seen.add(frozenset((first, second)))
            rows.append(((first, second), label))
    rng.shuffle(rows)
    return [pair for pair, _ in rows], np.array([label for _, label in rows], dtype=np.int64)


def _list_names() -> dict[str, list[str]]:
    person, place, company = make_language(3, 0)
    return {
        "person": [f"{first} {last}" for first in person.prefixes for last in person.names]
        + [f"the {adjective} {noun}" for adjective in ADJECTIVES for noun in PEOPLE],
        "place": place.names
        + [f"{first} {last}" for first in place.prefixes for last in place.names],
        "company": [f"{name} {last}" for name in company.names for last in company.suffixes],
    }


def _draw_fact(rng: random.Random, names: Mapping[str, Sequence[str]]) -> _Fact:
    # Each relation is as frequent as any other.
    (block,) = rng.choices(_BLOCKS, [len(block) - 1 for block in _BLOCKS])
    kind, mode = block[0].split()
    a, b = rng.sample(names[kind], 2)
    return {
        "block": block,
        "relation": rng.choice(block[1:]).split(" | "),
        "A": a,
        "B": b,
        "N": rng.choice(_NUMBERS),
        "THINGS": f"{rng.choice(THINGS)}s",
        "place": rng.choice(names["place"]) if mode == "event" and rng.random() < 0.6 else "",
        "time": rng.choice(_TIMES) if mode == "event" and rng.random() < 0.7 else "",
    }


def _change(rng: random.Random, names: Mapping[str, Sequence[str]], fact: _Fact) -> _Fact:
    """Change one thing that the sentence tells."""
    if rng.random() < _SWAPPED_SHARE:
        return {**fact, "A": fact["B"], "B": fact["A"]}
    told = {"A", "B", *fact["relation"][0].split()} & set(fact)
    part = rng.choice(sorted(told | {"relation"} | {p for p in ("place", "time") if fact[p]}))
    while True:
        other = _draw_fact(rng, names)
        is_new = other[part] not in ("", fact[part], fact["A"], fact["B"])
        if is_new and other["block"] == fact["block"]:
            return {**fact, part: other[part]}


def _write(rng: random.Random, fact: _Fact) -> str:
    """Write a sentence in one of its wordings, with place and time in front or behind."""
    words = rng.choice(fact["relation"]).split()
    digits, spelled = fact["N"]
    number = spelled if words[0] == "N" or rng.random() < 0.5 else digits
    values = {"A": fact["A"], "B": fact["B"], "N": number, "THINGS": fact["THINGS"]}
    adverbs = [f"in {fact['place']}"] if fact["place"] else []
    adverbs += [rng.choice(fact["time"])] if fact["time"] else []
    front = rng.choice(["", *adverbs])
    behind = [adverb for adverb in adverbs if adverb != front]
    sentence = " ".join([values.get(word, word) for word in words] + behind)
    sentence = f"{front}, {sentence}" if front else sentence
    return f"{sentence[0].upper()}{sentence[1:]}."
