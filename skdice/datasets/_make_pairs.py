"""Generator of sentence pairs, paraphrases and others, with a chosen imbalance."""

import random

import numpy as np
import numpy.typing as npt

from .._parameters import RandomState, check_number, make_rng
from ._facts import RELATIONS, Fact, Names, draw_fact, list_names


def make_pairs(
    n_samples: int = 100,
    *,
    positive_share: float = 0.2,
    hard_share: float = 0.8,
    random_state: RandomState = None,
) -> tuple[list[tuple[str, str]], npt.NDArray[np.int64]]:
    r"""Generate pairs of English-like sentences; the sentences of some pairs say the same.

    The sentences of a positive pair say the same in other words: in active and passive, or from
    either side (``"Anna sold 9 lamps to Peter."``, ``"Peter bought 9 lamps from Anna."``). In a
    hard negative pair the second sentence is such another wording, too, but the two names are
    swapped in it, or one name, thing, place or verb is another one; the other negative pairs are
    about something else. Swapped names are more than a small encoder learns from a thousand pairs.

    Parameters
    ----------
    n_samples : int, default=100
    positive_share : float, default=0.2
        Share of the paraphrases, between 0 and 1. There is one pair of each class at least.
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
    n_positive = min(max(1, round(float(positive_share) * int(n_samples))), int(n_samples) - 1)
    rng = make_rng(random_state, "make_pairs")
    names = list_names()
    rows: dict[frozenset[str], tuple[tuple[str, str], int]] = {}
    while len(rows) < n_samples:
        label = int(len(rows) < n_positive)
        fact = other = draw_fact(rng, names, rng.choice(RELATIONS))
        if label == 0 and rng.random() < hard_share:
            other = _change(rng, names, fact)
        elif label == 0:
            unlike = [one for one in RELATIONS if one.frame != fact.relation.frame]
            other = draw_fact(rng, names, rng.choice(unlike))
        n_wordings = min(len(fact.relation.wordings), len(other.relation.wordings))
        places = rng.sample(range(n_wordings), 2)
        told = [one.tell(one.relation.wordings[i]) for one, i in zip((fact, other), places)]
        pair = f"{told[0]}.", f"{told[1]}."
        rows.setdefault(frozenset(pair), (pair, label))
    shuffled = list(rows.values())
    rng.shuffle(shuffled)
    return [pair for pair, _ in shuffled], np.array([label for _, label in shuffled])


def _change(rng: random.Random, names: Names, fact: Fact) -> Fact:
    """Swap the two names that a fact tells, or change one thing or the verb."""
    relation, values = fact
    if "B" in values and rng.random() < 0.5:
        return Fact(relation, {**values, "A": values["B"], "B": values["A"]})
    part = rng.choice(["verb", *(slot for slot in values if slot != "T")])
    if part == "verb":
        same_frame = [one for one in RELATIONS if one.frame == relation.frame and one != relation]
        return Fact(rng.choice(same_frame), values)
    kept = {slot: value for slot, value in values.items() if slot != part}
    while (other := draw_fact(rng, names, relation, kept)) == fact:
        pass
    return other
