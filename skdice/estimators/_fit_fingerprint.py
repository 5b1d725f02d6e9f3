"""Which fit a checkpoint belongs to."""

import os
from typing import Any

import numpy as np

from .._digest import digest
from ..io._manifest import installed_versions


def check_directory(owner: str, directory: Any, random_state: Any) -> None:
    """Check ``checkpoint_dir``, and that the fit can be found again by its seed."""
    if not isinstance(directory, str | os.PathLike) or not os.fspath(directory):
        raise ValueError(
            f"The 'checkpoint_dir' parameter of {owner} must be a directory (str or PathLike) or "
            f"None. Got {directory!r} instead."
        )
    if random_state is None:
        raise ValueError(
            f"checkpoint_dir={os.fspath(directory)!r} needs a random_state, best an int: with "
            f"None every fit is another one, and none could go on from a checkpoint."
        )


def fit_fingerprint(estimator: Any, rng: np.random.Generator, *parts: Any) -> str:
    """Return the same str for the same fit, in every process.

    Parameters
    ----------
    estimator : estimator
        Its class and parameters count, but those that do not change what is learned.
    rng : numpy.random.Generator
        Of the order of the texts, before it is drawn from.
    *parts
        What else the fit depends on: the data, above all.
    """
    return digest([estimator, installed_versions(), rng, *parts])
