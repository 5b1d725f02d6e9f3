"""Checkpoints: what a fit has come to, written after every epoch, so that it can go on."""

import json
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ._manifest import content_digest, file_digest
from ._replace import as_path, current, read_one_version, replacing
from ._system_errors import explained

_TENSORS = "tensors.safetensors"
_TREE = "state.json"


class DirectoryCheckpoint:
    """The state of one fit, in a directory of its own.

    There is no pickle in it. A new state replaces the last one as a whole, or not at all.

    Parameters
    ----------
    directory : str or PathLike
        Where the states of all fits are.
    fingerprint : str
        Of this fit: its state is found again by it.
    """

    def __init__(self, directory: str | os.PathLike[str], fingerprint: str) -> None:
        self.directory = os.fspath(directory)
        self.path = as_path(directory) / fingerprint

    def load(self) -> dict[str, Any] | None:
        """Return the state that was saved last, None if there is none.

        Raises
        ------
        ValueError
            If it is damaged.
        """
        if not current(self.path).exists():
            return None
        return read_one_version(self.path, _read)

    def damaged(self, error: Exception) -> ValueError:
        """Return the error for a state that is of another fit, or of none."""
        return _damaged(self.path, error)

    def save(self, state: dict[str, Any]) -> None:
        """Write a state, which takes the place of the last one when it is complete.

        Raises
        ------
        OSError
            If the disk is full, or the file system does not let us; the last one is intact.
        """
        from safetensors.torch import save_file

        tensors: dict[str, Tensor] = {}
        content = {"state": _split(state, tensors)}
        with explained(self.path, "The checkpoint"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self.path) as new:
                save_file(_without_shared_memory(tensors), new / _TENSORS)
                content["tensors_sha256"] = file_digest(new / _TENSORS)
                content["sha256"] = content_digest(content)
                (new / _TREE).write_text(json.dumps(content), encoding="utf-8")


def _read(place: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    try:
        content = json.loads((place / _TREE).read_text(encoding="utf-8"))
        if content.pop("sha256") != content_digest(content):
            raise ValueError(f"{_TREE} was changed after it was saved")
        if content["tensors_sha256"] != file_digest(place / _TENSORS):
            raise ValueError(f"{_TENSORS} was changed after it was saved")
        return dict(_join(content["state"], load_file(place / _TENSORS)))
    except Exception as error:  # Each of the libraries has errors of its own.
        raise _damaged(place, error) from error


def _damaged(place: Path, error: Exception) -> ValueError:
    return ValueError(
        f"The checkpoint {str(place)!r} is damaged ({error!r}). Delete it, and the fit starts "
        f"afresh."
    )


def _split(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Return a value as JSON can hold it, with its tensors moved to ``tensors``."""
    if isinstance(value, Tensor):
        name = str(len(tensors))
        tensors[name] = value.detach().cpu().contiguous()
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


def _without_shared_memory(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors of which no two lie in the same memory, as safetensors wants them."""
    seen: set[int] = set()
    result = {}
    for name, tensor in tensors.items():
        address = tensor.untyped_storage().data_ptr()
        result[name] = torch.clone(tensor) if address in seen else tensor
        seen.add(address)
    return result
