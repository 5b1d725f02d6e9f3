"""Saving: a directory is written beside its place and takes it when it is complete."""

import os
from pathlib import Path

from ._manifest import CARD, MANIFEST, listed_files, write_manifest
from ._model_card import Run, model_card
from ._network import SavedNetwork, write_network
from ._replace import as_path, current, explained, replacing


def save(directory: str | os.PathLike[str], network: SavedNetwork, run: Run) -> None:
    """Write a directory that replaces an older one of skdice as a whole, or not at all."""
    place = check_place(directory)
    with explained(place, "The estimator"), replacing(place) as new:
        write_network(new, network)
        card = model_card(run, place.name)
        # A label may have lone surrogates.
        (new / CARD).write_text(card, encoding="utf-8", errors="backslashreplace")
        write_manifest(new, run.manifest)


def check_place(directory: str | os.PathLike[str]) -> Path:
    """Return where a save goes; raise what :func:`save` would raise before it writes anything."""
    place = as_path(directory)
    with explained(place, "The estimator"):
        place.parent.mkdir(parents=True, exist_ok=True)
        foreign = _foreign_files(current(place))
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
        raise ValueError(f"{str(directory)!r} is a file; pass the path of a directory.")
    names = {path.name for path in directory.iterdir()}
    return sorted(names - (listed_files(directory) if MANIFEST in names else set()))
