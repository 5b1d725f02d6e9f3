"""One digest of all that a fit depends on, the same in every process."""

import dataclasses
import os
import pickle
from collections.abc import Mapping, Set
from importlib.metadata import version
from pathlib import Path
from types import NoneType
from typing import Any

import joblib
import numpy as np

from ._files import sha256
from ._parameters import relevant_parameters
from ._version import __version__

# Hexadecimal digits of a digest.
_LENGTH = 16
# Lists of these types have the same text in every process.
_SCALARS = frozenset({str, int, float, bool, NoneType})
# Files beside a base model that are not read: documentation, and other formats of the weights.
_NOT_LOADED = (".md", ".h5", ".msgpack", ".ot", ".onnx")
# Packages that the results of a fit depend on.
_PACKAGES = ("torch", "transformers", "scikit-learn")


def installed_versions() -> dict[str, str]:
    """Return the versions of skdice and of what it builds on."""
    return {"skdice": __version__, **{name: version(name) for name in _PACKAGES}}


def digest(value: Any) -> str:
    """Return a digest of a value by joblib.hash; equal values have equal ones in every process.

    Estimators, losses and callbacks count by their class and the parameters that change what is
    learned, base models by their files, functions and classes by their names. It is a ValueError if
    another process could not tell the value from others, such as a lambda or a lock.
    """
    try:
        found: str = joblib.hash(_plain(value))[:_LENGTH]
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError) as error:
        raise ValueError(
            f"Something that a fit depends on cannot be told from others in another process: "
            f"{error.args[0]}. Define functions at the top level of a module."
        ) from error
    return found


def base_model_digest(model: str | os.PathLike[str]) -> str:
    """Return a digest of the files of a local base model, or the id of one on the hub."""
    if not os.path.isdir(model):
        return os.fspath(model)
    files = [path for path in Path(model).iterdir() if path.is_file() and path.name[0] != "."]
    return digest({path.name: sha256(path) for path in files if path.suffix not in _NOT_LOADED})


def _plain(value: Any) -> Any:
    """Return a value as lists, texts and arrays, which joblib hashes alike in every process."""
    if isinstance(value, type):
        return ("class", f"{value.__module__}.{value.__qualname__}")
    if hasattr(value, "get_params"):
        parameters = relevant_parameters(value)
        if isinstance(parameters.get("model"), str | os.PathLike):
            parameters["model"] = base_model_digest(parameters["model"])
        return [_plain(type(value)), _plain(parameters)]
    if dataclasses.is_dataclass(value):
        fields = [getattr(value, field.name) for field in dataclasses.fields(value)]
        return [_plain(type(value)), _plain(fields)]
    if isinstance(value, Mapping):
        items = [(_plain(name), _plain(item)) for name, item in value.items()]
        return ["dict", *sorted(items, key=lambda item: ascii(item[0]))]
    if isinstance(value, Set):
        return ["set", *sorted(map(_plain, value), key=ascii)]
    if hasattr(value, "columns"):  # A table.
        return ["table", *([name, _plain(value[name])] for name in value.columns)]
    if hasattr(value, "detach"):  # A tensor; numpy does not have all of its types.
        import torch

        content = value.detach().cpu().reshape(-1, 1).view(torch.uint8).numpy()
        return ["tensor", str(value.dtype), tuple(value.shape), content]
    if isinstance(value, np.ndarray) and value.ndim > 1 and not value.dtype.hasobject:
        return np.ascontiguousarray(value)
    for method in ("tolist", "to_list"):  # Arrays, columns and numbers of numpy.
        if hasattr(value, method):
            value = getattr(value, method)()
    if isinstance(value, list | tuple):
        parts = value if _SCALARS.issuperset(map(type, value)) else [*map(_plain, value)]
        # The words of a sentence become one text, for speed.
        return ("items", ascii([*parts])) if _SCALARS.issuperset(map(type, parts)) else parts
    return os.fspath(value) if isinstance(value, os.PathLike) else value
