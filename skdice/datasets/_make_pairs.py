"""Generator of sentence pairs, paraphrases and others, with a chosen imbalance."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from .._parameters import check_number
from .._random_state import RandomState, make_rng
from ._tagging_language import ADJECTIVES, PEOPLE, THINGS, make_language

_T = TypeVar("_T")

# Share of the hard negative pairs in which the names are swapped.
_SWAPPED_SHARE = 0.5

# Blocks of relations between two persons, two companies or two places. Each line says one relation
# in several ways; different lines of a block do not mean the same. A and B are who takes part, N is
# a number, THINGS what is counted. None is symmetric: A and B swapped say something else.
_RELATIONS = """
A thanked B | B was thanked by A | A said thank you to B
A defeated B | B was defeated by A | A won against B | B lost to A
A interviewed B | B was interviewed by A | B gave an interview to A
A invited B to dinner | B was invited to dinner by A | B got an invitation to dinner from A
A criticised B | B was criticised by A | A found fault with B
A photographed B | B was photographed by A | A took a picture of B
A replaced B | B was replaced by A | A took the place of B
A visited B | B was visited by A | A paid a visit to B | B received a visit from A
A hired B | B was hired by A | A gave a job to B | B got a job from A
A taught chess to B | B was taught chess by A | B learned chess from A
A phoned B | B was phoned by A | B got a phone call from A

A sold N THINGS to B | B bought N THINGS from A | N THINGS were sold to B by A
A lent N THINGS to B | B borrowed N THINGS from A | N THINGS were lent to B by A
A stole N THINGS from B | B was robbed of N THINGS by A | N THINGS were stolen from B by A
A donated N THINGS to B | N THINGS were donated to B by A | B got N THINGS as a donation from A
A mailed N THINGS to B | B got N THINGS by mail from A | N THINGS were sent to B by mail by A

A arrived N minutes before B | B arrived N minutes after A
A left N minutes before B | B left N minutes after A
A spoke N minutes longer than B | B spoke N minutes less than A
A scored N points more than B | B scored N points fewer than A

A is N years older than B | B is N years younger than A
A is N centimetres taller than B | B is N centimetres shorter than A
A earns N percent more than B | B earns N percent less than A

A acquired B | B was acquired by A | A took over B | B was taken over by A
A sued B | B was sued by A | A took B to court | B was taken to court by A
A outbid B | B was outbid by A | A made a higher bid than B
A warned B about delays | B was warned about delays by A | A gave a warning about delays to B
A hired N engineers from B | N engineers moved from B to A | B lost N engineers to A
A shipped N THINGS to B | N THINGS were shipped to B by A | B got a shipment of N THINGS from A

A lies N kilometres north of B | B lies N kilometres south of A
A lies N kilometres east of B | B lies N kilometres west of A
A has N schools more than B | B has N schools fewer than A
A is N degrees warmer than B | B is N degrees colder than A
"""

# Who takes part in the relations of each block, and whether they tell an event, which happens
# somewhere and some day.
_BLOCKS = (
    ("person", True),
    ("person", True),
    ("person", True),
    ("person", False),
    ("company", True),
    ("place", False),
)

# Each line says when something happened in one or more ways.
_TIMES = [
    line.split(" | ")
    for line in """
on Monday
on Thursday
on Saturday
at noon | in the middle of the day
at midnight | in the middle of the night
because the road was closed | as the road was blocked
despite the rain | although it was raining
before sunrise | before the sun rose
after the storm | when the storm was over
during the strike | while workers were on strike
before the election | before people went to the polls
after the concert | when the concert had ended
""".strip().split("\n")
]
_MONTHS, _UNITS, _TENS = (
    block.split()
    for block in """
January February March April June July August September October

zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen

