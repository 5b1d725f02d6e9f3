"""Optimiser steps as CUDA graphs.

A step of a small network is some thousand short operators. A GPU computes them in a tenth of the
time that Python needs to launch them. A CUDA graph launches all of them at once, for tensors of
the shapes that it was made for. So batches are padded to few shapes, and each shape that comes
again and again has a graph of its own.
"""

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..exceptions import warn
from ._batching import PADDED_MULTIPLE, Batch, to_device

# A shape has a graph from its third step on: a graph costs as much time as some steps.
_N_EAGER = 2


class StepGraphs:
    """Computes the loss and the gradient of steps, each of one batch, by CUDA graphs.

    ``compute`` takes a batch on the GPU and whether a graph records it; it returns the numbers of
    the step as one tensor. It works on tensors that stay in place between steps, such as gradients,
    and never waits for the GPU. ``before`` sets numbers that change between steps.
    """

    def __init__(
        self, compute: Callable[[Batch, bool], Tensor], device: str, before: Callable[[], None]
    ) -> None:
        self._compute, self._device, self._before = compute, device, before
        self._n_seen: Counter[Hashable] = Counter()
        self._graphs: dict[Hashable, tuple[Batch, Callable[[], Tensor]]] = {}
        # All graphs of a fit use this memory in turn.
        self._pool: Any = torch.cuda.graph_pool_handle()
        self._has_failed = False

    def __call__(self, batch: Batch) -> Tensor:
        """Compute a step of a batch that lies on the CPU; return its numbers."""
        shape = tuple((name, tensor.shape, tensor.dtype) for name, tensor in batch.items())
        self._n_seen[shape] += 1
        is_common = self._n_seen[shape] > _N_EAGER
        if is_common and shape not in self._graphs and not self._has_failed:
            inputs = {name: tensor.to(self._device) for name, tensor in batch.items()}
            try:
                replay = capture(lambda: self._compute(inputs, True), self._pool)
                self._graphs[shape] = inputs, replay
            except RuntimeError as error:  # A graph cannot hold some operator.
                self._has_failed = True
                why = str(error).partition("\n")[0]
                warn(f"The steps of this fit cannot be CUDA graphs, so they take more time: {why}")
        if shape not in self._graphs:
            return self._compute(to_device(batch, self._device), False)
        places, replay = self._graphs[shape]
        for name, place in places.items():
            is_on_gpu = place.device.type == "cuda"
            source = batch[name].pin_memory() if is_on_gpu else batch[name]
            place.copy_(source, non_blocking=True)
        self._before()
        return replay()


def capture(function: Callable[[], Tensor], pool: Any) -> Callable[[], Tensor]:
    """Record what a function launches on the GPU; return a function that launches it again."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
        found = function()

    def replay() -> Tensor:
        graph.replay()
        return found.clone()  # The next replay writes to the same place.

    return replay


def pad_prepared(batch: Batch, pad_id: int) -> Batch:
    """Pad the texts of pairs, if a batch has them one by one, to a multiple of 8 pieces."""
    found = dict(batch)
    for name in batch:
        if name.startswith(("first_", "second_")):
            more = -batch[name].shape[1] % PADDED_MULTIPLE
            found[name] = pad(batch[name], (0, more), value=pad_id if name.endswith("_ids") else 0)
    return found
