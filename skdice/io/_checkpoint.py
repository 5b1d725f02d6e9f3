"""Checkpoints: what a fit has come to, written after every epoch, so that it can go on."""

import json
import os
from typing import Any

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from .._digest import digest, weights_digest
from .._files import as_path, explained, replacing_file

_FILE = "state.safetensors"


class DirectoryCheckpoint:
    """The state of one fit, in a directory of its own, which ``fingerprint`` names.

    It is one file of safetensors, with all that is no tensor as JSON in its header, and no pickle.
    A new state replaces the last one as a whole, or not at all.
    """

    def __init__(self, directory: str | os.PathLike[str], fingerprint: str) -> None:
        self.directory = os.fspath(directory)
        self.path = as_path(directory) / fingerprint

    def load(self) -> dict[str, Any] | None:
        """Return the state that was saved last, None if there is none."""
        if not (self.path / _FILE).exists():
            return None
        try:
            with safe_open(self.path / _FILE, "pt") as file:
                header = file.metadata()
                names = file.keys()
                tensors = {name: file.get_tensor(name) for name in names}
            if header["digest"] != _digest(header["state"], tensors):
                raise ValueError("it was changed after it was saved")
            return dict(_join(json.loads(header["state"]), tensors))
        except Exception as error:  # Each of the libraries has errors of its own.
            raise self.damaged(error) from error

    def damaged(self, error: Exception) -> ValueError:
        """Return the error for a state that cannot be read, or is of another fit."""
        return ValueError(
            f"The checkpoint {str(self.path)!r} is damaged ({error!r}). Delete it, and the fit "
            f"starts afresh."
        )

    def save(self, state: dict[str, Any]) -> None:
        """Write a state, which takes the place of the last one when it is complete."""
        tensors: dict[str, Tensor] = {}
        text = json.dumps(_split(state, tensors))
        header = {"state": text, "digest": _digest(text, tensors)}
        with explained(self.path, "The checkpoint"):
            self.path.mkdir(parents=True, exist_ok=True)
            with replacing_file(self.path / _FILE) as new:
                save_file(tensors, new, metadata=header)


def _digest(text: str, tensors: dict[str, Tensor]) -> str:
    return digest([text, weights_digest(tensors.items())])


def _split(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Return a value as JSON can hold it, with its tensors moved to ``tensors``."""
    if isinstance(value, Tensor):
        name = str(len(tensors))
        # No two may lie in the same memory.
        tensors[name] = value.detach().cpu().contiguous().clone()
        return {"tensor": name}
    if isinstance(value, dict):  # Its keys may be int.
        return {"dict": [[key, _split(part, tensors)] for key, part in value.items()]}
    if isinstance(value, list | tuple):
        return [_split(part, tensors) for part in value]
    return value


def _join(tree: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(tree, list):
        return [_join(part, tensors) for part in tree]
    if not isinstance(tree, dict):
        return tree
    if "tensor" in tree:
        return tensors[tree["tensor"]]
    return {key: _join(part, tensors) for key, part in tree["dict"]}
