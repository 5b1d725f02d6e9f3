"""Loading: every file is checked before anything is made of it, and no code is run."""

import os
from pathlib import Path
from typing import Any

from ._manifest import MANIFEST, Manifest, read_estimator_name, read_manifest
from ._network import check_loads_nothing_else
from ._replace import as_path, read_one_version


def load_pretrained(directory: str | os.PathLike[str], *, device: str | None = None) -> Any:
    """Load the estimator that a directory holds, of whatever class it is.

    Parameters
    ----------
    directory : str or PathLike
        What ``save_pretrained`` of an estimator wrote.
    device : str, optional
        The ``device`` of the estimator; by default the one it was saved with.

    Returns
    -------
    estimator
        Fitted, as it was saved.

    Raises
    ------
    ValueError
        If there is no directory of skdice, or it is damaged, newer than this skdice, or has a
        class that skdice does not have.

    Examples
    --------
    >>> from skdice.io import load_pretrained
    >>> tagger.save_pretrained("tagger")  # doctest: +SKIP
    >>> load_pretrained("tagger").predict([["John", "lives", "in", "Oslo"]])  # doctest: +SKIP
    array([list(['B-PER', 'O', 'O', 'B-LOC'])], dtype=object)
    """
    return read_one_version(as_path(directory), lambda place: _load(place, device))


def read(place: Path) -> Manifest:
    """Return what a saved directory holds, when its files are checked.

    Raises
    ------
    ValueError
        If there is no directory of skdice, or it is damaged, or newer than this skdice, or has
        something that transformers would load from elsewhere.
    """
    _check_saved(place)
    manifest = read_manifest(place)
    check_loads_nothing_else(place)
    return manifest


def _load(place: Path, device: str | None) -> Any:
    from .. import estimators  # They build on this package.

    _check_saved(place)
    name = read_estimator_name(place)
    known = [public for public in estimators.__all__ if public.startswith("Dice")]
    if name not in known:
        raise ValueError(
            f"The directory {str(place)!r} holds a {name}, which this skdice does not have; it has "
            f"{', '.join(known)}. Upgrade it, or call {name}.from_pretrained if the class is your "
            f"own."
        )
    return getattr(estimators, name)._read(place, device)


def _check_saved(place: Path) -> None:
    shown = repr(str(place))
    if not place.exists():
        raise ValueError(
            f"There is no directory {shown}. Pass a directory that save_pretrained wrote; one on "
            f"a hub has to be downloaded first."
        )
    if not place.is_dir():
        raise ValueError(
            f"{shown} is a file; pass the directory that save_pretrained wrote, with {MANIFEST}."
        )
    if not (place / MANIFEST).is_file():
        raise ValueError(
            f"The directory {shown} was not saved by skdice: it has no {MANIFEST}. A model of "
            f"transformers is the base of an estimator, for instance DiceTokenTagger(model=...)."
        )
