"""The loss of a fit: its parameters, their checks, and the object that is trained with."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from .._inputs import list_some
from ..losses import (
    Loss,
    SetLoss,
    log_class_weight,
    make_loss,
)
from ..tasks import Lesson
from ._settings import Settings, loss_values
from .auto import Choices, Facts

_DEFAULT_K = 3.0
_IGNORED = -100
# As large a memory as was of any use there.
_LARGE_MEMORY = 30


def _fewest_positives(counts: np.ndarray, background: int | None, average: str) -> float:
    """Return how many positives the set has or, of the sets of each class, the smallest.

    Infinite where every item is one, so that no step has few.
    """
    if counts.ndim == 1 and background is None and average == "micro":
        return math.inf
    if counts.ndim == 2:
        of_class = counts[:, 1]
    else:
        of_class = counts if background is None else np.delete(counts, background)
    of_class = of_class[of_class > 0]
    if average == "micro" or not len(of_class):
        return float(of_class.sum())
    return float(of_class.min())


def make_training_loss(
    settings: Settings, name: Any, lesson: Lesson, facts: Facts, choices: Choices
) -> Loss:
    """Return the loss of one fit, on a private copy.

    ``name`` is the loss by name, "auto" replaced by what was chosen; it is unused for a loss
    object. An open memory is chosen by the facts.
    """
    counts, background = lesson.counts, lesson.background
    kind = settings.class_weight
    if kind is None and (settings.K is not None or name == "wce"):
        kind = "log"
    weights = None
    if kind is not None:
        weights = _class_weights(kind, settings.K, lesson.labels, counts)
    if isinstance(settings.loss, Loss):
        # What counts in training is the task's to say, and it marks the rest by -100.
        loss = clone(settings.loss).set_params(ignore_index=_IGNORED)
        if weights is not None:
            loss.set_params(class_weight=weights)
    else:
        loss = make_loss(name, **loss_values(settings), binary=lesson.binary, class_weight=weights)
    if isinstance(getattr(loss, "background", None), str):
        loss.set_params(background=background)
    if isinstance(loss.memory, str):
        memory = 0.0
        if not loss.separable:
            positives = _fewest_positives(counts, background, loss.average)
            memory = choices.choose("memory", replace(facts, set_positives=positives))
        loss.set_params(memory=memory)
    reason = loss.known_collapse()
    if reason:
        warnings.warn(f"loss={settings.loss!r}: {reason}", stacklevel=4)
    return loss


def warn_of_collapse(settings: Settings, loss: Loss, lr: float, max_epochs: int, what: str) -> None:
    """Warn that a fit ``what`` ("found no entity") in its training rows, and name the fit."""
    helps = ["more epochs or another lr"]
    if loss.class_weight is None:
        helps.insert(0, "class weights (K=3)" if isinstance(loss, SetLoss) else "loss='wce'")
    is_pooled = isinstance(loss, SetLoss) and loss.level == "batch"
    if is_pooled and float(loss.memory) < _LARGE_MEMORY:
        helps.insert(0, f"a larger memory (memory={_LARGE_MEMORY})")
    # Of a search, they tell which candidate it is.
    fit = {"loss": settings.loss, **loss_values(settings), "K": settings.K, "lr": lr}
    if fit["K"] is None:
        del fit["K"]
    named = ", ".join(f"{name}={value!r}" for name, value in fit.items())
    warnings.warn(
        f"This fit {what} in its training rows ({named}, {max_epochs} epochs). What "
        f"helps: {', '.join(helps)}.",
        stacklevel=4,
    )


def _class_weights(
    kind: str | Mapping[Any, float], K: float | None, labels: list[Any], counts: np.ndarray
) -> np.ndarray:
    """Return weights of the shape of the counts, 1 where there are no training items."""
    weights = np.ones(counts.shape)
    if isinstance(kind, Mapping):
        # A fold may lack a rare label, so only weights that are all for others are a mistake.
        if kind and not any(label in labels for label in kind):
            raise ValueError(
                f"class_weight has no label of y: it has {list_some(list(kind))}; y has "
                f"{list_some(labels)}."
            )
        for label, value in kind.items():
            if label in labels:
                weights[labels.index(label)] = [1, value] if counts.ndim == 2 else value
        return weights
    K = None if kind == "balanced" else _DEFAULT_K if K is None else K
    if counts.ndim == 1:
        return _weights_from_counts(labels, counts, K)
    for row, label in enumerate(labels):
        names = [f"without {label!r}", f"with {label!r}"]
        weights[row] = _weights_from_counts(names, counts[row], K)
    return weights


def _weights_from_counts(labels: Sequence[Any], counts: np.ndarray, K: float | None) -> np.ndarray:
    """Return the "log" weight of each class, or with K None the "balanced" one."""
    weights = np.ones(len(counts))
    present = counts > 0
    if K is None:
        weights[present] = counts.sum() / (present.sum() * counts[present])
    elif present.sum() > 1:
        by_label = {labels[i]: float(counts[i]) for i in np.flatnonzero(present).tolist()}
        weights[present] = log_class_weight(by_label, K)
    return weights
