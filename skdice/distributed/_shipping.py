"""A fitted estimator on its way to the processes that predict with it."""

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from .._digest import digest, relevant_parameters, weights_digest
from ..estimators import load_pretrained
from ..estimators._base import TextEstimator
from ..estimators._persistence import fitted_state

# What a fit tells of itself, on which no prediction depends.
_NOT_PREDICTING = ("history_", "best_epoch_", "interrupted_", "_n_training_rows")


@dataclass(frozen=True)
class Shipment:
    """Where processes find an estimator.

    Attributes
    ----------
    path : str
        A directory that ``save_pretrained`` wrote, or a pickle.
    fingerprint : str
        Of the estimator.
    """

    path: str
    fingerprint: str

    def unpack(self) -> Any:
        """Return the estimator, which a process loads once.

        Raises
        ------
        ValueError
            If it is another one than when it was sent.
        """
        with _LOADING:
            if self not in _LOADED:
                _LOADED.clear()
                _LOADED[self] = self._read()
            return _LOADED[self]

    def _read(self) -> Any:
        if not os.path.isdir(self.path):
            import cloudpickle

            with open(self.path, "rb") as file:
                return cloudpickle.load(file)
        estimator = load_pretrained(self.path)
        if estimator_fingerprint(estimator) != self.fingerprint:
            raise ValueError(
                f"The estimator in {self.path!r} is another one than when the run began. Start "
                f"again, with a directory that nobody writes to."
            )
        return estimator


_LOADING = threading.Lock()
_LOADED: dict[Shipment, Any] = {}


def forget_estimators() -> None:
    """Free the memory of the estimator that this process has loaded."""
    with _LOADING:
        _LOADED.clear()


def pack(estimator: Any, fingerprint: str, path: Path) -> Shipment:
    """Write an estimator to a file."""
    import cloudpickle

    with open(path, "wb", opener=_private) as file:
        cloudpickle.dump(estimator, file)
        file.flush()
        os.fsync(file.fileno())
    return Shipment(str(path), fingerprint)


def estimator_fingerprint(estimator: Any) -> str:
    """Return a digest of all that predictions depend on, alike in every process.

    Parameters
    ----------
    estimator : estimator
        Fitted: of this package, or one that holds such estimators.
    """
    return digest(_content(estimator))


def _content(value: Any) -> Any:
    """Return a value with each estimator replaced by what it is made of."""
    if isinstance(value, TextEstimator):
        parameters = relevant_parameters(value)
        parameters.pop("random_state")
        if not hasattr(value, "net_"):  # What a search was given.
            return [_class_name(value), parameters]
        state = {
            name: part for name, part in fitted_state(value).items() if name not in _NOT_PREDICTING
        }
        return [
            _class_name(value),
            parameters,
            state,
            weights_digest(value.net_.module_.state_dict().items()),
            value.net_.module_.base_digest,
        ]
    if isinstance(value, BaseEstimator):
        best = getattr(value, "best_estimator_", None)
        inner = dict(vars(value)) if best is None else {"best_estimator_": best}
        return [_class_name(value), _content(inner)]
    if isinstance(value, Mapping):
        return {key: _content(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_content(part) for part in value]
    return value


def _class_name(estimator: Any) -> str:
    kind = type(estimator)
    return f"{kind.__module__}.{kind.__name__}"


def _private(path: str, flags: int) -> int:
    """Open a file that nobody else can read or write."""
    return os.open(path, flags, 0o600)
