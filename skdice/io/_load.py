"""Loading: every file is checked before anything is made of it, and no code is run."""

import os
from pathlib import Path
from typing import Any

from ._manifest import MANIFEST, Manifest, read_estimator_name, read_manifest
from ._network import check_no_code
from ._replace import as_path, current


def read(directory: str | os.PathLike[str]) -> tuple[Path, Manifest]:
    """Return where a saved estimator is, and what it is.

    Raises
    ------
    TypeError
        If ``directory`` is no path.
    ValueError
        If there is no directory of skdice, or it is damaged, or newer than this skdice.
    """
    place = _locate(directory)
    manifest = read_manifest(place)
    check_no_code(place)
    return place, manifest


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
    from .. import estimators  # They build on this package.

    place = _locate(directory)
    name = read_estimator_name(place)
    known = [public for public in estimators.__all__ if public.startswith("Dice")]
    if name not in known:
        raise ValueError(
            f"The directory {str(place)!r} holds a {name}, which this skdice does not have; it has "
            f"{', '.join(known)}. Upgrade it, or call {name}.from_pretrained if the class is your "
            f"own."
        )
    return getattr(estimators, name).from_pretrained(place, device=device)


def _locate(directory: str | os.PathLike[str]) -> Path:
    place = current(as_path(directory))
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
    return place
