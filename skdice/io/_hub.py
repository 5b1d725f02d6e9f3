"""Saved directories on the Hugging Face hub."""

import os
import re
from pathlib import Path
from typing import Any

import huggingface_hub as hub

from .._files import as_path, current
from ._saved import CARD, KNOWN


def download(name: str | os.PathLike[str], revision: str | None, token: str | None) -> Path:
    """Return the directory of a name or, where there is none here, a copy of the hub's."""
    place = as_path(name)
    if current(place).exists():
        if revision is not None:
            raise ValueError(f"revision is for models of the hub, and {str(place)!r} is here.")
        return place
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name, re.ASCII):
        raise ValueError(f"{str(name)!r} is no directory here, and no 'user/model' of a hub.")
    options: Any = {"revision": revision, "token": token, "allow_patterns": sorted(KNOWN)}
    try:
        return Path(hub.snapshot_download(name, **options))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{name!r} is no directory here, and the hub did not give it. Check its name, the "
            f"revision, the connection and, if it is private, the token. The hub says "
            f"({type(error).__name__}): {' '.join(str(error).split())}"
        ) from error


def upload(
    directory: Path, repo_id: str, private: bool | None, token: str | None, commit_message: str
) -> None:
    """Put a saved directory in the place of an older one, in one commit; its card has the id."""
    card = directory / CARD
    text = card.read_text(encoding="utf-8")
    here, there = (f"from_pretrained({name!r})" for name in (directory.name, repo_id))
    card.write_text(text.replace(here, there), encoding="utf-8")
    hub.create_repo(repo_id, private=private, token=token, exist_ok=True)
    options: Any = {"commit_message": commit_message, "delete_patterns": sorted(KNOWN)}
    hub.upload_folder(repo_id=repo_id, folder_path=directory, token=token, **options)
