"""What a network predicts of a batch: which classes, and whether it finds anything at all.

Each function takes the logits of a batch, of shape (n_items, n_outputs), and its targets, and
returns a bool Tensor, so that a fit can tell from its own steps what it never predicts.
"""

import torch
from torch import Tensor


def predicted_classes(logits: Tensor, target: Tensor) -> Tensor:
    """Return which classes are the best one of an item, of shape (n_classes,)."""
    is_predicted = torch.zeros(logits.shape[1], dtype=torch.bool, device=logits.device)
    is_predicted[logits.argmax(1)] = True
    return is_predicted


def predicted_labels(logits: Tensor, target: Tensor) -> Tensor:
    """Return which labels an item gets, of shape (n_labels,)."""
    return (logits > 0).any(0)


def predicted_answers(logits: Tensor, target: Tensor, null_threshold: float = 0.0) -> Tensor:
    """Return whether a window has an answer that "no answer" does not exceed by more, (1,).

    The last of three columns of the target is the window of the position; its first position is
    "no answer".
    """
    window = target[:, 2]
    is_first = torch.ones_like(window, dtype=torch.bool)
    is_first[1:] = window[1:] != window[:-1]
    index = (is_first.cumsum(0) - 1).unsqueeze(1).expand_as(logits)
    lowest = torch.full_like(logits, -torch.inf)
    none = lowest.scatter_reduce(0, index, logits.where(is_first.unsqueeze(1), lowest), "amax")
    best = lowest.scatter_reduce(0, index, logits.where(~is_first.unsqueeze(1), lowest), "amax")
    # There are more places than windows; in those without a position nothing is found.
    return (best.sum(1) > none.sum(1) - null_threshold).any().unsqueeze(0)


def predicted_entities(logits: Tensor, target: Tensor) -> Tensor:
    """Return whether a word is taken for a start, and one for an end, of shape (2,)."""
    return (logits[:, :2] > 0).any(0)
