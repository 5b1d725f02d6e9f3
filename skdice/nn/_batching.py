"""Which texts make up an optimiser step, and how windows become padded tensors."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..text._encoding import EncodedDataset
from ..text._ragged import Ragged, offsets_from_lengths, ranges
from ._ranks import ALONE, Ranks

Batch = dict[str, Tensor]

# Over how many steps texts of one length are spread: over more, they meet others in each epoch;
# over fewer, less is padded (benchmarks/padding.py). As a share of an epoch it has limits: few
# steps would have no order by length, and among many a text meets others anyway.
_STEPS_MIXED = 5
_LEAST_SHARE_MIXED, _MOST_SHARE_MIXED = 1 / 50, 1 / 7


class Batcher:
    """Makes the padded batches of an encoded data set.

    Parameters
    ----------
    dataset : EncodedDataset
    batch_size : int
        Windows per batch.
    batch_tokens : int or None
        Pieces per batch of :meth:`by_length`, instead of ``batch_size`` windows.
    pad_id : int
    pads_left : bool
    pads : bool
        Whether a batch may hold windows of several lengths.
    """

    def __init__(
        self,
        dataset: EncodedDataset,
        batch_size: int,
        pad_id: int,
        pads_left: bool,
        batch_tokens: int | None = None,
        pads: bool = True,
    ) -> None:
        self.dataset = dataset
        self.batch_size = batch_size
        self.batch_tokens = batch_tokens
        self.pad_id = pad_id
        self.pads_left = pads_left
        self.pads = pads
        self.lengths = dataset.input_ids.lengths
        self._item_weight = None
        if dataset.weight is not None:
            self._item_weight = np.repeat(dataset.weight, np.diff(dataset.item_offsets))

    def collate(self, windows: np.ndarray) -> Batch:
        """Pad windows to the longest of them.

        Returns
        -------
        dict of Tensors
            ``input_ids``, ``attention_mask``, ``token_type_ids`` of shape (n_windows, length);
            ``row`` and ``column`` of shape (n_items,), where the items are; ``item``, which items
            they are; ``target`` and ``weight`` of shape (n_items,) where the data set has them.
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
        return {name: torch.from_numpy(array) for name, array in batch.items()}

    def longest_first(self, windows: np.ndarray) -> np.ndarray:
        """Return windows in the order of their lengths."""
        return windows[np.argsort(-self.lengths[windows], kind="stable")]

    def by_length(self, windows: np.ndarray | None = None) -> Iterator[tuple[np.ndarray, Batch]]:
        """Yield windows (all by default) and their batch, the longest first.

        So memory runs out at once or never.
        """
        windows = np.arange(len(self.lengths)) if windows is None else windows
        windows = self.longest_first(windows)
        while len(windows):
            size = self.batch_size
            if self.batch_tokens is not None:
                size = max(1, self.batch_tokens // int(self.lengths[windows[0]]))
            part = self._alike(windows[:size])[0]
            yield part, self.collate(part)
            windows = windows[len(part) :]

    def cut(self, windows: np.ndarray) -> list[np.ndarray]:
        """Cut the windows of a step into batches of similar size, the longest first.

        They are about as large as asked for, up to half as large again: a cut may cost a second
        forward pass.
        """
        windows = self.longest_first(windows)
        parts = np.array_split(windows, max(1, round(len(windows) / self.batch_size)))
        return [alike for part in parts for alike in self._alike(part)]

    def _alike(self, windows: np.ndarray) -> list[np.ndarray]:
        """Cut windows in the order of their lengths where these change, unless they are padded."""
        if self.pads:
            return [windows]
        return np.split(windows, np.flatnonzero(np.diff(self.lengths[windows])) + 1)


class StepSampler:
    """Draws the optimiser steps of an epoch, each a list of batches.

    A step holds ``step_size`` texts of similar length with all their windows. Its batches are cuts
    of it, so that a loss over the step does not depend on how the step is cut.

    With several processes the size of a step is that of each process times their number. All draw
    the same steps, and each makes batches of the windows that are its own.

    Parameters
    ----------
    batcher : Batcher
    step_size : int
        Texts per optimiser step and process.
    rng : numpy.random.Generator
        Drawn from once per epoch; in the same state in all processes.
    ranks : Ranks
        The processes that train together.
    """

    def __init__(
        self,
        batcher: Batcher,
        step_size: int,
        rng: np.random.Generator,
        ranks: Ranks = ALONE,
    ) -> None:
        step_size *= ranks.count
        self.batcher = batcher
        self.step_size = step_size
        self.rng = rng
        self.ranks = ranks
        data = batcher.dataset
        _, first = np.unique(data.text, return_index=True)
        self._windows = Ragged(np.arange(len(data)), np.append(first, len(data)))
        length = np.add.reduceat(batcher.lengths, first) if len(data) else first
        self._place = _places_by_length(length)

    def __len__(self) -> int:
        """Return the number of steps in an epoch."""
        return self._count_steps(self._texts_of_epoch())

    def __iter__(self) -> Iterator[list[Batch]]:
        for texts in self._steps(self._texts_of_epoch()):
            windows = self.batcher.longest_first(self._windows.take(texts).values)
            own = self.ranks.own(windows)
            if len(own):
                yield [self.batcher.collate(part) for part in self.batcher.cut(own)]
            else:  # This process has a gradient to add as well, of zeros.
                yield [_without_items(self.batcher.collate(windows[:1]))]

    def _texts_of_epoch(self) -> np.ndarray:
        """Return which of the texts with windows an epoch has: all of them."""
        return np.arange(len(self._place))

    def _count_steps(self, texts: np.ndarray) -> int:
        return -(-len(texts) // self.step_size)

    def _steps(self, texts: np.ndarray) -> list[np.ndarray]:
        """Put texts of similar length into steps, in an order of chance."""
        n_steps = self._count_steps(texts)
        if not n_steps:
            return []
        share = np.clip(_STEPS_MIXED / n_steps, _LEAST_SHARE_MIXED, _MOST_SHARE_MIXED)
        order = self.rng.permutation(texts)
        place = self._place[order] + share * self.rng.random(len(order))
        order = order[np.argsort(place, kind="stable")]
        sizes = np.full(n_steps, self.step_size)
        # The short step is not always the one of the longest texts.
        sizes[self.rng.integers(n_steps)] -= sizes.sum() - len(order)
        steps = np.split(order, np.cumsum(sizes)[:-1])
        return [steps[i] for i in self.rng.permutation(len(steps))]


def _places_by_length(length: np.ndarray) -> np.ndarray:
    """Return a place in [0, 1] for each text, the same for texts of the same length.

    Equal distances are neither equally many texts nor equally many pieces: the distance between two
    neighbouring lengths is the geometric mean of both. So texts of a length that many others have
    may be mixed with more of them than rare, long ones, of which it would cost more.
    """
    lengths, which, count = np.unique(length, return_inverse=True, return_counts=True)
    n_between = (count[1:] + count[:-1]) / 2
    place: np.ndarray = np.cumsum(np.append(0.0, np.sqrt(n_between * np.diff(lengths))))
    place /= max(place[-1], 1.0)
    return place[which]


def _coordinates(ragged: Ragged, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where the values of some rows lie: flat index, which of the rows, column in it."""
    start, stop = ragged.offsets[rows], ragged.offsets[rows + 1]
    offsets = offsets_from_lengths(stop - start)
    row = np.repeat(np.arange(len(rows)), stop - start)
    return ranges(start, stop), row, np.arange(offsets[-1]) - offsets[row]


def _without_items(batch: Batch) -> Batch:
    """Return a batch with the same windows in which nothing is scored."""
    of_windows = ("input_ids", "attention_mask", "token_type_ids")
    return {name: tensor if name in of_windows else tensor[:0] for name, tensor in batch.items()}


def to_device(batch: Batch, device: Any) -> Batch:
    """Copy a batch to a device, without waiting for the copy."""
    if torch.device(device).type == "cuda":
        batch = {name: tensor.pin_memory() for name, tensor in batch.items()}
    return {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}
