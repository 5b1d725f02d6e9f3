"""What a fit learns from, and what parameters left open become: epochs, rates, windows."""

import math
import os
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..nn import Draw, size_of_network
from ..text import EncodedDataset, Frame, WordTokenizer

# Passes over the texts with positives: at least about so many optimiser steps, in so many passes;
# tiny sets take as many as make the fewest steps.
_STEPS = 200
_FEWEST_EPOCHS, _MOST_EPOCHS, _FEWEST_STEPS = 3, 30, 150
# What suits an encoder of this size; others are held to fall with its square, as the usual 5e-5 and
# 3e-5 of encoders of 768 and 1024 do.
_LR, _SIZE = 2e-4, 384
_LOWEST_LR, _HIGHEST_LR = 1e-5, 5e-4
# A new head, and adapters, have more to learn than what is trained already.
_NEW = 5.0
# Where neither the model nor its tokenizer says how long a text may be.
_DEFAULT_MAX_LENGTH = 512


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
    def in_turn(self) -> np.ndarray:
        """The texts with items, one of each group after the other: the first ones are of all."""
        texts = np.flatnonzero(np.diff(self.dataset.item_offsets))
        if self.group is None:
            return texts
        group = self.group[texts]
        turn = pd.Series(group).groupby(group).cumcount()
        return texts[np.lexsort((group, turn))]

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


@dataclass(frozen=True)
class Pace:
    """How long and how fast a fit learns."""

    max_epochs: int
    lr: float
    head_lr: float


def open_lr(hidden_size: int) -> float:
    """Return the learning rate that is taken for "auto"."""
    lr = min(max(_LR * (_SIZE / hidden_size) ** 2, _LOWEST_LR), _HIGHEST_LR)
    return float(f"{lr:.1e}")  # As one would write it.


def open_epochs(n_steps: int, n_passes: float) -> int:
    """Return how many epochs there are, of so many steps, where positives want so many passes."""
    wanted = math.ceil(max(_STEPS / n_steps, n_passes))
    epochs = min(max(wanted, _FEWEST_EPOCHS), _MOST_EPOCHS)
    return max(epochs, math.ceil(_FEWEST_STEPS / n_steps))


def choose_pace(estimator: Any, epochs: int, hidden_size: int) -> Pace:
    """Return numbers for "auto"; of epochs these."""
    max_epochs, lr, head_lr = estimator.max_epochs, estimator.lr, estimator.head_lr
    is_open = lr == "auto"
    if max_epochs == "auto":
        max_epochs = epochs
    if is_open:
        lr = open_lr(hidden_size)
    if head_lr is None:
        head_lr = _NEW * lr if is_open else lr
    if is_open and estimator.peft_config is not None:
        lr *= _NEW
    return Pace(int(max_epochs), float(lr), float(head_lr))


def longest_window(estimator: Any, tokenizer: WordTokenizer, frame: Frame) -> int:
    """Return ``max_length_``: the parameter, if it leaves room for text, or the model's limit."""
    model, wanted = os.fspath(estimator.model), estimator.max_length
    n_positions = size_of_network(model, "AutoModel").n_positions
    limits = (n_positions, tokenizer.tokenizer.model_max_length)
    known = [n for n in limits if n and n < 10**9]
    longest = min(known, default=_DEFAULT_MAX_LENGTH)
    if wanted is None:
        return longest
    if frame.n_special < wanted <= min(known, default=wanted):
        return int(wanted)
    raise ValueError(
        f"The 'max_length' parameter of {type(estimator).__name__} must be None or an int in the "
        f"range [{frame.n_special + 1}, {longest}] for {model!r}. Got {wanted!r} instead."
    )


def shared_pieces(estimator: Any, max_length: int, frame: Frame) -> int:
    """Return ``stride_``, the pieces that neighbouring windows share; fewer than a window has."""
    capacity = max_length - frame.n_special
    stride = capacity // 4 if estimator.stride is None else estimator.stride
    if stride >= capacity:
        raise ValueError(
            f"The 'stride' parameter of {type(estimator).__name__} must be smaller than the "
            f"{capacity} pieces of text in a window. Got {estimator.stride!r} instead."
        )
    return int(stride)
