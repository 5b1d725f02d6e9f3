"""Which texts an epoch has: all with positives, and some of the others, new ones every time."""

import numpy as np

from ..nn._batching import Draw
from ..text._encoding import EncodedDataset

# What "auto" takes (benchmarks/RESULTS.md): so many texts without positives for each one with,
# where there are this many times more of them.
_RATIO = 2.0
_RARE = 4.0


def choose_draw(
    ratio: float | str | None, dataset: EncodedDataset, group: np.ndarray | None
) -> Draw | None:
    """Return which texts an epoch has, None for all of them.

    Parameters
    ----------
    ratio : float, "auto" or None
        Texts of a group for each text of all smaller groups.
    dataset : EncodedDataset
    group : ndarray of shape (n_texts,), int64, or None
        0 for texts with positives, 1 for those without; or the class of each text. None where all
        texts have positives.
    """
    if ratio is None or group is None:
        return None
    # A text without a window is in no epoch.
    has_window = np.bincount(dataset.text, minlength=dataset.n_texts) > 0
    n_texts = np.bincount(group[has_window], minlength=int(group.max(initial=0)) + 1)
    is_rare = _capped(n_texts, _RARE).sum() < n_texts.sum()
    if ratio == "auto":
        if not is_rare:
            return None
        ratio = _RATIO
    n_drawn = _capped(n_texts, float(ratio))
    return None if (n_drawn == n_texts).all() else Draw(group, np.maximum(n_drawn, 1))


def _capped(n_texts: np.ndarray, ratio: float) -> np.ndarray:
    """Return how many of each group are taken: all of the smallest, of others a multiple at most.

    A group has at most ``ratio`` times as many as all smaller ones together.
    """
    n_drawn, n_smaller = n_texts.copy(), 0
    for i in np.argsort(n_texts, kind="stable"):
        if n_smaller:
            n_drawn[i] = min(n_texts[i], max(1, round(ratio * n_smaller)))
        n_smaller += int(n_drawn[i])
    return n_drawn


def with_weight(dataset: EncodedDataset, draw: Draw) -> np.ndarray:
    """Return weights with which the texts of an epoch stand for all, of shape (n_texts,)."""
    weight = np.ones(dataset.n_texts) if dataset.weight is None else dataset.weight
    counted: np.ndarray = (weight / draw.share).astype(np.float32)
    return counted


def prior_shift(target: np.ndarray, n_classes: int, weight: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return by how much sampling raises the logits of the classes.

    A network that is trained with these added to its logits has the probabilities of all rows, not
    of those that were drawn (King & Zeng 2001, section 4.1).

    Parameters
    ----------
    target : ndarray of shape (n_items,), or (n_items, n_labels) of 0 and 1
    n_classes : int
        Classes of one softmax; unused for columns.
    weight, share : ndarray of shape (n_items,)
        Weight of each item, and share of its group that an epoch has.

    Returns
    -------
    ndarray of shape (n_classes,) or (n_labels,), float32
        0 for classes without items.
    """
    if target.ndim == 1:
        all_of, drawn = (np.bincount(target, w, n_classes) for w in (weight, weight * share))
    else:
        all_of, drawn = (_odds(target, w) for w in (weight, weight * share))
    known = (all_of > 0) & (drawn > 0) & np.isfinite(all_of) & np.isfinite(drawn)
    shift = np.zeros(len(all_of), dtype=np.float32)
    shift[known] = np.log(drawn[known] / all_of[known])
    return shift - shift.max() if target.ndim == 1 else shift


def _odds(target: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the odds of 1 in each column."""
    ones = weight @ (target == 1)
    with np.errstate(divide="ignore"):
        odds: np.ndarray = ones / (weight.sum() - ones)
    return odds
