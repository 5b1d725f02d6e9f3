"""Digests of values, estimators, data and base models, alike in every process."""

import dataclasses
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from pathlib import Path
from types import ModuleType, NoneType
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from ._inputs import column_names, list_items
from ._parameters import parameters_of

# These parameters of scikit-learn's estimators change how a fit runs, not what it learns.
_NEVER_COUNT = frozenset({"verbose", "n_jobs"})
# Equal lists of these types have the same text in Python.
_PLAIN = frozenset({str, int, float, bool, NoneType})
# Documentation, and weights in formats that are never loaded.
_NOT_LOADED = (".md", ".h5", ".msgpack", ".ot", ".onnx")


def digest(value: Any) -> str:
    """Return a digest of a value: rows, parameters, estimators, arrays, tables.

    Equal values have equal digests in every process; lists, tuples, Series and arrays of one
    dimension or of objects are equal if their items are. It is fast enough for a cache of rows.

    An estimator counts by its class and parameters, without those that do not change what it learns
    (``verbose``, ``n_jobs``, ``device``, ...). Functions and classes count by their names, not by
    their code. Other objects count by what pickle would keep of them.

    Raises
    ------
    ValueError
        If a value cannot be told from others in another process: a lambda or a function defined
        inside another one, a lock, an open file, or an object that refers to itself.
    """
    try:
        text = _text(value)
    except RecursionError as error:
        raise ValueError(
            f"An object of type {type(value).__qualname__} refers to itself, so that it cannot be "
            f"told from others."
        ) from error
    return hashlib.blake2b(text.encode("ascii"), digest_size=8).hexdigest()


def weights_digest(named: Iterable[tuple[str, Any]]) -> str:
    """Return a digest of named tensors of any type, in any order."""
    import torch

    blake = hashlib.blake2b(digest_size=16)
    for name, weight in sorted(named, key=lambda pair: pair[0]):
        blake.update(f"|{name} {weight.dtype} {tuple(weight.shape)}|".encode())
        flat = weight.detach().cpu().contiguous().reshape(-1)
        blake.update(flat.view(torch.uint8).numpy())
    return blake.hexdigest()


def relevant_parameters(estimator: BaseEstimator, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the parameters that decide what an estimator learns, or the part of each that does."""
    parameters, kind = estimator.get_params(deep=False), type(estimator)
    stated = parameters_of(kind) if dataclasses.is_dataclass(kind) else {}
    left_out = {name for name, part in stated.items() if part.counts == "never"}
    left_out |= _NEVER_COUNT | set(without)
    relevant = {name: parameters[name] for name in sorted(parameters) if name not in left_out}
    for name, part in stated.items():
        if name in relevant and part.counted is not None:
            relevant[name] = part.counted(relevant[name])
    return relevant


def _text(value: Any) -> str:
    """Return an ASCII text that only equal values have; the strings in it are quoted."""
    if isinstance(value, list | tuple):
        return _text_of_items(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return ascii(str.__str__(value))
    if value is None or isinstance(value, int | float | complex | bytes):
        return ascii(value)
    if hasattr(value, "detach"):  # A tensor.
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        return _text_of_array(value)
    if isinstance(value, Mapping):
        items = sorted(f"{_text(name)}: {_text(item)}" for name, item in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, Set):
        return f"set({sorted(map(_text, value))})"
    if sparse.issparse(value):
        rows = value.tocsr()
        return f"sparse{_text([rows.shape, rows.data, rows.indices, rows.indptr])}"
    if isinstance(value, os.PathLike):
        return _text(os.fspath(value))
    if isinstance(value, type):
        return _name(value)
    if hasattr(value, "get_params"):
        return f"{_name(type(value))}({_text(relevant_parameters(value))})"
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return f"{_name(type(value))}({_text(fields)})"
    if (names := column_names(value)) is not None:
        return f"table{_text([(name, value[name]) for name in names])}"
    if (rows := list_items(value)) is not None:
        return _text_of_items(rows)
    if hasattr(value, "__qualname__"):
        return _text_of_function(value)
    return f"object({_text(_pickled_parts(value))})"


def _text_of_items(items: Sequence[Any]) -> str:
    # The words of a sentence are turned into text in one step, for speed.
    if _PLAIN.issuperset(map(type, items)):
        return ascii(list(items))
    return f"[{', '.join(map(_text, items))}]"


def _text_of_array(array: np.ndarray) -> str:
    if array.ndim < 2 or array.dtype.kind in "OUST":
        return _text(array.tolist())
    content = hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).hexdigest()
    return f"array({array.dtype.str}, {array.shape}, {content})"


def _text_of_function(function: Any) -> str:
    name, owner = _name(function), getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, ModuleType):
        return f"{_text(owner)}.{name}"
    if "<" in name:
        raise ValueError(
            f"The function {name} has no name by which another process could find it. Define it "
            f"with def at the top level of a module."
        )
    return name


def _name(value: Any) -> str:
    return ascii(f"{value.__module__}.{value.__qualname__}")[1:-1]


def _pickled_parts(value: Any) -> Any:
    """Return what pickle would make an object of."""
    try:
        parts = value.__reduce_ex__(2)
    except (TypeError, AttributeError) as error:
        raise ValueError(
            f"An object of type {type(value).__qualname__} cannot be told from others in another "
            f"process: got {value!r}."
        ) from error
    if isinstance(parts, str):
        return parts
    # The last ones are iterators over items.
    return [list(part) if isinstance(part, Iterator) else part for part in parts]


def base_model_digest(model: str | os.PathLike[str]) -> str:
    """Return a digest of the files of a base model: weights, configuration, tokenizer.

    The model is a directory or a hub id, whose files are looked for in the hub's cache on this
    machine; the network is not used. The digest is "" if there are no weights on this machine yet.
    A file is read again only if its size or times have changed.
    """
    place = _directory(os.fspath(model))
    paths = [
        path
        for path in ([] if place is None else sorted(place.iterdir()))
        if path.name[0] != "." and path.suffix not in _NOT_LOADED and path.is_file()
    ]
    if not any(path.suffix in (".safetensors", ".bin") for path in paths):
        return ""
    return digest({path.name: _file_digest(path) for path in paths})


def base_model_digests(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return the digest of each base model among parameters (``model``, ``step__model``)."""
    return {
        name: base_model_digest(value)
        for name, value in sorted(parameters.items())
        if name.rpartition("__")[2] == "model" and isinstance(value, str | os.PathLike)
    }


def _directory(model: str) -> Path | None:
    if os.path.isdir(model):
        return Path(model)
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        config = try_to_load_from_cache(model, "config.json")
    except HFValidationError:  # Neither a directory nor a hub id.
        return None
    return Path(config).parent if isinstance(config, str) else None


def _file_digest(path: Path) -> str:
    status = path.stat()
    # The time of the last change of status cannot be set back, as that of the content can.
    stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return _content_digest(os.path.abspath(path), stamp)


@lru_cache(maxsize=1024)
def _content_digest(path: str, stamp: tuple[int, ...]) -> str:
    """Read a file; one whose ``stamp`` is known is not read again."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
