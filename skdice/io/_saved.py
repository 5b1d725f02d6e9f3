"""Where saved estimators lie: a directory, which is written beside its place first, or the hub."""

import os
import re
from pathlib import Path
from typing import Any

from .._files import as_path, current, explained, replacing
from ._fitted import Fitted
from ._manifest import CARD, FILES, MANIFEST, write_manifest
from ._model_card import model_card
from ._network import write_network
from ._values import class_name

_KNOWN = (*sorted(FILES), MANIFEST, CARD)
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


def save(
    directory: str | os.PathLike[str], kind: type, parameters: dict[str, Any], fitted: Fitted
) -> None:
    """Write an estimator of some kind as a directory that replaces an older one of skdice.

    It does so as a whole, or not at all.
    """
    place = check_place(directory)
    with explained(place, "The estimator"), replacing(place) as new:
        write_network(new, fitted)
        card = model_card(place.name, kind, parameters, fitted)
        # A label may have lone surrogates.
        (new / CARD).write_text(card, encoding="utf-8", errors="backslashreplace")
        write_manifest(new, class_name(kind), parameters, fitted)


def check_place(directory: str | os.PathLike[str]) -> Path:
    """Return where a save goes; raise what :func:`save` would raise before it writes anything."""
    place = as_path(directory)
    with explained(place, "The estimator"):
        place.parent.mkdir(parents=True, exist_ok=True)
        found = current(place)
        if found.exists() and not found.is_dir():
            raise ValueError(f"{str(place)!r} is a file; pass the path of a directory.")
        names = {path.name for path in found.iterdir()} if found.exists() else set()
    if foreign := sorted(names.difference(_KNOWN if MANIFEST in names else ())):
        raise ValueError(
            f"The directory {str(place)!r} has files that skdice did not save: "
            f"{', '.join(foreign[:10])}. Nothing was written, since a save replaces the whole "
            f"directory. Move them away or pass another directory."
        )
    return place


def upload(directory: Path, repo_id: str, *, private: bool | None, revision: str | None) -> str:
    """Replace what a repository of the hub has by a directory, and return the URL of the commit."""
    from huggingface_hub import HfApi

    api = HfApi(library_name="skdice")
    repo_id = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
    if revision is not None:
        api.create_branch(repo_id, branch=revision, exist_ok=True)
    commit = api.upload_folder(
        repo_id=repo_id,
        folder_path=directory,
        revision=revision,
        commit_message="Estimator of skdice",
        delete_patterns="*",
    )
    return str(commit.commit_url)


def find_saved(directory: str | os.PathLike[str], revision: str | None) -> Path:
    """Return the absolute path of a saved estimator; of one on the hub, that in the hub's cache.

    It is on the hub if it looks like an id, and there is no directory where such a path would lie.
    """
    path = as_path(directory)
    is_here = path.exists() or path.parent.exists()
    if not (isinstance(directory, str) and _HUB_ID.fullmatch(directory)) or is_here:
        if revision is not None:
            raise ValueError(
                f"revision is for ids of the hub; got {revision!r} with the path {directory!r}."
            )
        return path
    from huggingface_hub import snapshot_download

    try:
        return as_path(
            snapshot_download(
                directory, revision=revision, allow_patterns=[*_KNOWN], library_name="skdice"
            )
        )
    except Exception as error:  # Each HTTP library has errors of its own.
        raise ValueError(
            f"There is no directory {directory!r} here, and the hub did not give one "
            f"({type(error).__name__}): {' '.join(str(error).split())}"
        ) from error
