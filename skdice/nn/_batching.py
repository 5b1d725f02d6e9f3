"""Which texts make up an optimiser step, and how windows become padded tensors."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..text._encoding import EncodedDataset
from ..text._ragged import Ragged, offsets_from_lengths, ranges
from ._frozen_states import pad_states

Batch = dict[str, Tensor]

# Steps that are sorted by length together: more would pad less, and mix texts less.
_STEPS_PER_BUCKET = 8


class Batcher:
    """Makes the padded batches of an encoded data set.

    Parameters
    ----------
    dataset : EncodedDataset
    batch_size : int
        Windows per batch.
    pad_id : int
    pads_left : bool
    states : list of n_windows Tensors of shape (length, size), optional
        What the frozen layers give for each window.
    """

    def __init__(
        self,
        dataset: EncodedDataset,
        batch_size: int,
        pad_id: int,
        pads_left: bool,
        states: list[Tensor] | None = None,
    ) -> None:
        self.dataset = dataset
        self.batch_size = batch_size
        self.pad_id = pad_id
        self.pads_left = pads_left
        self.states = states
        self.lengths = dataset.input_ids.lengths
        self._item_weight = None
        if dataset.weight is not None:
            self._item_weight = np.repeat(dataset.weight, np.diff(dataset.item_offsets))

    def __len__(self) -> int:
        """Return the number of batches in one pass by length."""
        return -(-len(self.dataset) // self.batch_size)

    def collate(self, windows: np.ndarray) -> Batch:
        """Pad windows to the longest of them.

        Returns
        -------
        dict of Tensors
            ``input_ids``, ``attention_mask``, ``token_type_ids`` of shape (n_windows, length);
            ``row`` and ``column`` of shape (n_items,), where the items are; ``item``, which items
            they are; ``target`` and ``weight`` of shape (n_items,) where the data set has them;
            ``states`` of shape (n_windows, length, size) where they are known.
        """
        data = self.dataset
        lengths = self.lengths[windows]
        longest = int(lengths.max())
        index, row, column = _coordinates(data.input_ids, windows)
        shift = longest - lengths if self.pads_left else np.zeros_like(lengths)
        column = column + shift[row]
        shape = (len(windows), longest)
        ids = np.full(shape, self.pad_id, dtype=np.int64)
        types = np.zeros(shape, dtype=np.int64)
        mask = np.zeros(shape, dtype=np.int64)
        ids[row, column] = data.input_ids.values[index]
        types[row, column] = data.token_type_ids.values[index]
        mask[row, column] = 1
        item, item_row, _ = _coordinates(data.items, windows)
        batch = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": types,
            "row": item_row,
            "column": data.items.values[item] + shift[item_row],
            "item": item,
        }
        if data.target is not None:
            batch["target"] = data.target[item]
        if self._item_weight is not None:
            batch["weight"] = self._item_weight[item]
        tensors = {name: torch.from_numpy(array) for name, array in batch.items()}
        if self.states is not None:
            states = [self.states[window] for window in windows]
            tensors["states"] = pad_states(states, longest, self.pads_left)
        return tensors

    def by_length(self, windows: np.ndarray | None = None) -> Iterator[tuple[np.ndarray, Batch]]:
        """Yield windows (all by default) in batches, the longest first.

        So memory runs out at once or never.

        Yields
        ------
        windows : ndarray of shape (n_windows,)
        batch : dict of Tensors
        """
        windows = np.arange(len(self.lengths)) if windows is None else windows
        windows = windows[np.argsort(-self.lengths[windows], kind="stable")]
        for start in range(0, len(windows), self.batch_size):
            part = windows[start : start + self.batch_size]
            yield part, self.collate(part)


class StepSampler:
    """Draws the optimiser steps of an epoch, each a list of batches.

    A step holds ``step_size`` texts, with all their windows, of similar length; its batches are
    cuts of it of about ``batcher.batch_size`` windows each (up to half as many more, as a cut may
    cost a second forward pass). So a loss over the step does not depend on how the step is cut.

    Parameters
    ----------
    batcher : Batcher
    step_size : int
        Texts per optimiser step.
    rng : numpy.random.Generator
        Drawn from once per epoch.
    """

    def __init__(self, batcher: Batcher, step_size: int, rng: np.random.Generator) -> None:
        self.batcher = batcher
        self.step_size = step_size
        self.rng = rng
        data = batcher.dataset
        self._texts, first = np.unique(data.text, return_index=True)
        self._windows = Ragged(np.arange(len(data)), np.append(first, len(data)))
        self._length = np.add.reduceat(batcher.lengths, first) if len(data) else first

    def __len__(self) -> int:
        """Return the number of steps in an epoch."""
        return -(-len(self._texts) // self.step_size)

    def __iter__(self) -> Iterator[list[Batch]]:
        for texts in self._steps():
            windows = self._windows.take(texts).values
            windows = windows[np.argsort(-self.batcher.lengths[windows], kind="stable")]
            n_batches = max(1, round(len(windows) / self.batcher.batch_size))
            yield [self.batcher.collate(part) for part in np.array_split(windows, n_batches)]

    def _steps(self) -> list[np.ndarray]:
        order = self.rng.permutation(len(self._texts))
        bucket = self.step_size * _STEPS_PER_BUCKET
        steps = []
        for start in range(0, len(order), bucket):
            texts = order[start : start + bucket]
            texts = texts[np.argsort(self._length[texts], kind="stable")]
            steps += [texts[i : i + self.step_size] for i in range(0, len(texts), self.step_size)]
        return [steps[i] for i in self.rng.permutation(len(steps))]


def _coordinates(ragged: Ragged, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where the values of some rows lie: flat index, which of the rows, column in it."""
    start, stop = ragged.offsets[rows], ragged.offsets[rows + 1]
    offsets = offsets_from_lengths(stop - start)
    row = np.repeat(np.arange(len(rows)), stop - start)
    return ranges(start, stop), row, np.arange(offsets[-1]) - offsets[row]


def to_device(batch: Batch, device: Any) -> Batch:
    """Copy a batch to a device, without waiting for the copy."""
    return {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}
