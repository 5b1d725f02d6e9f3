"""Generator of sentence pairs, paraphrases and others, with a chosen imbalance."""

import random

import numpy as np
import numpy.typing as npt

from .._parameters import check_number
from .._random_state import RandomState, make_rng
from ._facts import NUMBERS, RELATIONS, Fact, Names, draw_fact, list_names

# Two ways to say each.
_TIMES = {
    "on Monday": "on the first day of the week",
    "at midnight": "in the middle of the night",
    "despite the rain": "although it was raining",
    "before sunrise": "before the sun rose",
    "after the storm": "when the storm was over",
}


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
    it the two names are swapped, or one name, thing, place, time or verb is another one. The other
    negative pairs have different subjects. Swapped names are more than a small encoder learns from
    a thousand pairs.

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
    >>> X, y = make_pairs(100, positive_share=0.1, random_state=3)
    >>> len(X), int(y.sum())
    (100, 10)
    >>> print(*X[y.argmax()], sep="\n")
    David Tormond defeated David Darley in Jarwick on the first day of the week.
    On Monday, David Darley lost to David Tormond in Jarwick.
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
    names = list_names()
    rows: dict[frozenset[str], tuple[tuple[str, str], int]] = {}
    while len(rows) < n_samples:
        label = int(len(rows) < n_positive)
        fact = other = _draw(rng, names)
        if label == 0:
            other = (_change if rng.random() < hard_share else _draw_unlike)(rng, names, fact)
        first = second = _write(rng, fact)
        while second == first:
            second = _write(rng, other)
        rows.setdefault(frozenset((first, second)), ((first, second), label))
    shuffled = list(rows.values())
    rng.shuffle(shuffled)
    return [pair for pair, _ in shuffled], np.array([label for _, label in shuffled])


def _draw(rng: random.Random, names: Names, frame: int | None = None) -> Fact:
    """Draw a fact, of one frame if given, with a place and a time or without."""
    relation = rng.choice([r for r in RELATIONS if frame in (None, r.frame)])
    fact = draw_fact(rng, names, relation)
    has_place = "P" not in fact.values and rng.random() < 0.6
    fact.values["place"] = f"in {rng.choice(names['place'])}" if has_place else ""
    fact.values["time"] = rng.choice(list(_TIMES)) if rng.random() < 0.7 else ""
    return fact


def _draw_unlike(rng: random.Random, names: Names, fact: Fact) -> Fact:
    """Draw a fact of another frame about others."""
    while True:
        other = _draw(rng, names)
        subjects, others = ({f.values.get(s) for s in "ABCD"} - {None} for f in (fact, other))
        if other.relation.frame != fact.relation.frame and subjects.isdisjoint(others):
            return other


def _change(rng: random.Random, names: Names, fact: Fact) -> Fact:
    """Swap the names that a fact tells, if there are two, or change one thing."""
    values = fact.values
    subjects = [slot for slot in "ABCD" if slot in values]
    if len(subjects) == 2 and rng.random() < 0.5:
        a, b = subjects
        return Fact(fact.relation, {**values, a: values[b], b: values[a]})
    part = rng.choice(["verb", *(slot for slot in values if slot != "T" and values[slot])])
    while True:
        other = _draw(rng, names, fact.relation.frame)
        if part == "verb" and other.relation != fact.relation:
            return Fact(other.relation, values)
        if part != "verb" and other.values[part] not in ("", *values.values()):
            return Fact(fact.relation, {**values, part: other.values[part]})


def _write(rng: random.Random, fact: Fact) -> str:
    """Write a sentence in one of its wordings, with place and time in front or behind."""
    values = dict(fact.values)
    time = values["time"]
    adverbs = [values["place"], rng.choice([time, _TIMES.get(time, "")])]
    front = rng.choice(["", *adverbs])
    wording = rng.choice(fact.relation.wordings)
    if "W" in values and (rng.random() < 0.5 or (wording[0] == "W" and not front)):
        number, things = values["W"].split()
        values["W"] = f"{NUMBERS[number]} {things}"
    told = Fact(fact.relation, values).tell(wording)
    behind = [adverb for adverb in adverbs if adverb not in ("", front)]
    sentence = " ".join([f"{front}, {told}" if front else told, *behind])
    return f"{sentence[0].upper()}{sentence[1:]}."
