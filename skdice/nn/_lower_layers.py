"""The output of the lower layers of a transformer, taken once and put in again later."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


class _Reached(Exception):
    """Ends a forward pass where the lower layers end."""


class LowerLayers:
    """The first layers of a transformer, cut off from those above.

    Parameters
    ----------
    transformer : nn.Module
    layers : nn.ModuleList
        Its encoder layers, in order.
    n_layers : int
        How many of them are the lower ones, at least one.
    """

    def __init__(self, transformer: nn.Module, layers: nn.ModuleList, n_layers: int) -> None:
        self._transformer = transformer
        self._layers = list(layers[:n_layers])
        probe = torch.ones(1, 2, dtype=torch.int64, device=next(transformer.parameters()).device)
        self._output: Any = None
        self._is_time_major = False
        # XLNet has the positions before the rows.
        self._is_time_major = len(self.run({"input_ids": probe, "attention_mask": probe})) == 2

    def run(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Return the output of the last of the lower layers, of shape (n_rows, length, size)."""

        def run_and_stop(layer: nn.Module, forward: Callable[..., Any]) -> Callable[..., Any]:
            def run(*args: Any, **kwargs: Any) -> Any:
                self._output = forward(*args, **kwargs)
                raise _Reached

            return run

        try:
            with forward_replaced(self._layers[-1:], run_and_stop):
                self._transformer(**inputs)
        except _Reached:
            pass
        output, self._output = self._output, None
        self._n_outputs = len(output) if isinstance(output, tuple) else None
        hidden = output if isinstance(output, Tensor) else output[0]
        return hidden.transpose(0, 1) if self._is_time_major else hidden

    @contextmanager
    def replaced(self, hidden: Tensor) -> Iterator[None]:
        """Have the lower layers give this output, whatever they get, without computing."""
        if self._is_time_major:
            hidden = hidden.transpose(0, 1)
        output = hidden if self._n_outputs is None else (hidden, *[None] * (self._n_outputs - 1))

        def give(layer: nn.Module, forward: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *args, **kwargs: output

        with forward_replaced(self._layers, give):
            yield


@contextmanager
def forward_replaced(
    layers: Sequence[nn.Module],
    replace: Callable[[nn.Module, Callable[..., Any]], Callable[..., Any]],
) -> Iterator[None]:
    """Replace the ``forward`` of layers by what ``replace`` makes of each layer and its own one.

    Unlike hooks this also sees models that call ``layer.forward``.
    """
    for layer in layers:
        layer.forward = replace(layer, layer.forward)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward
