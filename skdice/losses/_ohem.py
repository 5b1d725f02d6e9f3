"""Online hard example mining: which negative cells of a batch take part."""

import math

import numpy as np
import torch
from torch import Tensor

from ._base import Items, accumulator


def kept_weight(items: Items, keep: Tensor, ratio: float, average: str) -> Tensor:
    """Return the weight, (n_items, n_classes), with which each cell takes part.

    All positive cells are kept, and the k negative ones with the highest p,
    ``k = min(max(1, round(ratio * n_pos)), n_neg)``; ties go by index. ``average="micro"`` ranks
    the cells of all classes together, otherwise each class by itself. Sample weights count as
    repetitions, so a cell of weight 2 may be kept once or twice. O(n log n).

    Parameters
    ----------
    items : Items
    keep : Tensor of shape (n_classes,), bool
        False for the background, whose cells are no units.
    ratio : float
    average : {"micro", "macro", "sum"}
    """
    weight = items.sample_weight if items.has_columns else items.sample_weight.unsqueeze(1)
    p = _p_of_negatives(items, keep, weight)
    n_pos, n_neg = _weight_of_cells(items, keep)
    if average == "micro":
        n_pos, n_neg = n_pos.sum(0, keepdim=True), n_neg.sum(0, keepdim=True)
    k = torch.minimum((ratio * n_pos).round().clamp_min(1), n_neg)
    if p.device.type != "cpu" or torch.compiler.is_compiling():
        # Sorts everything: a shorter list would have to wait for the device to learn its length.
        kept = _kept_of_sorted(p, weight, k)
    else:
        kept = _kept_above_threshold(p, weight, k)
    if items.has_columns:
        return torch.where(items.target == 1, weight * keep, kept)
    gold = items.target.unsqueeze(1)
    return kept.scatter_(1, gold, weight * keep[gold])


def _p_of_negatives(items: Items, keep: Tensor, weight: Tensor) -> Tensor:
    """Return p of the cells to choose from, (n_items, n_classes), and -1 for all others."""
    logits = items.logits.detach()
    if items.has_columns:
        p = logits.sigmoid().masked_fill_(items.target == 1, -1)
    else:
        p = logits.softmax(1).scatter_(1, items.target.unsqueeze(1), -1)
    for usable in ((weight > 0).to(p), keep.to(p)):
        p.mul_(usable).add_(usable - 1)  # On a CPU a mask that is broadcast is slow.
    return p


def _weight_of_cells(items: Items, keep: Tensor) -> tuple[Tensor, Tensor]:
    """Return the total weight of the positive and of the negative cells, each (n_classes,)."""
    # A sum of repetitions must be exact.
    weight = accumulator(items.sample_weight)
    if items.has_columns:
        n_pos = (weight * (items.target == 1)).sum(0)
    else:
        n_pos = weight.new_zeros(len(keep)).index_add(0, items.target, weight)
    return n_pos * keep, (weight.sum(0) - n_pos).clamp_min(0) * keep


def _kept_of_sorted(p: Tensor, weight: Tensor, k: Tensor) -> Tensor:
    """Return how much of each cell is kept, (n_items, n_classes).

    Parameters
    ----------
    p : Tensor of shape (n_items, n_classes)
        Of the cells to choose from; -1 for all others.
    weight : Tensor that broadcasts to the shape of p
    k : Tensor of shape (n_classes,), or (1,) to choose among all cells
        How much to keep.
    """
    cells = p.reshape(-1, len(k))
    cell_weight = accumulator(weight).expand_as(p).reshape(-1, len(k))
    order = cells.argsort(stable=True, dim=0, descending=True)
    kept = _kept_in_order((cell_weight * (cells >= 0)).gather(0, order), k)
    return torch.zeros_like(kept).scatter(0, order, kept).reshape(p.shape).to(p.dtype)


def _kept_above_threshold(p: Tensor, weight: Tensor, k: Tensor) -> Tensor:
    """Return what :func:`_kept_of_sorted` does, and sort only the cells that may be kept."""
    kept = torch.zeros_like(p)
    used = weight[weight > 0]
    if not used.numel():
        return kept
    # With the lightest cells alone it takes the most of them to reach k.
    lightest = float(used.min())
    weight = weight.expand_as(p)
    for column, most in enumerate(k):
        cells = p.flatten() if len(k) == 1 else p[:, column]
        n_cells = min(len(cells), math.ceil(float(most) / lightest))
        if not n_cells:
            continue
        place = len(cells) - n_cells
        values = cells.numpy()
        threshold = max(0.0, float(np.partition(values, place)[place]))
        index = torch.from_numpy(np.flatnonzero(values >= threshold))
        index = index[cells[index].argsort(stable=True, descending=True)]
        if len(k) == 1:
            rows, columns = index // p.shape[1], index % p.shape[1]
        else:
            rows, columns = index, torch.full_like(index, column)
        kept[rows, columns] = _kept_in_order(accumulator(weight[rows, columns]), most).to(p.dtype)
    return kept


def _kept_in_order(weight: Tensor, k: Tensor) -> Tensor:
    """Return how much of each is kept, the first ones first, until k is reached."""
    before = weight.cumsum(0) - weight
    return torch.minimum((k - before).clamp_min(0), weight)
