"""What is trained: once for all members of a fit, and for each of them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..text._encoding import EncodedDataset


class Lesson(NamedTuple):
    """What all members of a fit learn.

    Attributes
    ----------
    dataset : EncodedDataset
        To train on.
    loss : Loss, or a criterion that forms several
    n_outputs : int
    precision : {"fp32", "bf16", "fp16"}
        To train in. Where it is measured, processes could find different ones.
    held_out : object
        What validation looks at, by which a checkpoint is found to be of this fit.
    validate : callable or None
        Gives the validation score of the network that is being trained.
    """

    dataset: EncodedDataset
    loss: Any
    n_outputs: int
    precision: str
    held_out: Any
    validate: Callable[[], float] | None


class Member(NamedTuple):
    """A network of a fit.

    Attributes
    ----------
    number : int
    first_seed, seed : int
        For torch: of new weights, and of all that comes after them, such as dropout.
    rng : Generator
        For the order of the texts.
    """

    number: int
    first_seed: int
    seed: int
    rng: np.random.Generator


def members_of(seed: int, rng: np.random.Generator, n: int, *, begin_alike: bool) -> list[Member]:
    """Return the members of a fit.

    Parameters
    ----------
    seed, rng : int, Generator
        Of the first; the others have their own.
    n : int
    begin_alike : bool
        Whether all have the new weights of the first, which means of weights need.
    """
    others = np.random.SeedSequence(seed).generate_state(n - 1).tolist()
    rngs = [rng, *map(np.random.default_rng, others)]
    return [
        Member(i, seed if begin_alike else own, own, own_rng)
        for i, (own, own_rng) in enumerate(zip([seed, *others], rngs))
    ]
