"""Which rows are trained on, and which are kept to validate on."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def split_rows(
    n_rows: int, fraction: float | None, rng: np.random.Generator, classes: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and, if asked for, those to validate on.

    Parameters
    ----------
    n_rows : int
    fraction : float or None
        Share of the rows to validate on; None for none.
    rng : Generator
    classes : ndarray of int of shape (n_rows,), optional
        The classes then have equal shares in both parts, and all of them are trained on.

    Raises
    ------
    ValueError
        If no row is left to train on, or no class has two rows.
    """
    rows = np.arange(n_rows)
    if fraction is None:
        return rows, rows[:0]
    n_valid = max(1, round(fraction * n_rows))
    if n_valid >= n_rows:
        raise ValueError(
            f"validation_fraction={fraction!r} leaves no row to train on; got {n_rows} rows."
        )
    order = rng.permutation(n_rows)
    if classes is None:
        valid = order[:n_valid]
    else:
        order = order[np.argsort(classes[order], kind="stable")]
        free = order[np.diff(classes[order], prepend=-1) == 0]
        n_valid = min(n_valid, len(free))
        if not n_valid:
            raise ValueError(
                f"validation_fraction={fraction!r} needs a class with two rows or more; got one "
                f"row of each class."
            )
        # Equal steps through the rows, which are sorted by class.
        valid = free[((np.arange(n_valid) + rng.random()) * len(free) / n_valid).astype(int)]
    return np.setdiff1d(rows, valid), np.sort(valid)


def split_groups(
    groups: Sequence[Any], fraction: float | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Split rows so that those of one group are in the same part, if there are several groups."""
    numbers: dict[Any, int] = {}
    group = np.array([numbers.setdefault(name, len(numbers)) for name in groups])
    if len(numbers) == 1:
        return split_rows(len(group), fraction, rng)
    train, valid = split_rows(len(numbers), fraction, rng)
    return np.flatnonzero(np.isin(group, train)), np.flatnonzero(np.isin(group, valid))
