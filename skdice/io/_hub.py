"""Saved directories on the Hugging Face hub."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import huggingface_hub as hub

from .._files import as_path, current
from .._pretrained import is_hub_id
from ._saved import CARD, KNOWN


def download(name: str | os.PathLike[str], revision: str | None, token: str | None) -> Path:
    """Return the directory of a name; if it is not here, a copy of the hub's."""
    place = as_path(name)
    if os.path.exists(current(place)):
        if revision is not None:
            raise ValueError(f"revision is for models of the hub, and {str(place)!r} is here.")
        return place
    if not isinstance(name, str) or "/" not in name or not is_hub_id(name):
        raise ValueError(f"{str(name)!r:.200} is no directory here, and no 'user/model' of a hub.")
    what = f"{name!r} is no directory here, and the hub did not give it"
    with _explained(f"{what}. Check its name, the revision, the connection and the token."):
        how: Any = {"revision": revision, "token": token, "allow_patterns": sorted(KNOWN)}
        return Path(hub.snapshot_download(name, **how))


def upload(
    directory: Path, repo_id: str, private: bool | None, token: str | None, message: str
) -> None:
    """Put a saved directory in the place of an older one, in one commit; its card has the id."""
    with _explained(
        f"{repo_id!r} could not be uploaded to the hub. Check its name, the connection, and that "
        f"the token of hf auth login, or the one that was passed, may write there."
    ):
        made = hub.create_repo(repo_id, private=private, token=token, exist_ok=True)
        if "/" not in repo_id:  # The name of the user comes before it.
            repo_id = made.repo_id
        card = directory / CARD
        text = card.read_text(encoding="utf-8")
        here, there = (f"from_pretrained({name!r})" for name in (directory.name, repo_id))
        card.write_text(text.replace(here, there), encoding="utf-8")
        how: Any = {"token": token, "commit_message": message, "delete_patterns": sorted(KNOWN)}
        hub.upload_folder(repo_id=repo_id, folder_path=directory, **how)


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Put what failed, and what to do, before what the hub's library says."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # Each HTTP library has errors of its own.
        said = " ".join(str(error).split())
        raise ValueError(f"{what} The hub says ({type(error).__name__}): {said}") from error
