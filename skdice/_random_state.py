"""From a user's random_state to a private generator."""

import random
from numbers import Integral
from typing import TypeAlias

import numpy as np

from ._parameters import not_allowed

RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None


def make_rng(random_state: RandomState, owner: str) -> random.Random:
    """Return a private generator; one given by the user is advanced, as scikit-learn does.

    A `random_state` of another kind or a negative int is a ValueError, which calls the function
    `owner`.
    """
    if random_state is None:
        return random.Random()
    if isinstance(random_state, np.random.RandomState):
        return random.Random(int(random_state.randint(2**31 - 1)))
    if isinstance(random_state, np.random.Generator):
        return random.Random(int(random_state.integers(2**63 - 1)))
    is_int = isinstance(random_state, Integral) and not isinstance(random_state, bool)
    if is_int and random_state >= 0:
        return random.Random(int(random_state))
    allowed = "an int >= 0, a numpy RandomState, a numpy Generator or None"
    raise not_allowed(owner, "random_state", allowed, random_state)
