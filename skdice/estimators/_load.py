"""Loading of fitted estimators of any class."""

import os
from importlib import import_module
from typing import Any

from ._base import TextEstimator
from ._persistence import load_estimator


def load_pretrained(
    directory: str | os.PathLike[str],
    *,
    device: str | None = None,
    revision: str | None = None,
) -> TextEstimator[Any]:
    """Load the estimator that a directory holds, of whatever class it is.

    Parameters
    ----------
    directory, device, revision
        As of ``from_pretrained`` of an estimator, such as :meth:`DiceTokenTagger.from_pretrained`.

    Returns
    -------
    estimator
        Fitted, as it was saved.

    Raises
    ------
    ImportError, TypeError, ValueError
        As there; also if the directory has a class that skdice does not have.

    Examples
    --------
    >>> from skdice.estimators import load_pretrained
    >>> tagger.save_pretrained("tagger")  # doctest: +SKIP
    >>> load_pretrained("tagger").predict([["John", "lives", "in", "Oslo"]])  # doctest: +SKIP
    array([list(['B-PER', 'O', 'O', 'B-LOC'])], dtype=object)
    """
    package: Any = import_module(__package__)
    classes = [getattr(package, name) for name in package.__all__ if name.startswith("Dice")]
    estimator: TextEstimator[Any] = load_estimator(
        directory, classes, device=device, revision=revision
    )
    return estimator
