"""What a fit leaves open, chosen: what an epoch has, the loss, how long and how fast to train."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from .._inputs import list_some
from ..losses import Loss, log_class_weight, make_loss
from ..nn import Encoder, resolve_device, resolve_precision
from ..tasks import Lesson
from . import auto
from ._draw import Sampled, sample
from ._network import Pace, Plan, ranks_of, sampler_of
from ._prepare import Prepared
from ._settings import Settings, loss_values
from .auto import EpochFacts

_DEFAULT_K = 3.0
_IGNORED = -100


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


def choose(prepared: Prepared, kind: str) -> Plan:
    """Return all that a training depends on, with a choice for each parameter that was left open.

    ``kind`` is what the progress bar calls one of several networks.
    """
    task, settings, reader, choices = (
        prepared.task,
        prepared.settings,
        prepared.reader,
        dict(prepared.choices),
    )
    lesson = task.lesson(prepared.rows, reader, settings.negative_ratio is not None)
    if not lesson.dataset.n_items:
        raise ValueError("Found no word to train on: the training sentences have no words.")

    ratio: Any = settings.negative_ratio
    if ratio == "auto":
        choices["negative_ratio"] = auto.choose_negative_ratio(
            prepared.facts, lesson.n_texts, lesson.n_positive
        )
        ratio = choices["negative_ratio"].value
    sampled = sample(lesson, ratio)
    sampler = sampler_of(sampled, settings, reader, np.random.default_rng(), ranks_of(settings))
    facts = EpochFacts(
        rows=prepared.facts,
        n_texts=lesson.n_texts,
        n_positive=lesson.n_positive,
        ratio=sampled.ratio,
        n_steps=len(sampler),
        compares=prepared.start is not None and prepared.start.slope is not None,
        has_trained_head=prepared.has_trained_head,
    )

    name: Any = settings.loss
    if isinstance(name, str) and name == "auto":
        choices["loss"] = auto.choose_loss(facts)
        name = choices["loss"].value
    loss = make_training_loss(settings, name, lesson)
    if isinstance(loss.memory, str):
        memory = 0.0
        if not loss.separable:
            positives = _fewest_positives(lesson.counts, lesson.background, str(loss.average))
            choices["memory"] = auto.choose_memory(facts, positives)
            memory = choices["memory"].value
        loss.set_params(memory=memory)
    if reason := loss.known_collapse():
        warnings.warn(f"loss={settings.loss!r}: {reason}", stacklevel=4)

    encoder, has_adapters = prepared.facts.encoder, prepared.facts.has_adapters
    epochs, lr, head_lr = settings.max_epochs, settings.lr, settings.head_lr
    if epochs == "auto":
        choices["max_epochs"] = auto.choose_max_epochs(facts, is_mean=loss.separable)
        epochs = choices["max_epochs"].value
    if lr == "auto":
        choices["lr"] = auto.choose_lr(encoder, has_adapters)
        lr = choices["lr"].value
    if head_lr is None:
        given = None if settings.lr == "auto" else lr
        choices["head_lr"] = auto.choose_head_lr(
            encoder, has_adapters, given, facts.has_trained_head
        )
        head_lr = choices["head_lr"].value
    pace = Pace(int(epochs), float(lr), float(head_lr))

    device = resolve_device(settings.device)
    precision = resolve_precision(settings.precision, device)
    if settings.device == "auto":
        choices["device"] = auto.choose_device(device)
    if settings.precision == "auto":
        choices["precision"] = auto.choose_precision(torch.device(device).type, precision)

    return Plan(
        task=task,
        settings=settings,
        reader=reader,
        sampled=sampled.corrected(task, loss),
        loss=loss,
        pace=pace,
        precision=precision,
        valid=prepared.valid,
        look_at=auto.choose_first_look(facts, pace.max_epochs, settings.lr == "auto"),
        description=_describe(settings, name, sampled, pace),
        kind=kind,
        start=prepared.start,
        choices=choices,
    )


def choose_again(plan: Plan, problem: BaseException) -> Plan:
    """Return the plan with a third of an open rate, with which a fit learned nothing."""
    choices, pace = dict(plan.choices), plan.pace
    choices["lr"] = auto.choose_lr_again(pace.lr, problem)
    third = replace(pace, lr=choices["lr"].value)
    if plan.settings.head_lr is None:
        choices["head_lr"] = auto.choose_head_lr_again(pace.head_lr)
        third = replace(third, head_lr=choices["head_lr"].value)
    warnings.warn(
        f"With the learning rate {pace.lr:g} the fit learned nothing, so it started again with "
        f"{third.lr:.2g}. {problem}",
        stacklevel=5,
    )
    return replace(plan, pace=third, look_at=None, choices=choices)


def open_rates(encoder: Encoder, *, has_adapters: bool) -> tuple[float, float]:
    """Return the learning rates of the encoder and of a new head that are taken for "auto"."""
    head = auto.choose_head_lr(encoder, has_adapters, lr=None, has_trained_head=False)
    return auto.choose_lr(encoder, has_adapters).value, head.value


def _describe(settings: Settings, loss: Any, sampled: Sampled, pace: Pace) -> str:
    """Return what the progress bar calls a fit."""
    name = loss if isinstance(loss, str) else type(loss).__name__
    if sampled.draw is not None:
        n_drawn, n_texts = int(sampled.draw.n_drawn.sum()), len(sampled.draw.group)
        name = f"{name}, {n_drawn} of {n_texts} texts in each epoch"
    return f"{name}, lr {pace.lr:g}" if settings.lr == "auto" else name


def make_training_loss(settings: Settings, name: Any, lesson: Lesson) -> Loss:
    """Return the loss of one fit, on a private copy; its memory may be open.

    ``name`` is the loss by name, "auto" replaced by what was chosen; it is unused for a loss
    object.
    """
    counts = lesson.counts
    kind = settings.class_weight
    if kind is None and (settings.K is not None or name == "wce"):
        kind = "log"
    weights = None
    if kind is not None:
        weights = _class_weights(kind, settings.K, lesson.labels, counts)
    if isinstance(settings.loss, Loss):
        # What counts in training is the task's to say, and it marks the rest by -100.
        loss: Loss = clone(settings.loss).set_params(ignore_index=_IGNORED)
        if weights is not None:
            loss.set_params(class_weight=weights)
    else:
        loss = make_loss(name, **loss_values(settings), binary=lesson.binary, class_weight=weights)
    if isinstance(getattr(loss, "background", None), str):
        loss.set_params(background=lesson.background)
    return loss


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
