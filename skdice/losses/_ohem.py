"""Online hard example mining: which negative cells of a batch take part."""

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
    logits = items.logits.detach()
    # A sum of repetitions must be exact.
    weight = accumulator(items.sample_weight)
    if items.has_columns:
        p = logits.sigmoid()
        positive = items.target == 1
    else:
        p = logits.softmax(1)
        positive = torch.nn.functional.one_hot(items.target, p.shape[1]).bool()
        weight = weight.unsqueeze(1)
    weight = weight * keep
    shape = p.shape
    if average == "micro":
        p, positive, weight = (x.reshape(-1, 1) for x in (p, positive, weight))
    n_pos = (weight * positive).sum(0)
    n_neg = (weight * ~positive).sum(0)
    k = torch.minimum((ratio * n_pos).round().clamp_min(1), n_neg)
    hardest_first = p.masked_fill(positive | (weight == 0), -1)
    order = hardest_first.argsort(stable=True, dim=0, descending=True)
    sorted_weight = (weight * ~positive).gather(0, order)
    before = sorted_weight.cumsum(0) - sorted_weight
    kept = torch.minimum((k - before).clamp_min(0), sorted_weight)
    kept = torch.zeros_like(kept).scatter(0, order, kept)
    return torch.where(positive, weight, kept).reshape(shape).to(logits.dtype)
