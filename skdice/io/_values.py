"""Python values as JSON and back, with their types: parameters, classes, thresholds, losses."""

import math
import os
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
import torch

from ..losses import CombinedLoss, Loss
from ..nn import is_of_peft, make_config, set_fields
from ..text import Similarities

# Of arrays; others are dates, records and complex numbers.
_DTYPE_KINDS = "biufUO"


def to_json(value: Any, name: str) -> Any:
    """Return what ``json.dumps`` can hold of a value, so that :func:`from_json` gives it back.

    NumPy's scalars become Python's, paths become str, tensors arrays; all else keeps its type. A
    value of a type that cannot be held is a ValueError, which calls it by ``name``.
    """
    if isinstance(value, np.generic) and value.dtype.kind in _DTYPE_KINDS:
        value = value.item()
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str | int):  # Of a subclass what it is one of.
        return str(value) if isinstance(value, str) else int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"type": "float", "value": repr(value)}
    if isinstance(value, list):
        return [to_json(item, name) for item in value]
    if isinstance(value, Similarities):
        return {"type": "similarities", "fields": to_json(value._asdict(), name)}
    if isinstance(value, tuple):
        return {"type": "tuple", "values": to_json(list(value), name)}
    if isinstance(value, set | frozenset):
        return {"type": "set", "values": to_json(sorted(value, key=repr), name)}
    if isinstance(value, dict):
        return {"type": "dict", "items": [to_json(list(item), name) for item in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in _DTYPE_KINDS:
        return {
            "type": "array",
            "dtype": value.dtype.str,
            "shape": list(value.shape),
            "values": to_json(value.ravel().tolist(), name),
        }
    if isinstance(value, pd.DataFrame):
        return {
            "type": "table",
            "index": to_json((value.index.name, value.index.to_numpy()), name),
            "columns": [to_json([key, value[key].to_numpy()], name) for key in value.columns],
        }
    if isinstance(value, Loss | CombinedLoss):
        loss: Any = value
        return _parts("loss", _class_name(type(value)), loss.get_params(deep=False), name)
    if is_of_peft(value):
        return _parts("peft", type(value).__name__, set_fields(value), name)
    raise ValueError(
        f"{name} has a value of type {type(value).__module__}.{type(value).__qualname__}, which "
        f"JSON cannot hold: {value!r}. Allowed are str, int, float, bool and None, and lists, "
        f"tuples, dicts and arrays of these."
    )


def from_json(value: Any) -> Any:
    """Return the value that :func:`to_json` was given; raise something if it never gives this."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value["type"]
    if kind == "float":
        return float(value["value"])
    if kind == "tuple":
        return tuple(from_json(value["values"]))
    if kind == "set":
        return set(from_json(value["values"]))
    if kind == "dict":
        return dict(from_json(value["items"]))
    if kind == "array":
        return _array(from_json(value["values"]), np.dtype(value["dtype"]), value["shape"])
    if kind == "table":
        name, index = from_json(value["index"])
        columns = dict(from_json(value["columns"]))
        return pd.DataFrame(columns, index=pd.Index(index, name=name))
    if kind == "similarities":
        return Similarities(**from_json(value["fields"]))
    parameters = {key: from_json(part) for key, part in value["parameters"].items()}
    if kind == "loss":
        return _loss_class(value["class"])(**parameters)
    if kind == "peft":
        return make_config(value["class"], parameters)
    raise ValueError(f"{kind!r} is no type of value")


def _parts(kind: str, class_name: str, parameters: dict[str, Any], name: str) -> dict[str, Any]:
    encoded = {key: to_json(part, f"{name}__{key}") for key, part in parameters.items()}
    return {"type": kind, "class": class_name, "parameters": encoded}


def _class_name(kind: type) -> str:
    is_own = kind.__module__.partition(".")[0] == "skdice"
    return kind.__name__ if is_own else f"{kind.__module__}.{kind.__qualname__}"


def _loss_class(name: str) -> Any:
    """Return a class of losses; those of others are known once they were imported."""
    known = {_class_name(kind): kind for kind in (*_subclasses(CombinedLoss), *_subclasses(Loss))}
    if name not in known:
        raise ValueError(
            f"there is no loss {name!r}; if it is your own, import its class before you load"
        )
    return known[name]


def _subclasses(kind: Any) -> Iterator[Any]:
    for part in kind.__subclasses__():
        yield part
        yield from _subclasses(part)


def _array(values: list[Any], dtype: np.dtype, shape: list[int]) -> np.ndarray:
    if dtype.kind not in _DTYPE_KINDS:
        raise ValueError(f"{dtype} is no dtype of a saved array")
    array = np.empty(len(values), dtype=dtype)
    for i, item in enumerate(values):  # At once, tuples would become rows.
        array[i] = item
    return array.reshape(shape)
