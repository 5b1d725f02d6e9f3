"""Online hard example mining: which negative cells of a batch take part."""

import math

import numpy as np
import torch
from torch import Tensor

from ._base import Items, accumulator


def mined(items: Items, keep: Tensor, ratio: float, average: str) -> tuple[Items, Tensor]:
    """Return the items of which cells take part, and the weights with which each of these does.

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

    Returns
    -------
    items : Items
    weight : Tensor of shape (n_items, n_classes)
    """
    weight = items.sample_weight if items.has_columns else items.sample_weight.unsqueeze(1)
    p = _p_of_negatives(items, keep, weight)
    n_pos, n_neg = _weight_of_cells(items, keep)
    if average == "micro":
        n_pos, n_neg = n_pos.sum(0, keepdim=True), n_neg.sum(0, keepdim=True)
    k = torch.minimum((ratio * n_pos).round().clamp_min(1), n_neg)
    # Elsewhere the length of a shorter list would have to be waited for.
    can_look = p.device.type == "cpu" and not torch.compiler.is_compiling()
    kept = (_kept_above_threshold_ if can_look else _kept_of_sorted)(p, weight, k)
    if items.has_columns:
        kept = torch.where(items.target == 1, weight * keep, kept)
    else:
        gold = items.target.unsqueeze(1)
        kept = kept.scatter_(1, gold, weight * keep[gold])
    if not can_look:
        return items, kept
    rows = kept.detach().sum(1).nonzero().squeeze(1)
    if len(rows) == len(kept):
        return items, kept
    return Items(*(part.index_select(0, rows) for part in items)), kept.index_select(0, rows)


def _p_of_negatives(items: Items, keep: Tensor, weight: Tensor) -> Tensor:
    """Return p of the cells to choose from, (n_items, n_classes), and -1 for all others."""
    logits = items.logits.detach().contiguous()
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


def _kept_above_threshold_(p: Tensor, weight: Tensor, k: Tensor) -> Tensor:
    """Return, in place of p, what :func:`_kept_of_sorted` does; only what may be kept is sorted."""
    used = weight[weight > 0]
    # With the lightest cells alone it takes the most of them to reach k.
    lightest = float(used.min()) if used.numel() else 1.0
    weight, n_classes = weight.expand_as(p), p.shape[1]
    for column, most in enumerate(k):
        cells = p.view(-1, len(k))[:, column]
        order = _hardest_first(cells.detach(), math.ceil(float(most) / lightest))
        cell = order * len(k) + column
        kept = _kept_in_order(accumulator(weight[cell // n_classes, cell % n_classes]), most)
        cells.zero_()
        cells[order] = kept.to(p.dtype)
    return p


def _hardest_first(p: Tensor, n: int) -> Tensor:
    """Return where the n largest p are, and those as large as the last of them, the largest first.

    Cells that are not to choose from, with p = -1, are none of them.
    """
    values = p.numpy()
    place = max(0, len(p) - n)
    threshold = np.partition(values, place)[place] if n and len(p) else np.inf
    index = torch.from_numpy(np.flatnonzero(values >= max(threshold, 0)))
    return index[p[index].argsort(stable=True, descending=True)]


def _kept_in_order(weight: Tensor, k: Tensor) -> Tensor:
    """Return how much of each is kept, the first ones first, until k is reached."""
    before = weight.cumsum(0) - weight
    return torch.minimum((k - before).clamp_min(0), weight)
