"""Loading: every file is checked before anything is made of it, and no code is run."""

from pathlib import Path

from ._manifest import MANIFEST, Manifest, read_manifest
from ._network import check_loads_nothing_else


def read(place: Path) -> Manifest:
    """Return what a saved directory holds, when its files are checked.

    Raises
    ------
    ValueError
        If there is no directory of skdice, or it is damaged, or newer than this skdice, or has
        something that transformers would load from elsewhere.
    """
    check_saved(place)
    manifest = read_manifest(place)
    check_loads_nothing_else(place)
    return manifest


def check_saved(place: Path) -> None:
    """Raise a ValueError unless there is a directory of skdice."""
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
