"""The output of the lower layers of a transformer, taken once and put in again later."""

from collections.abc import Iterator, Mapping
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

        def stop(layer: nn.Module, args: Any, output: Any) -> None:
            self._output = output
            raise _Reached

        hook = self._layers[-1].register_forward_hook(stop)
        try:
            self._transformer(**inputs)
        except _Reached:
            pass
        finally:
            hook.remove()
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

        def give(*args: Any, **kwargs: Any) -> Any:
            return output

        for layer in self._layers:
            layer.forward = give
        try:
            yield
        finally:
            for layer in self._layers:
                del layer.forward
