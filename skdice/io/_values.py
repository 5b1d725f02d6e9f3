"""Python values as JSON and back, with their types: parameters, classes, thresholds, losses."""

import math
import os
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
import torch

from .. import losses
from ..losses._query import QueryLoss
from ..losses._span import SpanLoss
from ..nn._adapters import is_of_peft, make_config, set_fields

_LOSS_CLASSES: dict[str, Any] = {
    **{
        name: value
        for name, value in vars(losses).items()
        if isinstance(value, type) and issubclass(value, losses.Loss)
    },
    "QueryLoss": QueryLoss,
    "SpanLoss": SpanLoss,
}
# Of arrays; others are dates, records and complex numbers.
_DTYPE_KINDS = "biufUO"
# Of an array of str, which take the room of the longest one whatever they are.
_MOST_BYTES = 1 << 30


def to_json(value: Any, name: str) -> Any:
    """Return what ``json.dumps`` can hold of a value, so that :func:`from_json` gives it back.

    NumPy's scalars become Python's, paths become str, tensors arrays; all else keeps its type.

    Parameters
    ----------
    value : object
        None, bool, int, float, str, path, array, table, loss or configuration of peft, or a list,
        tuple, set or dict of these.
    name : str
        What an error calls the value.

    Raises
    ------
    ValueError
        If there is a value of another type.
    """
    if isinstance(value, np.generic) and value.dtype.kind in _DTYPE_KINDS:
        value = value.item()
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"type": "float", "value": repr(value)}
    if isinstance(value, os.PathLike):
        return to_json(os.fspath(value), name)
    if isinstance(value, list):
        return [to_json(item, name) for item in value]
    if isinstance(value, tuple):
        return {"type": "tuple", "values": to_json(list(value), name)}
    if isinstance(value, set | frozenset):
        return {"type": "set", "values": to_json(sorted(value, key=repr), name)}
    if isinstance(value, dict):
        return {"type": "dict", "items": [to_json(list(item), name) for item in value.items()]}
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
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
    kind = type(value).__name__
    if _LOSS_CLASSES.get(kind) is type(value):
        parameters = value.get_params(deep=False).items()
        return {
            "type": "loss",
            "class": kind,
            "parameters": {key: to_json(part, f"{name}__{key}") for key, part in parameters},
        }
    if is_of_peft(value):
        fields = {key: to_json(part, f"{name}__{key}") for key, part in set_fields(value).items()}
        return {"type": "peft", "class": kind, "fields": fields}
    if isinstance(value, losses.Loss):
        raise ValueError(
            f"{name} is a {kind}, which is no loss of skdice.losses: it could not be loaded "
            f"without running code from elsewhere. Pickle the estimator instead."
        )
    raise ValueError(
        f"{name} has a value of type {type(value).__module__}.{type(value).__qualname__}, which "
        f"JSON cannot hold: {value!r}. Allowed are str, int, float, bool and None, and lists, "
        f"tuples, dicts and arrays of these."
    )


def from_json(value: Any) -> Any:
    """Return the value that :func:`to_json` was given.

    Raises
    ------
    ValueError, TypeError, KeyError
        If this is nothing that :func:`to_json` gives.
    """
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value["type"]
    if kind == "float":
        return float(value["value"])
    if kind == "tuple":
        return tuple(from_json(value["values"]))
    if kind == "dict":
        return dict(from_json(value["items"]))
    if kind == "array":
        return _array(from_json(value["values"]), np.dtype(value["dtype"]), value["shape"])
    if kind == "table":
        name, index = from_json(value["index"])
        columns = dict(from_json(value["columns"]))
        return pd.DataFrame(columns, index=pd.Index(index, name=name))
    if kind == "loss":
        parameters = {key: from_json(part) for key, part in value["parameters"].items()}
        return _LOSS_CLASSES[value["class"]](**parameters)
    if kind == "set":
        return set(from_json(value["values"]))
    if kind == "peft":
        fields = {key: from_json(part) for key, part in value["fields"].items()}
        return make_config(value["class"], fields)
    raise ValueError(f"{kind!r} is no type of value")


def _array(values: list[Any], dtype: np.dtype, shape: list[int]) -> np.ndarray:
    if dtype.kind not in _DTYPE_KINDS:
        raise ValueError(f"{dtype} is no dtype of a saved array")
    if dtype.kind == "U" and dtype.itemsize * len(values) > _MOST_BYTES:
        raise ValueError(f"{len(values)} values of {dtype} are larger than any that were saved")
    array = np.empty(len(values), dtype=dtype)
    for i, item in enumerate(values):  # At once, tuples would become rows.
        array[i] = item
    return array.reshape(shape)
