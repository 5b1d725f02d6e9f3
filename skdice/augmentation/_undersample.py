"""Random down-sampling of the negatives."""

import random
from collections.abc import Hashable, Sequence

from .._inputs import as_python
from .._parameters import check_number
from .._random_state import RandomState, make_rng
from ._labels import find_positive_label, read_labels
from ._rows import SomeLabels, SomeRows, check_container, take_rows


def undersample_negatives(
    X: SomeRows,
    y: SomeLabels,
    *,
    ratio: float = 1.0,
    pos_label: Hashable | None = None,
    random_state: RandomState = None,
) -> tuple[SomeRows, SomeLabels]:
    """Drop negatives at random until there are `ratio` of them for each positive.

    Parameters
    ----------
    X : list, tuple, Series, array or DataFrame
        Texts, pairs or any other rows; they are not looked into.
    y : list, tuple, Series or array of shape (n_rows,)
        Labels.
    ratio : float, default=1.0
        Negatives to keep for each positive; their number is rounded.
    pos_label : label, default=None
        The positive label; all others are negatives. None is the larger of exactly two labels.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the draw. NumPy's global random state is neither read nor changed.

    Returns
    -------
    X, y : containers as given
        All positives and the kept negatives, in their old order. Pandas objects keep their index.
        Of other libraries (polars, pyarrow, datasets) columns come out as lists, tables as a
        DataFrame of pandas.

    Raises
    ------
    TypeError
        If X or y is of another kind.
    ValueError
        If a parameter is invalid, or there are fewer negatives than `ratio` asks for.

    See Also
    --------
    make_training_sets : This set and four others, for a comparison.

    Examples
    --------
    >>> from skdice.augmentation import undersample_negatives
    >>> texts = ["no", "no", "yes", "no", "no", "yes"]
    >>> X, y = undersample_negatives(texts, [0, 0, 1, 0, 0, 1], random_state=0)
    >>> X, y
    (['no', 'yes', 'no', 'yes'], [0, 1, 0, 1])
    """
    check_number(
        "undersample_negatives", "ratio", ratio, low=0, high=float("inf"), closed="neither"
    )
    rng = make_rng(random_state, "undersample_negatives")
    X, y = as_python(X), as_python(y)
    check_container(X)
    labels = read_labels(y, len(X))
    positive = find_positive_label(labels, pos_label)
    is_positive = [label == positive for label in labels]
    n_positives = sum(is_positive)
    n_negatives = len(labels) - n_positives
    n_kept = round(min(ratio * n_positives, n_negatives + 1))
    if not 1 <= n_kept <= n_negatives:
        raise ValueError(
            f"ratio={ratio!r} asks for {ratio * n_positives:g} negatives, {ratio:g} for each of "
            f"the {n_positives} positives; there are {n_negatives} to choose from, and at least 1 "
            "must stay."
        )
    index = draw_negatives(is_positive, n_kept, rng)
    return take_rows(X, index), take_rows(y, index)


def draw_negatives(is_positive: Sequence[bool], n_kept: int, rng: random.Random) -> list[int]:
    """Return the rows of all positives and of `n_kept` random negatives, ascending."""
    negatives = [i for i, flag in enumerate(is_positive) if not flag]
    positives = [i for i, flag in enumerate(is_positive) if flag]
    return sorted(positives + rng.sample(negatives, n_kept))
