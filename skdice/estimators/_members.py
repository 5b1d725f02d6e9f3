"""The networks of a fit, which is one unless ``n_members`` says otherwise."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

_HISTORY = ("epoch", "train_loss", "valid_score", "lr", "n_texts", "dur")


class Member(NamedTuple):
    """A network of a fit; its seed is for torch, its generator for the order of the texts."""

    number: int
    seed: int
    rng: np.random.Generator


def members_of(seed: int, rng: np.random.Generator, n: int) -> list[Member]:
    """Return the members of a fit; the first has this seed and generator, the others their own."""
    others = np.random.SeedSequence(seed).generate_state(n - 1).tolist()
    rngs = [rng, *map(np.random.default_rng, others)]
    return [Member(i, own, own_rng) for i, (own, own_rng) in enumerate(zip([seed, *others], rngs))]


def history_of(net: Any) -> pd.DataFrame:
    """Return a row per epoch of a trained net: loss, validation score, learning rate, seconds."""
    rows = [{name: row[name] for name in _HISTORY if name in row} for row in net.history]
    return pd.DataFrame(rows).set_index("epoch") if rows else pd.DataFrame()


def mean_history(histories: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the means over members, epoch by epoch, and the seconds of all."""
    by_epoch = pd.concat(histories).groupby(level=0)
    mean: pd.DataFrame = by_epoch.mean()
    if "dur" in mean:
        mean["dur"] = by_epoch["dur"].sum()
    return mean
