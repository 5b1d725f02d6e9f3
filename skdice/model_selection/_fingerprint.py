"""What a study belongs to: a digest of each part that decides what a trial scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._base_model import base_model_digests
from .._digest import digest, relevant_parameters

# Missing where the weights are not on the machine yet.
BASE_MODEL = "the files of the base model"


def search_fingerprint(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    splits: Sequence[tuple[np.ndarray, np.ndarray]],
    scoring: Any,
) -> dict[str, str]:
    """Return a digest of each part that decides what a trial scores."""
    kind = type(estimator)
    parts = {"the estimator's class": f"{kind.__module__}.{kind.__qualname__}"}
    for name, value in relevant_parameters(estimator).items():
        parts[f"the estimator's {name!r}"] = digest(value)
    models = base_model_digests(estimator.get_params())
    if models and all(models.values()):
        parts[BASE_MODEL] = digest(models)
    data = {"X": X, "y": y, "sample_weight": sample_weight, "cv": splits, "scoring": scoring}
    return parts | {name: digest(value) for name, value in data.items()}


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Return the names of the parts that differ."""
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    return [name for name in names if name != BASE_MODEL or (name in one and name in other)]
