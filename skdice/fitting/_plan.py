"""What a fit is planned from its rows: a plan, in which no parameter is open any more."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from .._inputs import list_some
from ..exceptions import warn
from ..losses import LOSS_PARAMETERS, Loss, log_class_weight, make_loss
from ..nn import (
    Encoder,
    count_epoch,
    current_ranks,
    describe_encoder,
    resolve_device,
    resolve_precision,
    works_on,
)
from ..tasks import LabelFacts, Rows, Task, TrainingSet
from ..text import TextReader, WordTokenizer
from . import auto
from ._initial_weights import BEGINNINGS, InitialWeights
from ._settings import ClosedSettings, Settings, loss_values
from .auto import TASK_RULES, Choice, EpochFacts, RowFacts

_DEFAULT_K = 3.0
_IGNORED = -100
# Families that read the padding of a text, too: its scores depend on the texts in its batch.
_READ_PADDING = ("convbert", "fnet", "funnel", "nystromformer", "yoso")
# Where neither the model nor its tokenizer says how long a text may be.
_DEFAULT_MAX_LENGTH = 512


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """All that the training of a network depends on."""

    task: Task  # with what the rows say, and the decision as it is before it is tuned
    settings: ClosedSettings
    reader: TextReader
    training_set: TrainingSet
    valid: Rows | None  # scored after every epoch, if there are any
    n_rows: int  # training rows with labels
    rng: np.random.Generator  # draws the order of the texts
    initial: InitialWeights | None  # where the head begins
    choices: Mapping[str, Choice]  # what was taken for each parameter that was left open
    must_learn: bool  # whether the training loss must have fallen at the end
    is_second: bool = False  # whether the first try learned nothing: then this is a warning only
    cuda_graphs: bool  # whether steps are CUDA graphs
    description: str  # what the progress bar calls the fit


def choose(
    task: Task,
    settings: Settings,
    rows: Rows,
    labels: LabelFacts,
    valid: Rows | None,
    *,
    n_unlabeled: int,
    teach: Callable[[Task, Rows, Rows | None], Rows] | None,
    seed: int,
    choices: Mapping[str, Choice],
) -> Plan:
    """Read the model, split the rows, and return a plan with a choice for all that is open.

    ``labels`` are the facts of the rows. ``teach`` takes the task with its classes, the rows to
    train on and those to validate on, and returns the former with rows that had no labels.
    """
    rng, made = np.random.default_rng(seed), dict(choices)
    device = resolve_device(settings.device)
    precision = resolve_precision(settings.precision, device)
    on_device = replace(settings, device=device, precision=precision)
    reader, encoder = read_model(task, settings)
    task, facts, chosen = _choose_task(task, settings, rows, labels, encoder, n_unlabeled)
    made |= chosen
    task = task.learn(rows, labels, reader)
    training, held_out = rows.split(settings.validation_fraction, rng)
    valid, initial = held_out if valid is None else valid, None
    if task.info.name in BEGINNINGS:
        how = BEGINNINGS[task.info.name]
        more = (facts, seed, "threshold" in chosen)
        task, initial, of_head = how(task, on_device, reader, training, *more)
        made |= of_head
    learned = training if teach is None else teach(task, training, valid)
    training_set = task.training_set(learned, reader, settings.negative_ratio is not None)
    if not training_set.dataset.item_offsets[-1]:
        raise ValueError("Found no word to train on: the training sentences have no words.")
    # Of what is left open the rows with labels decide, whatever else is learned from.
    facts = replace(
        facts,
        n_rows=len(training),
        labels=labels if training is rows else task.facts(training),
    )
    n_of_group, n_positive = training_set.n_texts, training_set.n_positive
    ratio = settings.negative_ratio
    if isinstance(ratio, str):
        made["negative_ratio"] = auto.choose_negative_ratio(facts, n_of_group, n_positive)
        ratio = made["negative_ratio"].value
    training_set = training_set.drawn(ratio)
    n_texts = settings.batch_size * settings.accumulate * current_ranks(device).count
    dataset, n_windows = training_set.dataset, training_set.windows_per_text
    epoch = EpochFacts(
        rows=facts,
        n_texts=n_of_group,
        n_positive=n_positive,
        ratio=training_set.ratio,
        n_steps=count_epoch(dataset, n_texts, n_windows, training_set.draw).n_steps,
        begins_trained=initial is not None and initial.slope is not None,
        has_trained_head=task.head.continues(encoder.heads, encoder.n_labels),
    )
    loss, of_loss = _choose_loss(settings, epoch, training_set)
    if training_set.draw is not None:
        training_set = task.corrected(training_set, loss)
    schedule = _choose_schedule(settings, epoch, loss)
    made |= of_loss | schedule
    if settings.device == "auto":
        made["device"] = auto.choose_device(device)
    if settings.precision == "auto":
        made["precision"] = auto.choose_precision(torch.device(device).type, precision)
    if works_on(device):
        made["cuda_graphs"] = _choose_cuda_graphs(on_device, task, reader, loss)
    closed = ClosedSettings(
        **vars(on_device)
        # A loss object has the parameters that a loss by name is given beside it.
        | dict.fromkeys((*LOSS_PARAMETERS, "K", "class_weight"))
        | {name: choice.value for name, choice in schedule.items()}
        | {"loss": loss, "negative_ratio": ratio, "random_state": seed}
    )
    return Plan(
        task=task,
        settings=closed,
        reader=reader,
        training_set=training_set,
        valid=valid,
        n_rows=len(training),
        rng=rng,
        initial=initial,
        choices=made,
        must_learn=auto.must_learn(epoch, closed.max_epochs, settings.lr == "auto"),
        cuda_graphs="cuda_graphs" in made and made["cuda_graphs"].value,
        description=_describe(settings, made, training_set),
    )


def read_model(task: Task, settings: Settings) -> tuple[TextReader, Encoder]:
    """Return the reader of texts of a model, and the description of its encoder."""
    model = os.fspath(settings.model)
    tokenizer = WordTokenizer(model)
    encoder = describe_encoder(model, sees_case=tokenizer.sees_case)
    if encoder.family in _READ_PADDING:
        raise ValueError(
            f"The 'model' parameter of {task.owner} must not be of the families "
            f"{', '.join(_READ_PADDING)}, whose scores of a text change with its padding. Got "
            f"{model!r}, which is of the family {encoder.family!r}."
        )
    frame = tokenizer.pair_frame if task.info.n_texts == 2 else tokenizer.frame
    limits = (encoder.n_positions, tokenizer.tokenizer.model_max_length)
    known = [n for n in limits if n and n < 10**9]
    longest, wanted = min(known, default=_DEFAULT_MAX_LENGTH), settings.max_length
    if wanted is None:
        return TextReader(tokenizer, longest), encoder
    if frame.n_special < wanted <= min(known, default=wanted):
        return TextReader(tokenizer, int(wanted)), encoder
    raise ValueError(
        f"The 'max_length' parameter of {task.owner} must be None or an int in the range "
        f"[{frame.n_special + 1}, {longest}] for {model!r}. Got {wanted!r} instead."
    )


def _choose_task(
    task: Task,
    settings: Settings,
    rows: Rows,
    labels: LabelFacts,
    encoder: Encoder,
    n_unlabeled: int,
) -> tuple[Task, RowFacts, dict[str, Choice]]:
    """Return the task without an open field, the facts that it was chosen by, and the choices."""
    has_weights = settings.class_weight is not None or settings.K is not None
    facts = RowFacts(
        task=task.info.name,
        labels=labels,
        encoder=encoder,
        n_rows=len(rows),
        n_unlabeled=n_unlabeled,
        trains_embeddings=not settings.n_frozen_layers and settings.peft_config is None,
        has_adapters=settings.peft_config is not None,
        is_plain=settings.loss in ("auto", "ce") and not has_weights,
    )
    is_open = [name for name in task.info.choosable if getattr(task, name) is None]
    chosen = {name: TASK_RULES[name](facts) for name in is_open}
    values = {name: choice.value for name, choice in chosen.items()}
    return replace(task, **values), facts, chosen


def _choose_loss(
    settings: Settings, facts: EpochFacts, training_set: TrainingSet
) -> tuple[Loss, dict[str, Choice]]:
    """Return the loss of one fit, on a private copy, and what was chosen of it."""
    choices: dict[str, Choice] = {}
    name, kind, weights = settings.loss, settings.class_weight, None
    if isinstance(name, str) and name == "auto":
        choices["loss"] = auto.choose_loss(facts)
        name = choices["loss"].value
    if kind is None and (settings.K is not None or name == "wce"):
        kind = "log"
    if kind is not None:
        weights = _class_weights(kind, settings.K, training_set.labels, training_set.counts)
    loss: Loss
    if isinstance(name, Loss):
        # What counts in training is the task's to say, and it marks the rest by -100.
        loss = clone(name).set_params(ignore_index=_IGNORED)
        if weights is not None:
            loss.set_params(class_weight=weights)
    else:
        loss = make_loss(
            name, **loss_values(settings), binary=training_set.binary, class_weight=weights
        )
    if isinstance(getattr(loss, "background", None), str):
        loss.set_params(background=training_set.background)
    if isinstance(loss.memory, str):
        if not loss.separable:
            positives = _fewest_positives(
                training_set.counts, training_set.background, str(loss.average)
            )
            choices["memory"] = auto.choose_memory(facts, positives)
        loss.set_params(memory=choices["memory"].value if choices.get("memory") else 0.0)
    if reason := loss.known_collapse():
        warn(f"loss={settings.loss!r}: {reason}")
    return loss, choices


def _fewest_positives(counts: np.ndarray, background: int | None, average: str) -> float:
    """Count the positives of the set or, of the sets of each class, of the smallest.

    Infinite where every item is one, so that no step has few.
    """
    if counts.ndim == 1 and background is None and average == "micro":
        return math.inf
    of_class = counts[:, 1] if counts.ndim == 2 else counts
    if counts.ndim == 1 and background is not None:
        of_class = np.delete(counts, background)
    of_class = of_class[of_class > 0]
    if average == "micro" or not len(of_class):
        return float(of_class.sum())
    return float(of_class.min())


def _choose_schedule(settings: Settings, facts: EpochFacts, loss: Loss) -> dict[str, Choice]:
    """Return the choices of epochs and rates, where these are open."""
    choices: dict[str, Choice] = {}
    encoder, has_adapters = facts.rows.encoder, facts.rows.has_adapters
    given = None if settings.lr == "auto" else float(settings.lr)
    if settings.max_epochs == "auto":
        choices["max_epochs"] = auto.choose_max_epochs(facts, is_mean=loss.separable)
    if given is None:
        choices["lr"] = auto.choose_lr(encoder, has_adapters)
    if settings.head_lr is None:
        choices["head_lr"] = auto.choose_head_lr(
            encoder, has_adapters, given, facts.has_trained_head
        )
    return choices


def _choose_cuda_graphs(settings: Settings, task: Task, reader: TextReader, loss: Loss) -> Choice:
    """Return whether steps are CUDA graphs."""
    is_alone = current_ranks(settings.device).count == settings.accumulate == 1
    is_fixed = "match_size" not in task.head.module and not reader.tokenizer.pads_left
    is_ours = type(loss).__module__.startswith("skdice.") and loss.additive
    return auto.choose_cuda_graphs(
        shows_parts=not is_alone or bool(settings.callbacks) or settings.precision == "fp16",
        is_fixed=is_fixed and is_ours,
    )


def _describe(settings: Settings, choices: Mapping[str, Choice], data: TrainingSet) -> str:
    """Return what the progress bar calls a fit: its loss, and what was chosen of texts and rate."""
    shown = settings.loss if isinstance(settings.loss, str) else type(settings.loss).__name__
    if "loss" in choices:
        shown = choices["loss"].value
    if (draw := data.draw) is not None:
        n_drawn = int(draw.n_drawn.sum())
        shown = f"{shown}, {n_drawn} of {len(draw.group)} texts in each epoch"
    return f"{shown}, lr {choices['lr'].value:g}" if "lr" in choices else shown


def choose_again(plan: Plan, problem: BaseException) -> Plan:
    """Return the plan with a third of an open rate, with which a fit learned nothing."""
    choices, settings = dict(plan.choices), plan.settings
    lr, head_lr = auto.choose_rates_again(settings.lr, settings.head_lr, problem)
    choices["lr"], third = lr, replace(settings, lr=lr.value)
    if "head_lr" in choices:
        choices["head_lr"], third = head_lr, replace(third, head_lr=head_lr.value)
    warn(
        f"With the learning rate {settings.lr:g} the fit learned nothing, so it started again with "
        f"{lr.value:.2g}. {problem}"
    )
    # The network that was begun has been trained.
    initial = None if plan.initial is None else plan.initial._replace(begun=None)
    return replace(plan, settings=third, initial=initial, is_second=True, choices=choices)


def open_rates(encoder: Encoder, *, has_adapters: bool) -> tuple[float, float]:
    """Return the learning rates of the encoder and of a new head that are taken for "auto"."""
    head = auto.choose_head_lr(encoder, has_adapters, lr=None, has_trained_head=False)
    return auto.choose_lr(encoder, has_adapters).value, head.value


def _class_weights(
    kind: str | Mapping[Any, float], K: float | None, labels: Sequence[Any], counts: np.ndarray
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
    if counts.ndim == 2:
        names = [(f"without {label!r}", f"with {label!r}") for label in labels]
        return np.stack([_class_weights(kind, K, *row) for row in zip(names, counts)])
    present = counts > 0
    if kind == "balanced":
        weights[present] = counts.sum() / (present.sum() * counts[present])
    elif present.sum() > 1:
        by_label = {labels[i]: float(counts[i]) for i in np.flatnonzero(present).tolist()}
        weights[present] = log_class_weight(by_label, _DEFAULT_K if K is None else K)
    return weights
