"""What fits on the same rows can share, and by what fits are told apart."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from .._digest import base_model_digest, digest, relevant_parameters
from .._parameters import parameters_of
from ..io import installed_versions
from ..text import WordTokenizer

# Encoded data sets that are kept: those of the folds, with their training and test rows.
_MOST_ENCODED = 64


class Reuse:
    """What was encoded so far inside a :func:`reuse_work` block."""

    def __init__(self) -> None:
        self._tokenizers: dict[tuple[str, str], WordTokenizer] = {}
        self._encoded: OrderedDict[bytes, Any] = OrderedDict()
        self._warned: set[type[Warning]] = set()

    def tokenizer(self, model: str) -> WordTokenizer:
        """Return the tokenizer of a model, loaded once."""
        key = (model, base_model_digest(model))
        if key not in self._tokenizers:
            self._tokenizers[key] = WordTokenizer(model)
        return self._tokenizers[key]

    def encoded(self, content: Any, encode: Callable[[], Any]) -> Any:
        """Return what ``encode`` gives, computed once for the same content (by its repr)."""
        key = hashlib.blake2b(repr(content).encode(errors="surrogatepass")).digest()
        if key not in self._encoded:
            self._encoded[key] = encode()
            if len(self._encoded) > _MOST_ENCODED:
                self._encoded.popitem(last=False)
        self._encoded.move_to_end(key)
        return self._encoded[key]

    def is_first(self, category: type[Warning]) -> bool:
        """Whether no such warning was given so far; it will be now."""
        is_first = category not in self._warned
        self._warned.add(category)
        return is_first


_ACTIVE: ContextVar[Reuse | None] = ContextVar("reuse", default=None)


def active_reuse() -> Reuse | None:
    """Return what the fits here share, None outside of :func:`reuse_work`."""
    return _ACTIVE.get()


@contextmanager
def reuse_work() -> Iterator[None]:
    """Let fits and predictions inside the block tokenise each text once, not in every fit.

    :class:`DiceSearchCV` does so without the block. Put it around a ``GridSearchCV`` or
    ``cross_val_score``, with ``n_jobs=None``: other processes do not see it.

    Examples
    --------
    >>> from skdice.model_selection import reuse_work
    >>> with reuse_work():  # doctest: +SKIP
    ...     search = GridSearchCV(tagger, {"gamma": [0.1, 1.0, 10.0]}).fit(X, y)
    """
    token = _ACTIVE.set(Reuse())
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def fit_digests(
    estimator: Any, *, settings: Any, training_data: Any, held_out_data: Any
) -> dict[str, str]:
    """Return digests of all that a fit depends on, alike in every process, by what they are of.

    ``settings`` is what was made of the parameters: the seed, the precision.
    """
    stated = parameters_of(type(estimator))
    # Nothing is kept of the fit: the first of several processes may have callbacks of its own.
    without = ["callbacks"] if estimator.checkpoint_dir is None else []
    parameters = {
        name: value
        for name, value in relevant_parameters(estimator, without=without).items()
        if name not in stated or stated[name].counts == "in fits"
    }
    if not isinstance(parameters["random_state"], int | np.integer):
        # The seed that was drawn from it counts.
        del parameters["random_state"]
    return {
        "parameters": digest([type(estimator), parameters, settings]),
        "base model": digest(base_model_digest(estimator.model)),
        "package versions": digest(installed_versions()),
        "training data": digest(training_data),
        "held-out data": digest(held_out_data),
    }


def fit_fingerprint(digests: dict[str, str], n_processes: int) -> str:
    """Return the name of a fit among all fits."""
    return digest([digests, n_processes])
