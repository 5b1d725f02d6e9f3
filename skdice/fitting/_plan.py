"""The plan of a fit: rules of "auto" on what was prepared; nothing is read or drawn here."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from ..exceptions import warn
from ..losses import (
    IGNORE_INDEX,
    LOSS_PARAMETERS,
    Loss,
    SelfAdjustingDiceLoss,
    class_weights,
    make_loss,
)
from ..nn import Encoder, count_epoch, works_on
from ..tasks import TrainingSet
from . import auto
from ._prepare import Prepared
from ._settings import Settings, loss_values
from .auto import Choice, EpochFacts


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """The training of one network."""

    loss: Loss  # with all parameters set
    name: str  # of the loss, for readers
    training_set: TrainingSet  # what an epoch draws from, with what makes up for the draw
    max_epochs: int
    lr: float
    head_lr: float
    seed: int  # of new weights, dropout, and the order of the texts
    must_learn: bool  # whether the training loss must have fallen at the end
    began_again: bool = False  # whether the rates are a third of those of a first try


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """All that the training of a fit depends on; no parameter is open any more."""

    prepared: Prepared
    settings: Settings  # what all runs share
    runs: tuple[Run, ...]
    choices: Mapping[str, Choice]  # what was taken for each parameter that was left open
    n_steps: int  # of an epoch
    cuda_graphs: bool  # whether steps are CUDA graphs
    description: str  # for the progress bar: the loss, and how many texts an epoch draws


def choose(prepared: Prepared) -> Plan:
    """Return a plan with a choice for all that is open."""
    settings, seed, asked = prepared.settings, prepared.given.seed, prepared.given.settings
    epoch, data, of_ratio = _choose_epoch(prepared)
    name, loss, of_loss = _choose_loss(settings, epoch, data)
    schedule, of_schedule = _choose_schedule(settings, epoch)
    of_machine = auto.choose_machine(torch.device(settings.device).type, settings.precision)
    choices = {**prepared.choices, **of_ratio, **of_loss, **of_schedule}
    choices |= {name: of_machine[name] for name in of_machine if getattr(asked, name) == "auto"}
    if works_on(settings.device):
        choices["cuda_graphs"] = _choose_cuda_graphs(prepared, loss)
    # A loss object has the parameters that are given beside the name of a loss.
    closed: dict[str, Any] = dict.fromkeys((*LOSS_PARAMETERS, "K", "class_weight"))
    closed |= {"negative_ratio": epoch.ratio, "random_state": seed}
    shown = name
    if data.draw is not None:
        n_drawn, n_texts = data.draw.n_drawn.sum(), len(data.draw.group)
        shown = f"{name}, {n_drawn} of {n_texts} texts in each epoch"
    return Plan(
        prepared=prepared,
        settings=replace(settings, **closed),
        runs=_plan_runs(prepared, epoch, data, loss=loss, name=name, **schedule),
        choices=choices,
        n_steps=epoch.n_steps,
        cuda_graphs="cuda_graphs" in choices and choices["cuda_graphs"].value,
        description=shown,
    )


def _plan_runs(
    prepared: Prepared, epoch: EpochFacts, data: TrainingSet, **shared: Any
) -> tuple[Run, ...]:
    """Return the runs: one, or the members of an ensemble, which have other seeds."""
    seed, n_others = prepared.given.seed, prepared.settings.n_members - 1
    seeds = [seed, *np.random.SeedSequence(seed).generate_state(n_others).tolist()]
    first = Run(
        training_set=data if data.draw is None else prepared.task.corrected(data, shared["loss"]),
        must_learn=auto.must_learn(epoch, shared["max_epochs"], prepared.settings.lr == "auto"),
        seed=seed,
        **shared,
    )
    return tuple(replace(first, seed=own) for own in seeds)


def begin_again(plan: Plan, problem: BaseException) -> Plan:
    """Return the plan with a third of the open rates, of all runs: with these one learned nothing.

    Members of an ensemble have the rates of one try, so all of them start again.
    """
    first = plan.runs[0]
    lr, head_lr = auto.choose_rates_again(first.lr, first.head_lr, problem)
    found = {"lr": lr} if plan.settings.head_lr is not None else {"lr": lr, "head_lr": head_lr}
    warn(
        f"With the learning rate {first.lr:g} the fit learned nothing, so it started again with "
        f"{lr.value:.2g}. {problem}"
    )
    new = {name: choice.value for name, choice in found.items()}
    runs = tuple(replace(run, **new, began_again=True) for run in plan.runs)
    return replace(plan, runs=runs, choices={**plan.choices, **found})


def _choose_epoch(prepared: Prepared) -> tuple[EpochFacts, TrainingSet, dict[str, Choice]]:
    """Return what is known of an epoch, the training set with its draw, and what was chosen."""
    settings, facts, data = prepared.settings, prepared.facts, prepared.training_set
    ratio, choices = settings.negative_ratio, dict[str, Choice]()
    n_texts, n_positive = data.n_texts, data.dataset.n_texts
    if n_texts is not None:
        n_positive = max(1, int(n_texts[:-1].sum()))
    if isinstance(ratio, str):
        choices["negative_ratio"] = auto.choose_negative_ratio(facts, n_texts, n_positive)
        ratio = choices["negative_ratio"].value
    data = data.drawn(ratio)
    step_size = settings.batch_size * settings.accumulate * prepared.n_ranks
    epoch = EpochFacts(
        rows=facts,
        n_texts=n_texts,
        n_positive=n_positive,
        ratio=data.ratio,
        n_steps=count_epoch(data.dataset, step_size, data.windows_per_text, data.draw).n_steps,
        begins_trained=prepared.initial is not None and prepared.initial.slope is not None,
        has_trained_head=prepared.task.head.continues(facts.encoder.heads, facts.encoder.n_labels),
    )
    return epoch, data, choices


def _choose_loss(
    settings: Settings, facts: EpochFacts, training_set: TrainingSet
) -> tuple[str, Loss, dict[str, Choice]]:
    """Return the name of the loss, the loss, and what was chosen of it."""
    choices: dict[str, Choice] = {}
    name: Any = settings.loss
    if isinstance(name, str) and name == "auto":
        choices["loss"] = auto.choose_loss(facts)
        name = choices["loss"].value
    kind, weights = settings.class_weight, None
    if kind is None and (settings.K is not None or name == "wce"):
        kind = "log"
    if kind is not None:
        weights = class_weights(kind, settings.K, training_set.labels, training_set.counts)
    if isinstance(name, Loss):
        # The task says what counts in training, and marks the rest by IGNORE_INDEX.
        name, loss = type(name).__name__, clone(name).set_params(ignore_index=IGNORE_INDEX)
        if weights is not None:
            loss.set_params(class_weight=weights)
    else:
        how = {"binary": training_set.binary, "class_weight": weights, **loss_values(settings)}
        loss = make_loss(name, **how)
    if isinstance(getattr(loss, "background", None), str):
        loss.set_params(background=training_set.background)
    if isinstance(loss.memory, str):
        memory = 0.0
        if not loss.separable:
            n_positive = training_set.count_positives(str(loss.average))
            choices["memory"] = auto.choose_memory(facts, n_positive)
            memory = choices["memory"].value
        loss.set_params(memory=memory)
    if isinstance(loss, SelfAdjustingDiceLoss) and (reason := loss.known_collapse()):
        warn(f"loss={settings.loss!r}: {reason}")
    return name, loss, choices


def _choose_schedule(
    settings: Settings, facts: EpochFacts
) -> tuple[dict[str, Any], dict[str, Choice]]:
    """Return the epochs and the rates of each network; warn of too few epochs."""
    encoder, adapted = facts.rows.encoder, facts.rows.has_adapters
    given = None if settings.lr == "auto" else float(settings.lr)
    usual = auto.choose_max_epochs(facts)
    found = {"max_epochs": settings.max_epochs, "lr": given, "head_lr": settings.head_lr}
    choices: dict[str, Choice] = {}
    if settings.max_epochs == "auto":
        choices["max_epochs"] = usual
    elif few := auto.too_few_epochs(facts, settings.max_epochs, usual.value):
        warn(few)
    if given is None:
        choices["lr"] = auto.choose_lr(encoder, adapted)
    if settings.head_lr is None:
        choices["head_lr"] = auto.choose_head_lr(encoder, adapted, given, facts.has_trained_head)
    return found | {name: choice.value for name, choice in choices.items()}, choices


def _choose_cuda_graphs(prepared: Prepared, loss: Loss) -> Choice:
    """Return whether steps are CUDA graphs."""
    settings = prepared.settings
    is_alone = prepared.n_ranks == settings.accumulate == 1
    is_fixed = "match_size" not in prepared.task.head.module
    is_fixed &= not prepared.reader.tokenizer.pads_left
    return auto.choose_cuda_graphs(
        shows_parts=not is_alone or bool(settings.callbacks) or settings.precision == "fp16",
        is_fixed=is_fixed and loss.graphable and loss.additive,
    )


def open_rates(encoder: Encoder, *, has_adapters: bool) -> tuple[float, float]:
    """Return the learning rates of the encoder and of a new head that are taken for "auto"."""
    new = auto.choose_lr(encoder, has_adapters=True)
    return auto.choose_lr(encoder, has_adapters).value, new.value
