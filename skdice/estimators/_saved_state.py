"""What a saved directory says of a fit, checked before an estimator is made of it."""

from typing import Any

import numpy as np
import pandas as pd

from ..datasets._splitting import SPLITTERS
from ..losses import Loss
from ..losses._query import QueryLoss
from ..losses._span import SpanLoss
from ..nn._runtime import PRECISIONS
from ..text._tags import are_chunk_tags

_SCHEMES = (None, "IOB1", "IOB2", "IOBES")
_NETWORK: dict[str, Any] = {
    "n_outputs": int,
    "criterion": (Loss, SpanLoss, QueryLoss),
    "word_prefix": str,
    "pads": bool,
    "precision": str,
}
_COMMON: dict[str, Any] = {
    "max_length_": int,
    "interrupted_": bool,
    "_n_training_rows": int,
    "history_": pd.DataFrame,
    "best_epoch_": int,
    "max_epochs_": int,
    "lr_": float,
}


def check_saved_state(
    kind: Any, network: dict[str, Any], state: dict[str, Any], n_positions: int | None
) -> None:
    """Raise a ValueError unless an estimator can predict with what was saved of it.

    Parameters
    ----------
    kind : type
        Class of the estimator.
    network, state : dict of str to object
        Of the manifest.
    n_positions : int or None
        How many the network has; None if it has no limit.
    """
    _check_kinds(network, _NETWORK)
    _check_kinds(state, {**_COMMON, **kind._task.state})
    _check(network["precision"] in PRECISIONS, "precision", network)
    for name in state:
        if hasattr(kind, name):
            raise ValueError(f"{name!r} is no state of a fit, but a part of {kind.__name__}")
    longest = state["max_length_"] if n_positions is None else n_positions
    _check(1 <= state["max_length_"] <= longest, "max_length_", state)
    _check(0 <= state.get("stride_", 0) < state["max_length_"], "stride_", state)
    _check(state.get("scheme_") in _SCHEMES, "scheme_", state)
    _check(state.get("splitter_", "words") in SPLITTERS, "splitter_", state)
    if "classes_" in state:
        _check(state["classes_"].shape == (network["n_outputs"],), "classes_", state)
    if kind._task.takes_words and "classes_" in state:
        _check(all(isinstance(tag, str) for tag in state["classes_"]), "classes_", state)
        _check(state["scheme_"] is None or are_chunk_tags(state["classes_"]), "scheme_", state)
    labels = state.get("labels_", [])
    _check(all(isinstance(label, str) for label in labels), "labels_", state)
    types = set(labels)
    if state.get("scheme_") and "classes_" in state:
        types = {tag[2:] for tag in state["classes_"] if tag != "O"}
    for name in ("threshold_", "null_threshold_", "background_bias_"):
        value = state.get(name, 0.0)
        parts = [value]
        if isinstance(value, dict):
            _check(set(value) == types, name, state)
            parts = list(value.values())
        for part in map(np.asarray, parts):
            is_number = part.dtype.kind in "fi" and not np.isnan(part).any()
            _check(is_number and part.shape in ((), (network["n_outputs"],)), name, state)
    _check(set(state.get("queries_", {})) == set(labels), "queries_", state)


def _check_kinds(values: dict[str, Any], kinds: dict[str, Any]) -> None:
    for name, kind in kinds.items():
        if name not in values:
            raise ValueError(f"{name!r} is missing")
        is_flag = isinstance(values[name], bool) and kind is not bool
        _check(isinstance(values[name], kind) and not is_flag, name, values)


def _check(is_allowed: Any, name: str, values: dict[str, Any]) -> None:
    if not is_allowed:
        raise ValueError(f"{name!r} is {values[name]!r:.200}")
