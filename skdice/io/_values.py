"""Python values as JSON and back, with their types: parameters, classes, losses, tasks."""

import math
import os
from typing import Any

import numpy as np
import pandas as pd
import torch

from ..losses import Loss
from ..tasks import Decision, Task
from ..text import Similarities


def to_json(value: Any, name: str) -> Any:
    """Return a value in a form that ``json.dumps`` takes and :func:`from_json` turns back.

    NumPy's scalars become Python's, paths become str, tensors arrays; all else keeps its type. A
    value of another type is a ValueError, which calls it ``name``.
    """
    if isinstance(value, np.generic) and value.dtype.kind in "biufU":  # No dates.
        value = value.item()
    elif isinstance(value, os.PathLike):
        value = os.fspath(value)
    elif isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    is_finite = isinstance(value, float) and math.isfinite(value)
    if value is None or is_finite or isinstance(value, bool | str | int):
        return value
    if isinstance(value, list):
        return [to_json(item, name) for item in value]
    for kind, (types, parts, _) in _KINDS.items():
        if isinstance(value, types):
            return {"type": kind, "value": to_json(parts(value), name)}
    raise ValueError(
        f"{name} has a value of type {type(value).__module__}.{type(value).__qualname__}, which "
        f"JSON cannot hold: {value!r}. Allowed are str, int, float, bool and None, and lists, "
        f"tuples, dicts and arrays of these."
    )


def from_json(value: Any) -> Any:
    """Return the value that :func:`to_json` was given; other JSON raises an error of any type."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    return _KINDS[value["type"]][2](from_json(value["value"]))


def _make_array(parts: list[Any]) -> np.ndarray:
    dtype, shape, values = parts  # np.array would make rows of values that are tuples.
    return np.fromiter(values, dtype=dtype, count=len(values)).reshape(shape)


def _parts_of_object(value: Any) -> list[Any]:
    if isinstance(value, Loss):
        parts = value.get_params(deep=False)
    elif isinstance(value, Task | Decision):
        parts = vars(value)
    else:
        parts = value._asdict()
    return [class_name(type(value)), list(parts.items())]


def _make_object(parts: list[Any]) -> Any:
    """Return an object of skdice, or a loss of a user's class that has been imported."""
    kinds = {name: kind for base in _CLASSES for name, kind in subclasses(base).items()}
    if parts[0] not in kinds:
        raise ValueError(f"there is no loss {parts[0]!r}; import the class first if it is yours")
    return kinds[parts[0]](**dict(parts[1]))


def class_name(kind: type) -> str:
    """Return the name that a class is saved by; it has the module if that is not skdice's."""
    is_own = kind.__module__.partition(".")[0] == "skdice"
    return kind.__name__ if is_own else f"{kind.__module__}.{kind.__qualname__}"


def subclasses(kind: type) -> dict[str, Any]:
    """Return a class and all below it that have been imported, by the names they are saved by."""
    found: dict[str, Any] = {class_name(kind): kind}
    below: type
    for below in kind.__subclasses__():
        found |= subclasses(below)
    return found


# The base classes of objects that may be saved.
_CLASSES: tuple[Any, ...] = (Loss, Task, Decision, Similarities)
# For each kind: its types, what takes a value apart, and what makes it again. Objects come before
# tuples, since some of them are tuples.
_KINDS: dict[str, tuple[Any, Any, Any]] = {
    "object": (_CLASSES, _parts_of_object, _make_object),
    "float": (float, repr, float),
    "tuple": (tuple, list, tuple),
    "set": (set | frozenset, lambda values: sorted(values, key=repr), set),
    "dict": (dict, lambda values: list(map(list, values.items())), dict),
    "array": (np.ndarray, lambda a: [a.dtype.str, list(a.shape), a.ravel().tolist()], _make_array),
    "table": (
        pd.DataFrame,
        lambda t: [t.index.name, t.index.to_numpy(), [[key, t[key].to_numpy()] for key in t]],
        lambda parts: pd.DataFrame(dict(parts[2]), index=pd.Index(parts[1], name=parts[0])),
    ),
}
