"""What several fits on the same rows share: tokenizers and encoded texts."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from .._digest import base_model_digest, digest
from ._tokenizer import Frame, WordTokenizer

T = TypeVar("T")

# Encoded data sets that are kept: those of the folds, with their training and test rows.
_MOST_ENCODED = 64


class Reuse:
    """Keeps what was encoded inside a :func:`reuse_work` block."""

    def __init__(self) -> None:
        self._tokenizers: dict[tuple[str, str], WordTokenizer] = {}
        self._encoded: OrderedDict[str, Any] = OrderedDict()
        self._warned: set[type[Warning]] = set()

    def tokenizer(self, model: str) -> WordTokenizer:
        """Return the tokenizer of a model, loaded once."""
        key = (model, base_model_digest(model))
        if key not in self._tokenizers:
            self._tokenizers[key] = WordTokenizer(model)
        return self._tokenizers[key]

    def encoded(self, content: Any, encode: Callable[[], T]) -> T:
        """Return what ``encode`` gives, computed once for the same content."""
        key = digest(content)
        if key not in self._encoded:
            self._encoded[key] = encode()
            if len(self._encoded) > _MOST_ENCODED:
                self._encoded.popitem(last=False)
        self._encoded.move_to_end(key)
        found: T = self._encoded[key]
        return found

    def is_first(self, category: type[Warning]) -> bool:
        """Return whether no such warning was given so far, and note that it is given now."""
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


def load_tokenizer(model: str) -> WordTokenizer:
    """Return the tokenizer of a model; fits that share their work load it once."""
    reuse = active_reuse()
    return WordTokenizer(model) if reuse is None else reuse.tokenizer(model)


@dataclass(frozen=True)
class TextReader:
    """How texts are read: the tokenizer, and how many pieces a window has at most."""

    tokenizer: WordTokenizer
    max_length: int

    def frame(self, n_texts: int) -> Frame:
        """Return the special tokens around one text or around two."""
        return self.tokenizer.pair_frame if n_texts == 2 else self.tokenizer.frame

    def once(self, content: Any, encode: Callable[[], T]) -> T:
        """Return what ``encode`` gives; fits that share their work encode the same content once.

        The result must depend on the content, the tokenizer and the longest window alone.
        """
        reuse = active_reuse()
        if reuse is None:
            return encode()
        return reuse.encoded((self.tokenizer.fingerprint, self.max_length, content), encode)
