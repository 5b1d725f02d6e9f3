"""What fits on the same rows can share: encoded texts and the output of frozen layers."""

import hashlib
import os
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor

from .._base_model import base_model_digest
from .._digest import digest, weights_digest
from .._parameters import check_number
from ..nn._batching import Batcher
from ..nn._frozen_states import FrozenStates
from ..nn._modules import TextModule
from ..nn._net import TextNet
from ..nn._probe import replays_states
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
        self._states: dict[tuple[str, int, str], FrozenStates] = {}
        self._digests: WeakKeyDictionary[TextModule, str] = WeakKeyDictionary()
        self._warned: set[type[Warning]] = set()

    @property
    def n_bytes(self) -> int:
        """Bytes of the outputs of frozen layers."""
        return sum(states.n_bytes for states in self._states.values())

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

    def frozen_states(
        self, net: TextNet, batcher: Batcher, precision: str, probe: Callable[[], Batcher]
    ) -> list[Tensor] | None:
        """Return the output of the frozen layers for each window.

        None if it takes too much, or cannot stand for these layers, which is tried on the probe.
        """
        n_layers = net.module__n_frozen_layers
        if not n_layers or not self._replays(net, probe):
            return None
        key = (self._frozen_digest(net.module_), n_layers, precision)
        states = self._states.setdefault(key, FrozenStates())
        missing = states.missing(batcher.dataset)
        if len(missing):
            n_pieces = int(batcher.dataset.input_ids.lengths[missing].sum())
            needed = n_pieces * net.module_.transformer.config.hidden_size * 4
            if self.n_bytes + needed > self.max_bytes:
                self._warn(
                    f"The output of the frozen layers for {needed / 1e6:,.0f} MB more of windows "
                    f"is computed anew in each fit: {self.n_bytes / 1e6:,.0f} MB are kept already, "
                    f"and {self.max_bytes / 1e6:,.0f} MB are allowed. The results are the same; "
                    f"reuse_work(max_bytes=...) raises the limit."
                )
                return None
            net.compute_frozen_states(batcher, precision, states)
        return states.of(batcher.dataset)

    def _replays(self, net: TextNet, probe: Callable[[], Batcher]) -> bool:
        module = net.module_
        if module.replays_states is None:
            module.replays_states = replays_states(module, probe(), net.device)
        if not module.replays_states:
            self._warn(
                f"The frozen layers of {type(module.transformer).__name__} are computed anew in "
                f"each fit: their output alone cannot stand for them. The results are the same, "
                f"but nothing is saved."
            )
        return bool(module.replays_states)

    def _frozen_digest(self, module: TextModule) -> str:
        """Return a digest of the frozen layers; under the same path may be others by now."""
        if module not in self._digests:
            frozen = [item for item in module.named_parameters() if not item[1].requires_grad]
            config = module.transformer.config.to_json_string(use_diff=False)
            self._digests[module] = digest([config, weights_digest(frozen)])
        return self._digests[module]

    def is_first(self, category: type[Warning]) -> bool:
        """Whether no such warning was given so far; it will be now."""
        is_first = category not in self._warned
        self._warned.add(category)
        return is_first

    def _warn(self, message: str) -> None:
        if self.is_first(UserWarning):
            warnings.warn(message, UserWarning, stacklevel=3)


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

    Texts are tokenised once, not in every fit. With ``n_frozen_layers=k`` the output of the first k
    layers is computed once for each text and used by all further fits and predictions, which run
    the upper layers only: frozen layers have no dropout, so the results are the same up to
    rounding. A try on a few tiny texts finds models for which they are not (T5, whose upper layers
    need more than the output of the lower ones); their frozen layers run in every fit, with a
    warning. :class:`DiceSearchCV` does all of this without the block. Put it around a
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
