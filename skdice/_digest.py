"""Digests of values, estimators, data and base models, alike in every process."""

import dataclasses
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from ._inputs import column_names, list_items
from ._parameters import parameters_of

# Of scikit-learn's estimators: they change how a fit runs or what it shows, not what it learns.
_NEVER_COUNT = frozenset({"verbose", "n_jobs"})
# Documentation, and weights in forms that are not loaded.
_NOT_LOADED = (".md", ".h5", ".msgpack", ".ot", ".onnx")
_Stamp = tuple[int, ...]
# Of each file the digest, and the stamp by which one sees that it is the same file still.
_KNOWN: dict[str, tuple[_Stamp, str]] = {}


def digest(value: Any) -> str:
    """Return a digest of a value: rows, parameters, estimators, arrays, tables.

    Equal values have equal digests, in lists, tuples, Series and arrays of one dimension or of
    objects alike, whatever the process. Of an estimator the class and the parameters count that
    are not said never to (``verbose``, ``n_jobs``, ``device``, ...); of a function or class its
    name and, if it cannot be imported by that (a lambda, a local one, one of ``__main__``), its
    code; of other objects what pickle would keep.
    A lock or open file, which nothing tells from others in another process, is a ValueError.
    """
    blake = _Blake(digest_size=8)
    _feed(blake, value)
    return blake.hexdigest()


class _Blake:
    """A hash that knows which objects it is in the midst of, as some refer to themselves."""

    def __init__(self, digest_size: int) -> None:
        self._hash = hashlib.blake2b(digest_size=digest_size)
        self.update, self.hexdigest = self._hash.update, self._hash.hexdigest
        self.within: list[Any] = []


def weights_digest(named: Iterable[tuple[str, Any]]) -> str:
    """Return a digest of named tensors of any type, in any order."""
    import torch

    blake = hashlib.blake2b(digest_size=16)
    for name, weight in sorted(named, key=lambda pair: pair[0]):
        blake.update(f"|{name} {weight.dtype} {tuple(weight.shape)}|".encode())
        flat = weight.detach().cpu().contiguous().reshape(-1)
        blake.update(flat.view(torch.uint8).numpy())
    return blake.hexdigest()


def relevant_parameters(estimator: Any, without: Sequence[str] = ()) -> dict[str, Any]:
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