zero ten twenty thirty forty fifty sixty seventy eighty ninety
""".strip().split("\n\n")
)
_TIMES += [[f"in early {month}", f"at the beginning of {month}"] for month in _MONTHS]
_NUMBERS = range(2, 100)


def make_pairs(
    n_samples: int = 100,
    *,
    positive_share: float = 0.2,
    hard_share: float = 0.8,
    random_state: RandomState = None,
) -> tuple[list[tuple[str, str]], npt.NDArray[np.int64]]:
    r"""Generate pairs of English-like sentences, of which some say the same.

    The sentences of a positive pair say the same in other words: in active and passive, from either
    side (``"Anna sold 12 lamps to Peter."``, ``"Peter bought twelve lamps from Anna."``), or in
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
        Seed of the sentences. None gives other pairs in each call. NumPy's global random state is
        neither read nor changed.

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

    See Also
    --------
    read_pairs : Pairs from a file.

    Examples
    --------
    >>> from skdice.datasets import make_pairs
    >>> X, y = make_pairs(100, positive_share=0.1, random_state=8)
    >>> len(X), int(y.sum())
    (100, 10)
    >>> print(*X[y.argmax()], sep="\n")
    Lake Talwick lies 79 kilometres west of South Morton.
    South Morton lies seventy-nine kilometres east of Lake Talwick.
    """
    n_positive = _count_positive(n_samples, positive_share)
    check_number("make_pairs", "hard_share", hard_share, low=0, high=1, closed="both")
    rng = make_rng(random_state, "make_pairs")
    writer = _PairWriter(rng, float(hard_share))
    rows: list[tuple[tuple[str, str], int]] = []
    seen: set[frozenset[str]] = set()
    while len(rows) < n_samples:
        label = int(len(rows) < n_positive)
        pair = writer.write_pair(label)
        if frozenset(pair) not in seen:
            seen.add(frozenset(pair))
            rows.append((pair, label))
    rng.shuffle(rows)
    return [pair for pair, _ in rows], np.array([label for _, label in rows], dtype=np.int64)


def _count_positive(n_samples: int, positive_share: float) -> int:
    check_number("make_pairs", "n_samples", n_samples, low=2, integer=True)
    check_number("make_pairs", "positive_share", positive_share, low=0, high=1, closed="neither")
    n_positive = round(float(positive_share) * int(n_samples))
    if not 1 <= n_positive < n_samples:
        raise ValueError(
            f"make_pairs needs at least one pair of each class. {positive_share=} of {n_samples=} "
            f"makes {n_positive} positive and {n_samples - n_positive} negative pairs. Take "
            "a larger n_samples."
        )
    return n_positive


@dataclass(frozen=True)
class _Fact:
    """What a sentence says."""

    block: int
    relation: int
    a: str
    b: str
    number: int
    things: str
    place: str  # empty if not told
    time: int | None


@dataclass(frozen=True)
class _Wording:
    """How a sentence says it: numbers that are taken modulo the ways there are."""

    clause: int
    order: int
    time: int
    in_digits: bool


class _PairWriter:
    """Draws facts, words them and changes them."""

    def __init__(self, rng: random.Random, hard_share: float) -> None:
        self._rng = rng
        self._hard_share = hard_share
        person, place, company = make_language(3, 0)
        self._names = {
            "person": [f"{first} {last}" for first in person.prefixes for last in person.names]
            + [f"the {adjective} {noun}" for adjective in ADJECTIVES for noun in PEOPLE],
            "place": place.names
            + [f"{first} {name}" for first in place.prefixes for name in place.names],
            "company": [f"{name} {last}" for name in company.names for last in company.suffixes],
        }
        self._relations = [
            [line.split(" | ") for line in block.split("\n")]
            for block in _RELATIONS.strip().split("\n\n")
        ]

    def write_pair(self, label: int) -> tuple[str, str]:
        fact = self._draw_fact()
        if label == 1:
            other = fact
        elif self._rng.random() < self._hard_share:
            other = self._change(fact)
        else:
            other = self._draw_other_subject(fact)
        first = second = self._word(fact, self._draw_wording())
        while second == first:
            second = self._word(other, self._draw_wording())
        return first, second

    def _draw_fact(self) -> _Fact:
        rng = self._rng
        # Each relation is as frequent as any other.
        n_relations = [len(block) for block in self._relations]
        (block,) = rng.choices(range(len(_BLOCKS)), n_relations)
        kind, is_event = _BLOCKS[block]
        a, b = rng.sample(self._names[kind], 2)
        return _Fact(
            block=block,
            relation=rng.randrange(n_relations[block]),
            a=a,
            b=b,
            number=rng.choice(_NUMBERS),
            things=f"{rng.choice(THINGS)}s",
            place=rng.choice(self._names["place"]) if is_event and rng.random() < 0.6 else "",
            time=rng.randrange(len(_TIMES)) if is_event and rng.random() < 0.7 else None,
        )

    def _draw_other_subject(self, fact: _Fact) -> _Fact:
        while True:
            other = self._draw_fact()
            if other.block != fact.block and {other.a, other.b}.isdisjoint((fact.a, fact.b)):
                return other

    def _change(self, fact: _Fact) -> _Fact:
        """Change one thing that the sentence tells."""
        rng = self._rng
        if rng.random() < _SWAPPED_SHARE:
            return replace(fact, a=fact.b, b=fact.a)
        kind, _ = _BLOCKS[fact.block]
        relations = self._relations[fact.block]
        clause = relations[fact.relation][0].split()
        changes = ["a", "b", "relation"]
        changes += ["number"] if "N" in clause else []
        changes += ["things"] if "THINGS" in clause else []
        changes += ["place"] if fact.place else []
        changes += ["time"] if fact.time is not None else []
        change = rng.choice(changes)
        if change in ("a", "b"):
            name = self._draw_other(self._names[kind], fact.a, fact.b)
            return replace(fact, a=name) if change == "a" else replace(fact, b=name)
        if change == "relation":
            return replace(fact, relation=self._draw_other(range(len(relations)), fact.relation))
        if change == "number":
            return replace(fact, number=self._draw_other(_NUMBERS, fact.number))
        if change == "things":
            return replace(fact, things=self._draw_other([f"{s}s" for s in THINGS], fact.things))
        if change == "place":
            return replace(fact, place=self._draw_other(self._names["place"], fact.place))
        return replace(fact, time=self._draw_other(range(len(_TIMES)), fact.time))

    def _draw_other(self, values: Sequence[_T], *others: _T) -> _T:
        return self._rng.choice([value for value in values if value not in others])

    def _draw_wording(self) -> _Wording:
        rng = self._rng
        # Multiples of all the numbers of ways, so that each way is as likely as any other.
        return _Wording(rng.randrange(12), rng.randrange(6), rng.randrange(2), rng.random() < 0.5)

    def _word(self, fact: _Fact, wording: _Wording) -> str:
        ways = self._relations[fact.block][fact.relation]
        number = str(fact.number) if wording.in_digits else _spell(fact.number)
        values = {"A": fact.a, "B": fact.b, "N": number, "THINGS": fact.things}
        words = ways[wording.clause % len(ways)].split()
        if words[0] == "N":
            values["N"] = _spell(fact.number)
        clause = " ".join(values.get(word, word) for word in words)
        place = f" in {fact.place}" if fact.place else ""
        time = ""
        if fact.time is not None:
            times = _TIMES[fact.time]
            time = f" {times[wording.time % len(times)]}"
        orders = [f"{clause}{place}{time}"]
        if place:
            orders.append(f"{place[1:]}, {clause}{time}")
        if time:
            orders.append(f"{time[1:]}, {clause}{place}")
        sentence = orders[wording.order % len(orders)]
        return f"{sentence[0].upper()}{sentence[1:]}."


def _spell(number: int) -> str:
    tens, ones = divmod(number, 10)
    if number < 20:
        return _UNITS[number]
    return f"{_TENS[tens]}-{_UNITS[ones]}" if ones else _TENS[tens]
