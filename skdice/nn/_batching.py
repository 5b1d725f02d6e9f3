"""Which texts make up an optimiser step, and how windows become padded tensors."""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.utils.data import IterableDataset

from ..losses import IGNORE_INDEX
from ..text import Draw, EncodedDataset, Ragged, offsets_from_lengths, ranges
from ._runtime import ALONE, Ranks

Batch = dict[str, Tensor]
LogitsOf = Callable[[Batch], np.ndarray]

# Texts of one length are spread over this many steps, but at least 1/50 and at most 1/7 of an
# epoch. With more steps, a text meets other texts in every epoch; with fewer, batches need less
# padding. The number is a judgement.
_STEPS_MIXED = 5
_LEAST_SHARE_MIXED, _MOST_SHARE_MIXED = 1 / 50, 1 / 7
# A batch has at most this many pieces, padding included, per window of batch_size. Most encoders
# read up to 512 pieces, so their batches are never cut; a text of 8,192 pieces counts as sixteen.
_PIECES_PER_WINDOW = 512
# Pieces of a batch of predictions on a GPU: a few short sentences would leave it idle.
_GPU_PIECES = 2**14
# On a GPU, windows are padded to a multiple of this many pieces: attention copies a mask in every
# layer otherwise. For CUDA graphs, they are padded to a multiple of this many words, too, where
# tags are scored as a chain.
PADDED_MULTIPLE, _WORD_MULTIPLE = 8, 16
# The tensors of a batch with a row for each window; all others have a row for each item.
_OF_WINDOWS = ("input_ids", "attention_mask", "token_type_ids")


class PaddedShape(NamedTuple):
    """How large a batch is to be: windows, pieces of a window, words of a window, and items."""

    n_rows: int
    width: int
    n_words: int
    n_items: int


