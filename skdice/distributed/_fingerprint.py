"""What predictions depend on, alike in every process."""

from collections.abc import Mapping
from typing import Any

from sklearn.base import BaseEstimator

from .._digest import digest, relevant_parameters, weights_digest
from ..estimators._base import TextEstimator
from ..estimators._persistence import fitted_state

# What no prediction depends on: what a fit tells of itself, and how it was run.
_NOT_PREDICTING = ("history_", "best_epoch_", "interrupted_", "_n_training_rows")
_OF_FITS = ("random_state", "callbacks")


def estimator_fingerprint(estimator: Any) -> str:
    """Return a digest of all that the predictions of a fitted estimator depend on.

    Parameters
    ----------
    estimator : estimator
        Of this package, or one that holds such estimators.
    """
    return digest(_content(estimator))


def _content(value: Any) -> Any:
    """Return a value with each estimator replaced by what it is made of."""
    name = f"{type(value).__module__}.{type(value).__name__}"
    if isinstance(value, TextEstimator):
        used = relevant_parameters(value, without=_OF_FITS)
        if not hasattr(value, "net_"):  # What a search was given.
            return [name, used]
        state = fitted_state(value).items()
        return [
            name,
            used,
            {key: part for key, part in state if key not in _NOT_PREDICTING},
            weights_digest(value.net_.module_.state_dict().items()),
            value.net_.module_.base_digest,
        ]
    if isinstance(value, BaseEstimator):
        best = getattr(value, "best_estimator_", None)
        return [name, _content(dict(vars(value)) if best is None else best)]
    if isinstance(value, Mapping):
        return {key: _content(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_content(part) for part in value]
    return value
