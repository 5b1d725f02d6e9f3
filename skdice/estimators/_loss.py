"""The loss of an estimator: its parameters, their checks, and the object that a fit trains with."""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from .._inputs import list_some
from .._parameters import check_number
from ..losses import (
    LOSS_NAMES,
    LOSS_PARAMETERS,
    Loss,
    SetLoss,
    check_named,
    log_class_weight,
    loss_parameters,
    make_loss,
)
from ._lesson import Lesson

_DEFAULT_K = 3.0
_IGNORED = -100
# What memory="auto" goes by (benchmarks/RESULTS.md).
_ENOUGH_POSITIVES = 40
_MOST_STEPS = 10.0
# As large a memory as was of any use there.
_LARGE_MEMORY = 30


def memory_for(n_positives: float, n_steps: int) -> float:
    """Return what ``memory="auto"`` is: as many steps as have about 40 positives, at most 10.

    Positives are those of the training data, all in one set or those of the rarest class; steps are
    those of an epoch. Where a step by itself has that many, a memory gained nothing in our
    measurements, and made some fits too eager: its F1 is that of a network that knew less. So it is
    no more than a quarter of an epoch either.
    """
    if not n_positives:
        return 0.0
    memory = min(_ENOUGH_POSITIVES * n_steps / n_positives, _MOST_STEPS, n_steps / 4)
    return round(memory, 1) if memory > 1 else 0.0


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


def check_loss(estimator: Any) -> None:
    """Raise a ValueError unless the loss of an estimator and its parameters go together."""
    loss, given = estimator.loss, _given(estimator)
    if isinstance(loss, Loss):
        _check_loss_object(estimator, [*given])
    else:
        usable = loss_parameters(loss)
        for name, value in given.items():
            if name not in usable:
                takers = [known for known in LOSS_NAMES if name in loss_parameters(known)]
                raise ValueError(
                    f"{name}={value!r} cannot be used with loss={loss!r}; it is a parameter of "
                    f"{list_some(takers)}. To search over several losses, give each its own grid: "
                    f"[{{'loss': [{loss!r}]}}, {{'loss': [{takers[0]!r}], {name!r}: [{value!r}]}}]."
                )
        check_named(loss, type(estimator).__name__, given)
    if estimator.K is not None and estimator.class_weight not in (None, "log"):
        raise ValueError(
            f"K={estimator.K!r} means class_weight='log'; got "
            f"class_weight={estimator.class_weight!r}. Drop one."
        )


def _given(estimator: Any) -> dict[str, Any]:
    """Return the parameters of a loss by name that are not None."""
    values = {name: getattr(estimator, name) for name in LOSS_PARAMETERS}
    return {name: value for name, value in values.items() if value is not None}


def _check_loss_object(estimator: Any, given: list[str]) -> None:
    loss = estimator.loss
    if estimator.K is not None:
        given = [*given, "K"]
    if given:
        raise ValueError(
            f"{given[0]!r} must be None with a loss object, got {getattr(estimator, given[0])!r}: "
            f"set it on the object, for instance loss={type(loss).__name__}(...), or with "
            f"set_params(loss__...=...)."
        )
    if loss.reduction != "mean":
        raise ValueError(
            f"A loss to train with must have reduction='mean', got {loss.reduction!r}."
        )
    owner, ignored = type(loss).__name__, loss.ignore_index
    check_number(owner, "ignore_index", ignored, integer=True)
    if ignored >= 0:
        raise ValueError(
            f"A loss to train with must have a negative ignore_index, for classes are numbered 0, "
            f"1, ...; got ignore_index={ignored!r}. Leave it at -100: {owner}()."
        )
    if estimator.class_weight is not None and loss.class_weight is not None:
        raise ValueError(
            "class_weight is given on the estimator and on the loss object; set one of them to "
            "None."
        )
    if estimator.class_weight is not None:
        loss = clone(loss).set_params(class_weight=1.0)
    loss.check_parameters()


def check_loss_classes(loss: Any, n_classes: int, *, is_multilabel: bool = False) -> None:
    """Raise a ValueError unless a loss object, if it is one, is for so many classes."""
    if not isinstance(loss, Loss) or loss.class_weight is None:
        return
    target = torch.zeros((1, n_classes) if is_multilabel else 1, dtype=torch.int64)
    loss(torch.zeros(1, n_classes), target)


def make_training_loss(estimator: Any, name: str, lesson: Lesson, n_steps: int) -> Loss:
    """Return the loss of one fit, on a private copy.

    ``name`` is the loss by name, "auto" replaced by what was chosen; it is unused for a loss
    object. ``n_steps`` are those of an epoch.
    """
    counts, background = lesson.counts, lesson.background
    kind = estimator.class_weight
    if kind is None and (estimator.K is not None or name == "wce"):
        kind = "log"
    weights = None if kind is None else _class_weights(kind, estimator.K, lesson.labels, counts)
    if isinstance(estimator.loss, Loss):
        # What counts in training is the estimator's to say, and it marks the rest by -100.
        loss = clone(estimator.loss).set_params(ignore_index=_IGNORED)
        if weights is not None:
            loss.set_params(class_weight=weights)
    else:
        loss = make_loss(name, **_given(estimator), binary=lesson.binary, class_weight=weights)
    if isinstance(getattr(loss, "background", None), str):
        loss.set_params(background=background)
    if isinstance(loss.memory, str):
        memory = 0.0
        if not loss.separable:
            memory = memory_for(_fewest_positives(counts, background, loss.average), n_steps)
        loss.set_params(memory=memory)
    reason = loss.known_collapse()
    if reason:
        warnings.warn(f"loss={estimator.loss!r}: {reason}", stacklevel=3)
    return loss


def warn_of_collapse(estimator: Any, what: str) -> None:
    """Warn that a fit ``what`` ("found no entity") in its training rows, and name the fit."""
    loss = estimator.loss_
    helps = ["more epochs or another lr"]
    if loss.class_weight is None:
        helps.insert(0, "class weights (K=3)" if isinstance(loss, SetLoss) else "loss='wce'")
    is_pooled = isinstance(loss, SetLoss) and loss.level == "batch"
    if is_pooled and float(loss.memory) < _LARGE_MEMORY:
        helps.insert(0, f"a larger memory (memory={_LARGE_MEMORY})")
    # Of a search, they tell which candidate it is.
    fit = {"loss": estimator.loss, **_given(estimator), "K": estimator.K, "lr": estimator.lr_}
    if fit["K"] is None:
        del fit["K"]
    named = ", ".join(f"{name}={value!r}" for name, value in fit.items())
    warnings.warn(
        f"This fit {what} in its training rows ({named}, {estimator.max_epochs_} epochs). What "
        f"helps: {', '.join(helps)}.",
        stacklevel=3,
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
