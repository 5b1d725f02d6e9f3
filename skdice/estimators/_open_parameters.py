"""What is taken for parameters that are left open: epochs, learning rates, windows."""

import math
import os
from dataclasses import dataclass
from typing import Any

from ..nn._loading import size_of_network
from ..text._tokenizer import Frame, WordTokenizer

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