def _feed(blake: Any, value: Any) -> None:
    """Feed a value, each part behind its kind and length, so that no two values look alike."""
    if isinstance(value, np.generic):
        value = value.item()
    elif hasattr(value, "detach"):  # A tensor.
        value = value.detach().cpu().numpy()
    if isinstance(value, pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
        value = value.tolist()

    if value is None or isinstance(value, bool | int | float | complex):
        _tag(blake, "number", repr(value))
    elif isinstance(value, str):
        _tag(blake, "str", len(value))
        blake.update(value.encode("utf-8", "surrogatepass"))
    elif isinstance(value, bytes):
        _tag(blake, "bytes", len(value))
        blake.update(value)
    elif isinstance(value, np.ndarray):
        _feed_array(blake, value)
    elif isinstance(value, pd.DataFrame):
        _tag(blake, "table", value.shape)
        for name, column in value.items():
            _feed(blake, name)
            _feed(blake, column)
    elif isinstance(value, Mapping):
        _tag(blake, "mapping", len(value))
        for name in sorted(value, key=repr):
            _feed(blake, name)
            _feed(blake, value[name])
    elif isinstance(value, Set):
        _feed(blake, sorted(digest(item) for item in value))
    elif sparse.issparse(value):
        matrix = value.tocsr()
        _feed(blake, [matrix.shape, matrix.data, matrix.indices, matrix.indptr])
    elif isinstance(value, Sequence):
        _feed_sequence(blake, list_items(value) or [])
    else:
        _feed_object(blake, value)


def _feed_sequence(blake: Any, items: Sequence[Any]) -> None:
    items = [item.item() if isinstance(item, np.generic) else item for item in items]
    _tag(blake, "sequence", len(items))
    # Words of sentences and rows of splits are most of what there is: one step for all of them.
    if all(isinstance(item, str) for item in items):
        _tag(blake, "words", [len(item) for item in items])
        blake.update("".join(items).encode("utf-8", "surrogatepass"))
    elif all(type(item) in (int, float, bool) for item in items):
        _tag(blake, "numbers", items)
    else:
        for item in items:
            _feed(blake, item)


def _feed_array(blake: Any, array: np.ndarray) -> None:
    if array.ndim < 2 or array.dtype.kind in "OUST":
        _feed(blake, array.tolist())
        return
    _tag(blake, "array", (array.dtype.str, array.shape))
    blake.update(np.ascontiguousarray(array).tobytes())


def _feed_object(blake: Any, value: Any) -> None:
    if any(value is outer for outer in blake.within):
        _tag(blake, "within", len(blake.within))
        return
    blake.within.append(value)
    if isinstance(value, os.PathLike):
        _feed(blake, os.fspath(value))
    elif hasattr(value, "get_params") and not isinstance(value, type):
        _tag(blake, "estimator", "")
        _feed_named(blake, type(value))
        _feed(blake, relevant_parameters(value))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        _tag(blake, "dataclass", "")
        _feed_named(blake, type(value))
        _feed(
            blake, {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        )
    elif isinstance(value, np.random.RandomState):
        _feed(blake, value.get_state(legacy=False))
    elif isinstance(value, np.random.Generator):
        _feed(blake, value.bit_generator.state)
    elif (names := column_names(value)) is not None:  # A table of another library.
        _feed(blake, [(name, value[name]) for name in names])
    elif (items := list_items(value)) is not None:  # The repr leaves rows out.
        _feed_sequence(blake, items)
    elif hasattr(value, "__qualname__"):
        _feed_named(blake, value)
    elif isinstance(value, CodeType):
        _feed(blake, [value.co_code, value.co_names, value.co_varnames, value.co_consts])
    else:
        _tag(blake, "object", "")
        _feed(blake, _pickled_parts(value))
    blake.within.pop()


def _feed_named(blake: Any, value: Any) -> None:
    """Feed a function or class by its name, and by its code if that is no name for others."""
    name = f"{value.__module__}.{value.__qualname__}"
    _tag(blake, "name", name)
    if isinstance(value, MethodType):
        _feed(blake, value.__self__)
    elif name.startswith("__main__.") or "<" in name:
        if isinstance(value, type):
            parts = {key: getattr(part, "__func__", part) for key, part in vars(value).items()}
            functions = {key: f for key, f in parts.items() if isinstance(f, FunctionType)}
            _feed(blake, functions)
        elif isinstance(value, FunctionType):
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            # What it collects into is another one after each call.
            fixed = [cell for cell in cells if not isinstance(cell, list | dict | set)]
            _feed(blake, [value.__code__, value.__defaults__, value.__kwdefaults__, fixed])


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


def _tag(blake: Any, kind: str, detail: Any) -> None:
    blake.update(f"|{kind}:{detail}|".encode("utf-8", "surrogatepass"))


def base_model_digest(model: str | os.PathLike[str]) -> str:
    """Return a digest of the files of a base model: weights, configuration, tokenizer.

    The model is a directory, or a hub id: of that, the files in the hub's cache on this machine
    count. The digest is "" if there are no weights on this machine yet. A file is read again only
    if its size or times have changed. Nothing is asked of the network.
    """
    place = _directory(os.fspath(model))
    paths = [
        path
        for path in ([] if place is None else sorted(place.iterdir()))
        if path.name[0] != "." and path.suffix not in _NOT_LOADED and path.is_file()
    ]
    if not any(path.suffix in (".safetensors", ".bin") for path in paths):
        return ""
    blake = hashlib.blake2b(digest_size=16)
    for path in paths:
        blake.update(f"|{path.name}|{_file_digest(path)}|".encode("utf-8", "surrogateescape"))
    return blake.hexdigest()


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
    key = os.path.abspath(path)
    known = _KNOWN.get(key)
    if known is None or known[0] != stamp:
        with open(path, "rb") as file:
            content = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16))
        known = _KNOWN[key] = (stamp, content.hexdigest())
    return known[1]
