"""Online hard example mining: which negative cells of a batch take part."""

import torch
from torch import Tensor

from ._base import Items, accumulator


def mined(items: Items, keep: Tensor, ratio: float, average: str) -> Tensor:
    """Return the weights with which the cells take part.

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
    Tensor of shape (n_items, n_classes)
    """
    weight = items.sample_weight if items.has_columns else items.sample_weight.unsqueeze(1)
    # A sum of repetitions must be exact.
    weight = accumulator(weight) * keep
    positive = weight * items.is_gold
    negative = weight - positive
    logits = items.logits.detach()
    p = logits.sigmoid() if items.has_columns else logits.softmax(1)
    p = p.masked_fill(negative == 0, -1)
    n_lists = 1 if average == "micro" else len(keep)
    n_pos, n_neg = (cells.view(-1, n_lists).sum(0) for cells in (positive, negative))
    k = torch.minimum((ratio * n_pos).round().clamp_min(1), n_neg)
    order = p.view(-1, n_lists).argsort(dim=0, stable=True, descending=True)
    in_order = negative.view(-1, n_lists).gather(0, order)
    before = in_order.cumsum(0) - in_order
    kept = torch.minimum((k - before).clamp_min(0), in_order)
    hard = torch.zeros_like(kept).scatter(0, order, kept).view_as(positive)
    return (positive + hard).to(items.weight.dtype)
