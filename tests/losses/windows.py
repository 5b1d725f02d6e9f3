"""Windows with spans, and the losses of their starts and ends, for both kinds of loss over them."""

from dataclasses import replace

import numpy as np
import torch

from skdice.losses import _combined
from skdice.losses._combined import WindowTarget
from skdice.text import Ragged, offsets_from_lengths

from ..nn.toy import make_batcher, make_dataset
from .catalogue import EVERY, IGNORED

# Cross-entropy over positions has no class weights, and without smoothing there is no gradient
# where nothing is positive.
NAMES = [
    "ce", "focal-class_weight", "dsc-small-alpha", "dsc-batch-micro-square-all",
    "dsc-batch-micro-square-ohem", "dsc-batch-micro-linear-plain", "dsc-example-micro-square-all",
]  # fmt: skip
LOSSES = {name: EVERY[f"{name}-flat"].loss for name in NAMES}
SIZE = 3
LENGTHS = [3, 1, 7, 2, 5]


def span_windows(lengths=LENGTHS, seed=0, ignored=(), dtype=torch.float64):
    """Return logits and targets of windows with one span each, some of them ignored."""
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(len(lengths)), lengths)
    border = np.zeros((len(row), 2), dtype=np.int32)
    for i, first in enumerate(np.cumsum(lengths) - lengths):
        start, end = sorted(rng.integers(0, lengths[i], 2))
        border[first + start, 0] = border[first + end, 1] = 1
    border[np.isin(row, ignored)] = IGNORED
    logits = 2 * rng.standard_normal((len(row), 2))
    target = WindowTarget(*map(torch.from_numpy, (border, row)))
    return torch.from_numpy(logits).to(dtype), target


def query_windows(lengths=LENGTHS, seed=0, n_spans=2, dtype=torch.float64):
    """Return logits and targets of windows with some spans."""
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(len(lengths)), lengths)
    first = np.cumsum(lengths) - lengths
    border = np.zeros((len(row), 2), dtype=np.int32)
    match = np.zeros((len(lengths), max(lengths), max(lengths)), dtype=bool)
    for i, length in enumerate(lengths):
        for _ in range(n_spans):
            start, end = sorted(rng.integers(0, length, 2).tolist())
            border[first[i] + start, 0] = border[first[i] + end, 1] = 1
            match[i, start, end] = True
    logits = 2 * rng.standard_normal((len(row), 2 + 2 * SIZE))
    place = np.arange(len(row)) - first[row]
    target = WindowTarget(*map(torch.from_numpy, (border, row, place, match)))
    return torch.from_numpy(logits).to(dtype), target


def take(logits, target, windows):
    """Return the logits and targets of some windows, which may be repeated, and their items."""
    windows = torch.as_tensor(windows, dtype=torch.int64)
    of_window = [(target.row == w).nonzero().squeeze(1) for w in windows]
    items = torch.cat([*of_window, torch.zeros(0, dtype=torch.int64)])
    lengths = torch.tensor([len(part) for part in of_window], dtype=torch.int64)
    row = torch.arange(len(windows)).repeat_interleave(lengths)
    taken = target._replace(border=target.border[items], row=row)
    if target.match is not None:
        taken = taken._replace(place=target.place[items], match=target.match[windows])
    return logits[items], taken, items


def make_step(make_windows, n_batches, weighted=False):
    """Return a step of windows, three texts with several, cut into batches."""
    dataset = make_dataset([3, 6, 9, 4, 2, 7], [1, 3, 2, 1, 1, 2], weighted=weighted)
    target = make_windows(dataset.items.lengths.tolist())[1]
    dataset = replace(dataset, target=target.border.numpy())
    if target.match is not None:
        spans = [np.argwhere(match) for match in target.match.numpy()]
        offsets = offsets_from_lengths([len(of_window) for of_window in spans])
        dataset = replace(dataset, matches=Ragged(np.concatenate(spans), offsets))
    batcher = make_batcher(dataset)
    return [batcher.collate(part) for part in np.array_split(np.arange(len(dataset)), n_batches)]


def draw_many_candidates(monkeypatch):
    """Let a third of the words be random starts and ends, as texts are so short here."""
    monkeypatch.setattr(_combined, "_RANDOM_SHARE", 0.3)
