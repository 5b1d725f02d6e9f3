"""Saving: a directory is written beside its place and takes it when it is complete."""

import os
from pathlib import Path

from ._manifest import CARD, MANIFEST, Manifest, listed_files, write_manifest
from ._model_card import Run, model_card
from ._network import SavedNetwork, write_network
from ._replace import as_path, explained, read_one_version, replacing


def save(
    directory: str | os.PathLike[str], manifest: Manifest, network: SavedNetwork, run: Run
) -> None:
    """Write a directory that replaces an older one of skdice as a whole, or not at all.

    Raises
    ------
    TypeError
        If ``directory`` is no path.
    ValueError
        If there is something else than a directory of skdice, or a value that JSON cannot hold.
    OSError
        If the disk is full, or the file system does not let us; what was there is intact.
    """
    place = check_place(directory)
    with explained(place, "The estimator"), replacing(place) as new:
        write_network(new, network)
        card = model_card(run, place.name, manifest.versions)
        # A label may have lone surrogates.
        (new / CARD).write_text(card, encoding="utf-8", errors="backslashreplace")
        write_manifest(new, manifest)


def check_place(directory: str | os.PathLike[str]) -> Path:
    """Return where a save goes; raise what :func:`save` would raise before it writes anything."""
    place = as_path(directory)
    with explained(place, "The estimator"):
        place.parent.mkdir(parents=True, exist_ok=True)
        foreign = read_one_version(place, _foreign_files)
    if foreign:
        more = f" and {len(foreign) - 10} more" if len(foreign) > 10 else ""
        raise ValueError(
            f"The directory {str(place)!r} has files that skdice did not save: "
            f"{', '.join(foreign[:10])}{more}. Nothing was written, since a save replaces the "
            f"whole directory. Move them away or pass another directory."
        )
    return place


def _foreign_files(directory: Path) -> list[str]:
    if not directory.exists():
        return []
    if not directory.is_dir():
        raise ValueError(
            f"{str(directory)!r} is a file; pass the path of a directory, new or saved before."
        )
    names = {path.name for path in directory.iterdir()}
    return sorted(names - (listed_files(directory) if MANIFEST in names else set()))
