"""Checkpoints: the state of a fit is written after every epoch, so that it can be resumed."""

import os
from typing import Any

import torch

from .._files import as_path, check_not_inside_saved, explained, replacing_file

_FILE = "state.pt"


class DirectoryCheckpoint:
    """The state of one fit, in a directory of its own, which ``fingerprint`` names.

    The file is read as tensors, numbers, strings, lists and dicts only, so that no code in it runs.
    A new state replaces the last one as a whole, or not at all.
    """

    def __init__(self, directory: str | os.PathLike[str], fingerprint: str) -> None:
        self.path = as_path(directory) / fingerprint
        check_not_inside_saved(self.path)

    def load(self) -> dict[str, Any] | None:
        """Return the state that was saved last, None if there is none."""
        if not (self.path / _FILE).exists():
            return None
        try:
            return dict(torch.load(self.path / _FILE, map_location="cpu", weights_only=True))
        except Exception as error:  # Each way of damage has errors of its own.
            raise self.damaged(error) from error

    def damaged(self, error: Exception) -> ValueError:
        """Return the error for a state that cannot be read, or is of another fit."""
        return ValueError(
            f"The checkpoint {str(self.path)!r} is damaged ({error!r}). Delete it, and the fit "
            f"starts afresh."
        )

    def save(self, state: dict[str, Any]) -> None:
        """Replace the last state by this one when this one is completely written."""
        with explained(self.path, "The checkpoint"):
            self.path.mkdir(parents=True, exist_ok=True)
            with replacing_file(self.path / _FILE) as new, new.open("wb") as file:
                torch.save(state, file)
