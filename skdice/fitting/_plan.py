"""What a fit is planned from its rows: a plan, in which no parameter is open any more."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from sklearn.base import clone

from ..exceptions import warn
from ..losses import LOSS_PARAMETERS, Loss, SelfAdjustingDiceLoss, class_weights, make_loss
from ..nn import (
    Encoder,
    count_epoch,
    current_ranks,
    read_model,
    resolve_device,
    resolve_precision,
    works_on,
)
from ..tasks import LabelFacts, Rows, Task, TrainingSet
from ..text import TextReader
from . import auto
from ._folds import Folds
from ._initial_weights import BEGINNINGS, Beginning, InitialWeights
from ._settings import ClosedSettings, Settings, loss_values
from .auto import TASK_RULES, Choice, EpochFacts, RowFacts

_IGNORED = -100


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
    description: str  # for the progress bar: the loss, and how many texts an epoch draws
    partner: "Plan | None" = None  # of a network with another loss; the weights are averaged


def choose(
    task: Task, rows: Rows, labels: LabelFacts, folds: Folds, choices: Mapping[str, Choice]
) -> Plan:
    """Read the model, split the rows, and return a plan with a choice for all that is open.

    ``labels`` are the facts of the rows, ``folds`` have all else that the fit was given, and
    ``choices`` are those that were made already.
    """
    device = resolve_device(folds.settings.device)
    precision = resolve_precision(folds.settings.precision, device)
    settings = replace(folds.settings, device=device, precision=precision)
    rng, model = np.random.default_rng(folds.seed), os.fspath(settings.model)
    reader, encoder = read_model(model, settings.max_length, task.info.n_texts, task.owner)
    n_unlabeled = 0 if folds.unlabeled is None else len(folds.unlabeled)
    task, facts, of_task = _choose_task(task, settings, rows, labels, encoder, n_unlabeled)
    task = task.learn(rows, labels, reader)
    if task.tuning == "cv":
        folds.check(task, rows)
    training, held_out = rows.split(settings.validation_fraction, rng)
    valid = held_out if folds.valid is None else folds.valid
    beginning: Beginning = task, None, {}
    if begin := BEGINNINGS.get(task.info.name):
        beginning = begin(task, settings, reader, training, encoder, folds.seed)
    task, initial, of_head = beginning
    learned = training if folds.unlabeled is None else folds.teach(task, training, valid)
    data = task.training_set(learned, reader, settings.negative_ratio is not None)
    if not data.dataset.item_offsets[-1]:
        raise ValueError("Found no word to train on: the training sentences have no words.")
    # Of what is left open the rows with labels decide, whatever else is learned from.
    labels = labels if training is rows else task.facts(training)
    facts = replace(facts, n_rows=len(training), labels=labels)
    data, epoch, of_ratio = _choose_epoch(settings, facts, data, task, initial)
    losses, of_loss = _choose_losses(settings, epoch, data)
    schedule, *second = _choose_schedules(settings, epoch, losses)
    made = {**choices, **of_task, **of_head, **of_ratio, **of_loss, **schedule}
    of_machine = auto.choose_machine(torch.device(device).type, precision).items()
    made |= {name: one for name, one in of_machine if getattr(folds.settings, name) == "auto"}
    if works_on(settings.device):
        made["cuda_graphs"] = _choose_cuda_graphs(settings, task, reader, losses)
    closed = ClosedSettings(
        **vars(settings)
        # A loss object has the parameters that a loss by name is given beside it.
        | dict.fromkeys((*LOSS_PARAMETERS, "K", "class_weight"))
        | {name: choice.value for name, choice in schedule.items()}
        | {"loss": losses[0], "negative_ratio": epoch.ratio, "random_state": folds.seed}
    )
    shown = made["loss"].value if "loss" in made else settings.loss
    shown = shown if isinstance(shown, str) else type(shown).__name__
    if data.draw is not None:
        n_drawn, n_all = data.draw.n_drawn.sum(), len(data.draw.group)
        shown = f"{shown}, {n_drawn} of {n_all} texts in each epoch"
    sets = [data if data.draw is None else task.corrected(data, loss) for loss in losses]
    plan = Plan(
        task=task,
        settings=closed,
        reader=reader,
        training_set=sets[0],
        valid=valid,
        n_rows=len(training),
        rng=rng,
        initial=initial,
        choices=made,
        must_learn=auto.must_learn(epoch, closed.max_epochs, settings.lr == "auto"),
        cuda_graphs="cuda_graphs" in made and made["cuda_graphs"].value,
        description=shown,
    )
    return plan if len(losses) == 1 else _with_partner(plan, losses[1], sets[1], *second)


def _with_partner(
    plan: Plan, loss: Loss, training_set: TrainingSet, schedule: Mapping[str, Choice]
) -> Plan:
    """Return the plan with that of a second network, which learns with dice."""
    choices, epochs = dict(plan.choices), plan.settings.max_epochs
    if "max_epochs" in choices:
        first, epochs = choices["max_epochs"], schedule["max_epochs"].value
        choices["max_epochs"] = first._replace(why=f"{first.why} Dice makes {epochs}.")
    partner = replace(
        plan,
        settings=replace(plan.settings, loss=loss, max_epochs=epochs),
        training_set=training_set,
        initial=plan.initial and plan.initial.of_another(),
        description=f"{plan.description}, network 2 of 2",
    )
    described = f"{plan.description}, network 1 of 2"
    return replace(plan, partner=partner, choices=choices, description=described)


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
        is_ensemble=settings.n_members > 1,
        is_plain=settings.loss in ("auto", "ce") and not has_weights,
    )
    is_open = [name for name in task.info.choosable if getattr(task, name) is None]
    chosen = {name: TASK_RULES[name](facts) for name in is_open}
    values = {name: choice.value for name, choice in chosen.items()}
    return replace(task, **values), facts, chosen


def _choose_epoch(
    settings: Settings,
    facts: RowFacts,
    data: TrainingSet,
    task: Task,
    initial: InitialWeights | None,
) -> tuple[TrainingSet, EpochFacts, dict[str, Choice]]:
    """Return the training set with the draw of an epoch, and what is known of the epoch."""
    ratio, choices = settings.negative_ratio, dict[str, Choice]()
    n_texts, n_positive = data.n_texts, data.dataset.n_texts
    if n_texts is not None:
        n_positive = max(1, int(n_texts[:-1].sum()))
    if isinstance(ratio, str):
        choices["negative_ratio"] = auto.choose_negative_ratio(facts, n_texts, n_positive)
        ratio = choices["negative_ratio"].value
    data = data.drawn(ratio)
    n_ranks, encoder = current_ranks(settings.device).count, facts.encoder
    step_size = settings.batch_size * settings.accumulate * n_ranks
    epoch = EpochFacts(
        rows=facts,
        n_texts=n_texts,
        n_positive=n_positive,
        ratio=data.ratio,
        n_steps=count_epoch(data.dataset, step_size, data.windows_per_text, data.draw).n_steps,
        begins_trained=initial is not None and initial.slope is not None,
        has_trained_head=task.head.continues(encoder.heads, encoder.n_labels),
    )
    return data, epoch, choices


def _choose_losses(
    settings: Settings, facts: EpochFacts, training_set: TrainingSet
) -> tuple[list[Loss], dict[str, Choice]]:
    """Return the loss of one fit, or of its two networks, and what was chosen of them."""
    choices: dict[str, Choice] = {}
    name = settings.loss
    if isinstance(name, str) and name == "auto":
        choices["loss"] = auto.choose_loss(facts)
        name = choices["loss"].value
    kind, weights = settings.class_weight, None
    if kind is None and (settings.K is not None or name == "wce"):
        kind = "log"
    if kind is not None:
        weights = class_weights(kind, settings.K, training_set.labels, training_set.counts)
    losses: list[Loss]
    if isinstance(name, Loss):
        # What counts in training is the task's to say, and it marks the rest by -100.
        losses = [clone(name).set_params(ignore_index=_IGNORED)]
        if weights is not None:
            losses[0].set_params(class_weight=weights)
    else:
        how = {"binary": training_set.binary, "class_weight": weights, **loss_values(settings)}
        losses = [make_loss(one, **how) for one in name.split("+")]
    for loss in losses:
        if isinstance(getattr(loss, "background", None), str):
            loss.set_params(background=training_set.background)
        if isinstance(loss.memory, str):
            if not loss.separable:
                n_positive = training_set.count_positives(str(loss.average))
                choices["memory"] = auto.choose_memory(facts, n_positive)
            loss.set_params(memory=choices["memory"].value if choices.get("memory") else 0.0)
        if isinstance(loss, SelfAdjustingDiceLoss) and (reason := loss.known_collapse()):
            warn(f"loss={settings.loss!r}: {reason}")
    return losses, choices


def _choose_schedules(
    settings: Settings, facts: EpochFacts, losses: Sequence[Loss]
) -> list[dict[str, Choice]]:
    """Return the choices of epochs and rates for each loss, where open; warn of too few epochs."""
    encoder, adapted = facts.rows.encoder, facts.rows.has_adapters
    given = None if settings.lr == "auto" else float(settings.lr)
    choices: dict[str, Choice] = {}
    if given is None:
        choices["lr"] = auto.choose_lr(encoder, adapted)
    if settings.head_lr is None:
        choices["head_lr"] = auto.choose_head_lr(encoder, adapted, given, facts.has_trained_head)
    if settings.max_epochs != "auto":
        if few := auto.too_few_epochs(facts, settings.max_epochs, losses[0].separable):
            warn(few)
        return [choices for _ in losses]
    epochs = [auto.choose_max_epochs(facts, loss.separable) for loss in losses]
    return [{"max_epochs": chosen, **choices} for chosen in epochs]


def _choose_cuda_graphs(
    settings: Settings, task: Task, reader: TextReader, losses: Sequence[Loss]
) -> Choice:
    """Return whether steps are CUDA graphs."""
    is_alone = current_ranks(settings.device).count == settings.accumulate == 1
    is_fixed = "match_size" not in task.head.module and not reader.tokenizer.pads_left
    is_graphable = all(loss.graphable and loss.additive for loss in losses)
    return auto.choose_cuda_graphs(
        shows_parts=not is_alone or bool(settings.callbacks) or settings.precision == "fp16",
        is_fixed=is_fixed and is_graphable,
    )


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
    initial = plan.initial and plan.initial.of_another()
    return replace(plan, settings=third, initial=initial, is_second=True, choices=choices)


def open_rates(encoder: Encoder, *, has_adapters: bool) -> tuple[float, float]:
    """Return the learning rates of the encoder and of a new head that are taken for "auto"."""
    head = auto.choose_head_lr(encoder, has_adapters, lr=None, has_trained_head=False)
    return auto.choose_lr(encoder, has_adapters).value, head.value
