"""What a fit learns from: encoded rows, how many there are of what, and which an epoch has."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..nn._batching import Draw
from ..text._encoding import EncodedDataset


class Rule(NamedTuple):
    """What ``negative_ratio="auto"`` and ``max_epochs="auto"`` take (benchmarks/STUDY.md)."""

    ratio: float = 2.0  # Texts without positives for each one with,
    rare: float = 4.0  # where there are more than so many.
    presentations: int = 1200  # Of texts with positives, in a fit.


_USUAL = Rule()


@dataclass(frozen=True)
class Lesson:
    """What a fit learns from."""

    dataset: EncodedDataset
    labels: list[Any]  # The classes of an item.
    # Training items of each class, or (n_classes, 2): those without and with each label.
    counts: np.ndarray
    background: int | None  # The class that set losses leave out.
    binary: bool  # Whether one class is searched among the rest.
    # Of each text: 0 with positives, 1 without; or classes, from the rarest one on.
    group: np.ndarray | None = None
    windows_per_text: int = 1  # Of one that is not longer than a window.
    rule: Rule = _USUAL
    draw: Draw | None = None  # Which texts an epoch has, None for all.
    # What is added to the logits in training, because of the draw: (n_outputs,) or with n_items.
    shift: np.ndarray | None = None

    @property
    def n_positive(self) -> int:
        """Number of texts with positives; of classes, all but the most frequent one."""
        if self.group is None:
            return self.dataset.n_texts
        return max(1, int((self.group < self.group.max(initial=1)).sum()))

    @property
    def n_passes(self) -> float:
        """Epochs in which texts with positives are shown often enough."""
        return self.rule.presentations / self.n_positive

    @property
    def item_share(self) -> np.ndarray:
        """The share of its group that an epoch has, for each item."""
        assert self.draw is not None
        return np.repeat(self.draw.share, np.diff(self.dataset.item_offsets))

    @property
    def item_weight(self) -> np.ndarray:
        """The weight of the text of each item."""
        return np.repeat(self.dataset.text_weight, np.diff(self.dataset.item_offsets))

    def weighted(self) -> "Lesson":
        """Return the same with weights by which the texts of an epoch stand for all texts."""
        assert self.draw is not None
        weight = (self.dataset.text_weight / self.draw.share).astype(np.float32)
        return replace(self, dataset=replace(self.dataset, weight=weight))


def choose_ratio(ratio: Any, lesson: Lesson) -> float | None:
    """Return ``negative_ratio_``: the parameter or what is taken for "auto"; None for all texts."""
    if ratio is None or lesson.group is None:
        return None
    n_texts = _count_texts(lesson)
    if ratio == "auto":
        is_rare = (_capped(n_texts, lesson.rule.rare) < n_texts).any()
        ratio = lesson.rule.ratio if is_rare else None
    return None if ratio is None or (_capped(n_texts, ratio) == n_texts).all() else float(ratio)


def draw_of(ratio: float, lesson: Lesson) -> Draw:
    """Return which texts an epoch has: of each group at most ``ratio`` times all before it."""
    assert lesson.group is not None
    n_texts = _count_texts(lesson)
    return Draw(lesson.group, n_texts, _capped(n_texts, ratio))


def _count_texts(lesson: Lesson) -> np.ndarray:
    """Return the texts of each group; those without a window are in no epoch."""
    dataset, group = lesson.dataset, lesson.group
    assert group is not None
    has_window = np.bincount(dataset.text, minlength=dataset.n_texts) > 0
    return np.bincount(group[has_window], minlength=int(group.max(initial=0)) + 1)


def _capped(n_texts: np.ndarray, ratio: float) -> np.ndarray:
    n_drawn = n_texts.copy()
    for i in range(1, len(n_texts)):
        if before := n_drawn[:i].sum():
            n_drawn[i] = min(n_texts[i], max(1, round(ratio * before)))
    return n_drawn


def positives_first(dataset: EncodedDataset, is_positive: np.ndarray) -> np.ndarray:
    """Return the group of each text, 0 or 1, from which of its items are positive."""
    text = np.repeat(np.arange(dataset.n_texts), np.diff(dataset.item_offsets))
    group = np.ones(dataset.n_texts, dtype=np.int64)
    group[text[is_positive]] = 0
    return group


def prior_shift(
    target: np.ndarray, n_classes: int, weight: np.ndarray, share: np.ndarray
) -> np.ndarray:
    """Return by how much a draw raises the log-odds of the classes; 0 for what there is nothing of.

    A network that is trained with this added to its logits gives the probabilities of all rows, not
    of those that were drawn (King & Zeng 2001, section 4.1). Targets are of shape (n_items,), of
    ``n_classes`` of one softmax, or 0 and 1 of shape (n_items, n_columns); items have a weight, and
    the share of their group that an epoch has.
    """
    if target.ndim == 1:
        all_of, drawn = (np.bincount(target, w, n_classes) for w in (weight, weight * share))
    else:
        all_of, drawn = (_odds(target, w) for w in (weight, weight * share))
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.log(drawn) - np.log(all_of)
    return np.where(np.isfinite(shift), shift, 0.0).astype(np.float32)


def _odds(target: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the odds of 1 in each column."""
    ones = weight @ (target == 1)
    with np.errstate(divide="ignore"):
        odds: np.ndarray = ones / (weight.sum() - ones)
    return odds
