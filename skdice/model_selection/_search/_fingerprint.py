"""Which search a study belongs to: a digest of each part that decides what a trial scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base_model import base_model_digests
from ..._digest import digest, relevant_parameters

if TYPE_CHECKING:
    from optuna.study import Study

_FINGERPRINT = "fingerprint"
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


def check_fingerprint(study: Study, fingerprint: Mapping[str, str], storage: str) -> None:
    """Keep the fingerprint in a new study; raise a ValueError if that of an old one differs."""
    known = study.user_attrs.get(_FINGERPRINT)
    if known is None:
        if study.get_trials(deepcopy=False):
            raise ValueError(
                f"The study {study.study_name!r} in {storage} has trials that are not of "
                f"DiceSearchCV. Give another study_name."
            )
        study.set_user_attr(_FINGERPRINT, dict(fingerprint))
        # Another process may have written at the same moment; one of the two prevails.
        known = study.user_attrs[_FINGERPRINT]
    different = differences(known, fingerprint)
    if different:
        raise ValueError(
            f"The study {study.study_name!r} in {storage} belongs to another search, which "
            f"differs in {', '.join(different)}. Give another study_name or storage, or search "
            f"with the same estimator, rows, folds and scoring."
        )
    if BASE_MODEL in fingerprint and BASE_MODEL not in known:
        study.set_user_attr(_FINGERPRINT, {**known, BASE_MODEL: fingerprint[BASE_MODEL]})
