"""Digests of values, estimators and data, alike in every process."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from ._inputs import column_names, list_items
from ._parameters import parameters_of

# Of scikit-learn's estimators: they change how a fit runs or what it shows, not what it learns.
_NEVER_COUNT = frozenset({"verbose", "n_jobs"})


def digest(value: Any) -> str:
    """Return a digest of a value: rows, parameters, estimators, arrays, tables.

    Equal values have equal digests, in lists, tuples, Series and arrays of one dimension or of
    objects alike, whatever the process. Of an estimator the class and the parameters count that
    are not said never to (``verbose``, ``n_jobs``, ``device``, ...); of a function its name.

    Examples
    --------
    >>> from skdice._digest import digest
    >>> digest([["a", "b"], ["c"]]) == digest((("a", "b"), ("c",)))
    True
    >>> digest([["a", "b"], ["c"]]) == digest([["a"], ["b", "c"]])
    False
    """
    blake = hashlib.blake2b(digest_size=8)
    _feed(blake, value)
    return blake.hexdigest()


def weights_digest(named: Iterable[tuple[str, Any]]) -> str:
    """Return a digest of named tensors of any type, in any order."""
    import torch

    blake = hashlib.blake2b(digest_size=16)
    for name, weight in sorted(named, key=lambda pair: pair[0]):
        blake.update(f"|{name} {weight.dtype} {tuple(weight.shape)}|".encode())
        flat = weight.detach().cpu().contiguous().reshape(-1)
        blake.update(flat.view(torch.uint8).numpy())
    return blake.hexdigest()


def relevant_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters that decide what an estimator learns."""
    parameters, kind = estimator.get_params(deep=False), type(estimator)
    stated = parameters_of(kind) if dataclasses.is_dataclass(kind) else {}
    left_out = _NEVER_COUNT | {name for name, part in stated.items() if part.counts == "never"}
    return {name: parameters[name] for name in sorted(parameters) if name not in left_out}


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
    if isinstance(value, os.PathLike):
        _feed(blake, os.fspath(value))
    elif hasattr(value, "get_params") and not isinstance(value, type):
        _tag(blake, "estimator", f"{type(value).__module__}.{type(value).__qualname__}")
        _feed(blake, relevant_parameters(value))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        _tag(blake, "dataclass", f"{type(value).__module__}.{type(value).__qualname__}")
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
    elif hasattr(value, "__qualname__"):  # A function or a class.
        _tag(blake, "name", f"{value.__module__}.{value.__qualname__}")
    else:
        kind = type(value)
        # An address is another one in every process.
        shown = re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))
        _tag(blake, "object", f"{kind.__module__}.{kind.__qualname__} {shown}")


def _tag(blake: Any, kind: str, detail: Any) -> None:
    blake.update(f"|{kind}:{detail}|".encode("utf-8", "surrogatepass"))
