"""Generator of sentence pairs, paraphrases and others, with a chosen imbalance."""

import random

import numpy as np
import numpy.typing as npt

from .._parameters import check_number
from .._random_state import RandomState, make_rng
from ._facts import NUMBERS, RELATIONS, Fact, Names, draw_fact, list_names


def make_pairs(
    n_samples: int = 100,
    *,
    positive_share: float = 0.2,
    hard_share: float = 0.8,
    random_state: RandomState = None,
) -> tuple[list[tuple[str, str]], npt.NDArray[np.int64]]:
    r"""Generate pairs of English-like sentences, of which some say the same.

    The sentences of a positive pair say the same in other words: in active and passive, or from
    either side (``"Anna sold 9 lamps to Peter."``, ``"Peter bought nine lamps from Anna."``). In a
    hard negative pair the second sentence is such another wording, too, but the two names are
    swapped in it, or one name, thing, place or verb is another one; the other negative pairs are
    about others. Swapped names are more than a small encoder learns from a thousand pairs.

    Parameters
    ----------
    n_samples : int, default=100
    positive_share : float, default=0.2
        Share of the paraphrases, ``round(positive_share * n_samples)``, between 0 and 1.
    hard_share : float, default=0.8
        Share of the negative pairs that are hard, on average.
    random_state : int, RandomState, Generator or None, default=None

    Returns
    -------
    X : list of tuple of (str, str)
        The pairs. None occurs twice, in either order.
    y : ndarray of shape (n_samples,) and dtype int64
        1 for a paraphrase, else 0.

    Examples
    --------
    >>> from skdice.datasets import make_pairs
    >>> X, y = make_pairs(100, positive_share=0.1, random_state=3)
    >>> len(X), int(y.sum())
    (100, 10)
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
        fact = other = draw_fact(rng, names, rng.choice(RELATIONS))
        if label == 0:
            is_hard = rng.random() < hard_share
            other = _change(rng, names, fact) if is_hard else _draw_unlike(rng, names, fact)
        first, second = rng.sample(range(min(len(f.relation.wordings) for f in (fact, other))), 2)
        pair = _write(rng, fact, first), _write(rng, other, second)
        rows.setdefault(frozenset(pair), (pair, label))
    shuffled = list(rows.values())
    rng.shuffle(shuffled)
    return [pair for pair, _ in shuffled], np.array([label for _, label in shuffled])


def _draw_unlike(rng: random.Random, names: Names, fact: Fact) -> Fact:
    """Draw a fact of another frame about others."""
    while True:
        other = draw_fact(rng, names, rng.choice(RELATIONS))
        is_apart = set(fact.values.values()).isdisjoint(other.values.values())
        if other.relation.frame != fact.relation.frame and is_apart:
            return other


def _change(rng: random.Random, names: Names, fact: Fact) -> Fact:
    """Swap the two names that a fact tells, or change one thing or the verb."""
    values = fact.values
    subjects = [slot for slot in "ABCD" if slot in values]
    if len(subjects) == 2 and rng.random() < 0.5:
        a, b = subjects
        return Fact(fact.relation, {**values, a: values[b], b: values[a]})
    frame = [one for one in RELATIONS if one.frame == fact.relation.frame]
    other = draw_fact(rng, names, rng.choice([one for one in frame if one != fact.relation]))
    part = rng.choice(["verb", *(slot for slot in values if slot != "T")])
    if part == "verb":
        return Fact(other.relation, values)
    if other.values[part] in values.values():
        return _change(rng, names, fact)
    return Fact(fact.relation, {**values, part: other.values[part]})


def _write(rng: random.Random, fact: Fact, wording: int) -> str:
    """Write a sentence, with a number of things in digits or, at its beginning, in words."""
    told = fact.relation.wordings[wording]
    values = dict(fact.values)
    if "W" in values and (rng.random() < 0.5 or told[0] == "W"):
        number, things = values["W"].split()
        values["W"] = f"{NUMBERS[number]} {things}"
    sentence = Fact(fact.relation, values).tell(told)
    return f"{sentence[0].upper()}{sentence[1:]}."