@dataclass(eq=False, repr=False)
class Batcher:
    """Makes the padded batches of an encoded data set.

    A batch has about ``batch_size`` windows and at most 512 pieces for each of these, padding
    included; a longer window is a batch by itself. With ``batch_pieces``, a batch of
    :meth:`by_length` has up to this many pieces instead. All batches lie on the CPU.
    """

    dataset: EncodedDataset
    batch_size: int
    pad_id: int
    pads_left: bool
    batch_pieces: int | None = None

    def collate(self, windows: np.ndarray, is_for_gpu: bool = False) -> Batch:
        """Pad windows to the longest of them, or for a GPU to the next multiple of 8.

        ``input_ids``, ``attention_mask`` and ``token_type_ids`` are of shape (n_windows, length).
        The other tensors are of shape (n_items,): ``row`` and ``column`` say where the items are,
        ``item`` is their index in the data set; ``target`` and ``weight`` are there if the data set
        has them. If it has matches, ``match`` is that of :class:`skdice.losses.WindowTarget`, and
        ``place`` numbers the items of each window.
        """
        data, of_all = self.dataset, self.dataset.input_ids.lengths
        lengths = of_all[windows]
        width = int(lengths.max())
        if is_for_gpu and lengths.min() < width:
            # The encoder may have no position beyond the longest window of all.
            width = min(-(-width // PADDED_MULTIPLE) * PADDED_MULTIPLE, int(of_all.max()))
        index, row, column = _coordinates(data.input_ids, windows)
        shift = width - lengths if self.pads_left else np.zeros_like(lengths)
        column = column + shift[row]
        ids = np.full((len(windows), width), self.pad_id, dtype=np.int64)
        types, mask = np.zeros_like(ids), np.zeros_like(ids)
        ids[row, column] = data.input_ids.values[index]
        types[row, column] = data.token_type_ids.values[index]
        mask[row, column] = 1
        item, item_row, place = _coordinates(data.items, windows)
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
        if data.weight is not None:
            batch["weight"] = data.weight[data.text[windows[item_row]]]
        if data.matches is not None:
            most = int(data.items.lengths[windows].max())
            match = np.zeros((len(windows), most, most), dtype=bool)
            span, span_row, _ = _coordinates(data.matches, windows)
            match[span_row, *data.matches.values[span].T] = True
            batch |= {"place": place, "match": match}
        return {name: torch.from_numpy(array) for name, array in batch.items()}

    def by_length(
        self, windows: np.ndarray, is_for_gpu: bool = False
    ) -> Iterator[tuple[np.ndarray, Batch]]:
        """Yield windows and their batch, the longest first: memory runs out at once or never."""
        windows = windows[np.argsort(-self.dataset.input_ids.lengths[windows], kind="stable")]
        n_pieces = _GPU_PIECES if is_for_gpu else self.batch_pieces
        n_windows = self.batch_size if n_pieces is None else len(windows)
        for part in self._fitting(windows, n_windows, n_pieces or _PIECES_PER_WINDOW * n_windows):
            yield part, self.collate(part, is_for_gpu)

    def cut(self, windows: np.ndarray) -> list[np.ndarray]:
        """Cut the windows of a step, which are sorted by length, into batches of similar size.

        Batches may have up to half more windows than ``batch_size``: a set loss needs a second
        forward pass if a step has more than one batch.
        """
        n_parts = max(1, round(len(windows) / self.batch_size))
        fitting: list[np.ndarray] = []
        for part in _cut_evenly(windows, np.ones(len(windows), dtype=np.int64), n_parts):
            n_pieces = _PIECES_PER_WINDOW * max(self.batch_size, len(part))
            fitting += self._fitting(part, len(part), n_pieces)
        return fitting

    def _fitting(self, windows: np.ndarray, n_windows: int, n_pieces: int) -> Iterator[np.ndarray]:
        """Cut windows, the longest first, into parts of at most this many windows and pieces."""
        while len(windows):
            longest = int(self.dataset.input_ids.lengths[windows[0]])
            n = min(n_windows, max(1, n_pieces // longest))
            yield windows[:n]
            windows = windows[n:]


class Epoch(NamedTuple):
    """The texts of an epoch, and its steps."""

    windows: Ragged  # the numbers of the windows of each text; texts without windows are left out
    size: np.ndarray  # how many texts each text counts as, (n_texts,)
    groups: list[np.ndarray]  # the texts of each group of a draw
    n_drawn: np.ndarray  # how many texts of each group an epoch has, (n_groups,)
    n_steps: int  # steps of an epoch, none of them empty, whichever texts are drawn


def count_epoch(
    dataset: EncodedDataset, step_size: int, windows_per_text: int = 1, draw: Draw | None = None
) -> Epoch:
    """Return the epoch of a data set with ``step_size`` texts in a step."""
    texts, first = np.unique(dataset.text, return_index=True)
    n_windows = len(dataset.text)
    windows = Ragged(np.arange(n_windows), np.append(first, n_windows))
    # A text with more windows than a step is a step by itself.
    size = np.clip(windows.lengths // windows_per_text, 1, step_size)
    groups, n_drawn = [np.arange(len(texts))], np.array([len(texts)])
    if draw is not None:
        group, n_drawn = draw.group[texts], draw.n_drawn
        groups = [np.flatnonzero(group == g) for g in range(len(n_drawn))]
    total = sum(int(np.sort(size[rows])[:n].sum()) for rows, n in zip(groups, n_drawn))
    n_steps = max(1, total // step_size) if (size > 1).any() else -(-total // step_size)
    return Epoch(windows, size, groups, n_drawn, n_steps)


@dataclass(eq=False, repr=False)
class StepSampler(IterableDataset[list[Batch]]):
    """Draws the optimiser steps of an epoch, each a list of batches.

    A step holds ``step_size`` texts of similar length with all their windows. A text with more
    windows than ``windows_per_text`` counts as several texts. The batches are parts of the step; a
    loss over the step does not depend on how it is cut. The texts of each group of a ``draw`` are
    spread evenly over the steps.

    If there is a ``chain``, it turns logits into log-probabilities of tags. A ``shift`` of shape
    (n_outputs,) or (n_items, n_outputs) is added to what the loss reads. The weights of items are
    multiplied by ``weight``, of shape (n_items,) or (n_items, n_parts). With ``has_few_shapes``,
    batches are padded to a few shapes, as CUDA graphs need it.

    With several processes, a step has ``step_size`` texts for each process. All processes draw the
    same steps, since ``rng`` is in the same state in all; each makes batches of its own windows.
    """

    batcher: Batcher
    step_size: int
    rng: np.random.Generator
    ranks: Ranks = ALONE
    _: KW_ONLY
    windows_per_text: int = 1
    draw: Draw | None = None
    chain: Any = None
    shift: np.ndarray | None = None
    weight: np.ndarray | None = None
    has_few_shapes: bool = False

    def __post_init__(self) -> None:
        self.step_size *= self.ranks.count
        dataset = self.batcher.dataset
        self._epoch = count_epoch(dataset, self.step_size, self.windows_per_text, self.draw)
        # The number of texts and of steps in an epoch.
        self.n_texts, self.n_steps = int(self._epoch.n_drawn.sum()), self._epoch.n_steps
        length = self._epoch.windows.offsets[:-1]
        if length.size:
            length = np.add.reduceat(dataset.input_ids.lengths, length)
        # Texts get places in [0, 1] by length. The distance of two neighbouring lengths is the
        # geometric mean of the texts and of the pieces between them. So texts of a common length
        # mix with more others than long, rare ones, for which mixing costs more padding.
        lengths, which, count = np.unique(length, return_inverse=True, return_counts=True)
        n_between = (count[1:] + count[:-1]) / 2
        place = np.cumsum(np.append(0.0, np.sqrt(n_between * np.diff(lengths))))
        self._place = (place / max(place[-1], 1.0))[which]

    def __len__(self) -> int:
        """Return the number of steps in an epoch, for callbacks of skorch."""
        return self.n_steps

    def __iter__(self) -> Iterator[list[Batch]]:
        lengths = self.batcher.dataset.input_ids.lengths
        for texts in self._steps():
            windows = self._epoch.windows.take(texts).values
            windows = windows[np.argsort(-lengths[windows], kind="stable")]
            own = windows[self.ranks.index :: self.ranks.count]
            step = [self.batcher.collate(part) for part in self.batcher.cut(own)]
            if not step:  # A process without windows adds a gradient of zeros.
                batch = self.batcher.collate(windows[:1])
                step = [{k: x if k in _OF_WINDOWS else x[:0] for k, x in batch.items()}]
            for i, batch in enumerate(step):
                if self.weight is not None:
                    weight = torch.from_numpy(self.weight)[batch["item"]]
                    if (given := batch.get("weight")) is not None:
                        weight = weight * (given if weight.ndim == 1 else given[:, None])
                    batch = batch | {"weight": weight}
                shape = padded_shape(batch, int(lengths.max())) if self.has_few_shapes else None
                if self.chain is not None:
                    batch = self.chain.with_geometry(batch, shape)
                step[i] = batch if shape is None else pad_batch(batch, shape, self.batcher.pad_id)
            yield step

    def _steps(self) -> list[np.ndarray]:
        """Put the texts of an epoch into steps by length and chance, and shuffle the steps."""
        epoch, n_steps = self._epoch, self.n_steps
        if not n_steps:
            return []
        share = np.clip(_STEPS_MIXED / n_steps, _LEAST_SHARE_MIXED, _MOST_SHARE_MIXED)
        orders, parts = [], []
        for rows, n_drawn in zip(epoch.groups, epoch.n_drawn):
            drawn = self.rng.permutation(rows)[:n_drawn]
            place = self._place[drawn] + share * self.rng.random(len(drawn))
            orders.append(drawn[np.argsort(place, kind="stable")])
            parts.append((np.arange(len(drawn)) + 0.5) / len(drawn))
        order = np.concatenate(orders)[np.argsort(np.concatenate(parts), kind="stable")]
        if (epoch.size > 1).any():
            steps = _cut_evenly(order, epoch.size[order], n_steps)
        else:
            sizes = np.full(n_steps, self.step_size)
            # A random step is the short one, so that it does not always have the longest texts.
            sizes[self.rng.integers(n_steps)] -= sizes.sum() - len(order)
            steps = np.split(order, np.cumsum(sizes)[:-1])
        return [steps[i] for i in self.rng.permutation(len(steps))]


def padded_shape(batch: Batch, longest: int) -> PaddedShape:
    """Return the shape to which a batch is padded, one of few.

    Windows have a multiple of 8 pieces, or the length of the ``longest`` of all. A window is added,
    in which the added items lie.
    """
    n_rows, width = batch["input_ids"].shape
    n_items = len(batch["row"])
    n_words = int(torch.bincount(batch["row"], minlength=1).max())
    width = max(width, min(-(-width // PADDED_MULTIPLE) * PADDED_MULTIPLE, longest))
    n_words = -(-n_words // _WORD_MULTIPLE) * _WORD_MULTIPLE
    n_rows += 1
    # With fewer items than windows, an item is a window; else it is a piece of one.
    return PaddedShape(n_rows, width, n_words, n_rows * (width if n_items >= n_rows else 1))


def pad_batch(batch: Batch, shape: PaddedShape, pad_id: int) -> Batch:
    """Pad a batch to a shape, which does not change its loss.

    The added window has one piece. Losses ignore the added items.
    """
    n_rows, width = batch["input_ids"].shape
    found = dict(batch)
    for name, fill in (("input_ids", pad_id), ("attention_mask", 0), ("token_type_ids", 0)):
        more = (0, shape.width - width, 0, shape.n_rows - n_rows)
        found[name] = pad(batch[name], more, value=fill)
    found["attention_mask"][-1, 0] = 1
    n_more = shape.n_items - len(batch["row"])
    fills = {"row": n_rows, "column": 0, "item": 0, "target": IGNORE_INDEX, "weight": 0}
    for name in fills.keys() & batch.keys():
        below = (0, 0) * (batch[name].ndim - 1) + (0, n_more)
        found[name] = pad(batch[name], below, value=fills[name])
    return found


def _cut_evenly(items: np.ndarray, size: np.ndarray, n_parts: int) -> list[np.ndarray]:
    """Cut items, in their order, into parts of about the same total size."""
    if not len(items):
        return []
    middle = np.cumsum(size) - size / 2
    part = np.ceil(middle * n_parts / size.sum()).astype(np.int64) - 1
    parts = np.split(items, np.searchsorted(part, np.arange(1, n_parts)))
    return [part for part in parts if len(part)]


def _coordinates(ragged: Ragged, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the flat index of each value of some rows, and its row and column among these."""
    start, stop = ragged.offsets[rows], ragged.offsets[rows + 1]
    offsets = offsets_from_lengths(stop - start)
    row = np.repeat(np.arange(len(rows)), stop - start)
    return ranges(start, stop), row, np.arange(offsets[-1]) - offsets[row]


def to_device(batch: Batch, device: str | torch.device) -> Batch:
    """Copy a batch to a device, without waiting for the copy.

    On a GPU, masks of batches without padding are left out: attention is faster without them.
    """
    if torch.device(device).type == "cuda":
        batch = {
            name: tensor.pin_memory()
            for name, tensor in batch.items()
            if not (name.endswith("_mask") and tensor.all())
        }
    return {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}
