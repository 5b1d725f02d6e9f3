"""What fits on the same rows can share: encoded texts and the output of frozen layers."""

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from .._base_model import base_model_digest
from .._parameters import check_number
from ..text._tokenizer import WordTokenizer

# Encoded data sets that are kept: those of the folds, with their training and test rows.
_MOST_ENCODED = 64
_SHARE_OF_MEMORY = 0.25


class Reuse:
    """What was computed so far inside a :func:`reuse_work` block.

    Parameters
    ----------
    max_bytes : int
        Of the outputs of frozen layers.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
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


def default_max_bytes() -> int:
    """Return a quarter of the machine's memory."""
    return int(_SHARE_OF_MEMORY * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


@contextmanager
def reuse_work(max_bytes: int | None = None) -> Iterator[Reuse]:
    """Let fits and predictions inside the block share what does not depend on the fit.

    Texts are tokenised once, not in every fit. :class:`DiceSearchCV` does this without the block.
    Put it around a
    ``GridSearchCV`` or ``cross_val_score``, with ``n_jobs=None``: other processes do not see it.

    Parameters
    ----------
    max_bytes : int, optional
        Memory for the outputs of frozen layers: 4 bytes for each piece and hidden unit; by default
        a quarter of the machine's. Data sets that would need more run their frozen layers in every
        fit, with a warning.

    Yields
    ------
    Reuse
        ``n_bytes`` is what is kept. It is freed at the end of the block.

    Examples
    --------
    >>> from skdice.model_selection import reuse_work
    >>> with reuse_work():  # doctest: +SKIP
    ...     search = GridSearchCV(tagger, {"gamma": [0.1, 1.0, 10.0]}).fit(X, y)
    """
    check_number("reuse_work", "max_bytes", max_bytes, low=0, integer=True, optional=True)
    max_bytes = default_max_bytes() if max_bytes is None else max_bytes
    token = _ACTIVE.set(Reuse(max_bytes))
    try:
        yield _ACTIVE.get()  # type: ignore[misc]
    finally:
        _ACTIVE.reset(token)
