"""What a fit is planned from: rows read and split, and a choice for all that was left open."""

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from sklearn.base import clone

from .._inputs import list_some
from ..losses import Loss, log_class_weight, make_loss
from ..nn import Encoder, describe_encoder, resolve_device, resolve_precision, works_on
from ..tasks import ClassifyingPairs, Rows, Task, TrainingSet
from ..text import TextReader, WordTokenizer
from . import auto
from ._initial_weights import InitialWeights
from ._network import Plan, Schedule, begin_pairs, make_sampler, ranks_of, sample
from ._settings import Settings, loss_values
from .auto import TASK_RULES, Choice, EpochFacts, RowFacts

_DEFAULT_K = 3.0
_IGNORED = -100
# Where neither the model nor its tokenizer says how long a text may be.
_DEFAULT_MAX_LENGTH = 512


@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared:
    """A fit whose rows are read and split."""

    task: Task  # with its classes; none of its parameters is open
    settings: Settings
    reader: TextReader
    rows: Rows  # to learn from
    valid: Rows  # scored after every epoch; may be empty
    facts: RowFacts  # of the rows with labels that are learned from
    has_trained_head: bool  # whether the checkpoint brings a head of this task
    initial: InitialWeights | None  # where the comparison of two texts begins
    seed: int
    rng: np.random.Generator  # draws the order of the texts
    choices: Mapping[str, Choice]


def prepare(
    task: Task,
    settings: Settings,
    rows: Rows,
    valid: Rows | None,
    *,
    n_unlabeled: int,
    seed: int,
    choices: Mapping[str, Choice],
) -> Prepared:
    """Read the model, choose what the task has left open, learn its classes and split the rows."""
    rng, made = np.random.default_rng(seed), dict(choices)
    reader, encoder = read_model(task, settings)
    has_weights = settings.class_weight is not None or settings.K is not None
    facts = RowFacts(
        task=task.info.name,
        labels=task.facts(rows),
        encoder=encoder,
        n_rows=len(rows),
        n_unlabeled=n_unlabeled,
        trains_embeddings=not settings.n_frozen_layers and settings.peft_config is None,
        has_adapters=settings.peft_config is not None,
        is_plain=settings.loss in ("auto", "ce") and not has_weights,
    )
    is_open = [name for name in task.info.choosable if getattr(task, name) is None]
    chosen = {name: TASK_RULES[name](facts) for name in is_open}
    made |= chosen
    task = replace(task, **{name: choice.value for name, choice in chosen.items()})
    task = task.learn(rows, reader)

    training, held_out = rows.split(settings.validation_fraction, rng)
    initial = None
    if task.head.compares_texts(reader):
        pairs = cast(ClassifyingPairs, task)  # No other task has such a head.
        initial = begin_pairs(pairs, settings, reader, training, seed)
        # A task that has learned already, as those of folds, has similarities of other rows.
        pairs = replace(pairs, similarities=initial.similarities if initial else None)
        if initial is not None:
            made["similarities"] = initial.choice
            if "threshold" in made:
                # More is known now than when the others were chosen.
                made["threshold"] = auto.choose_threshold(facts, initial.best_f1)
                pairs = replace(pairs, threshold=made["threshold"].value).learn(rows, reader)
        task = pairs
    return Prepared(
        task=task,
        settings=settings,
        reader=reader,
        rows=training,
        valid=held_out if valid is None else valid,
        # Of what is left open the rows with labels decide, whatever else is learned from.
        facts=replace(facts, n_rows=len(training), labels=task.facts(training)),
        has_trained_head=task.head.continues(encoder.heads, encoder.n_labels),
        initial=initial,
        seed=seed,
        rng=rng,
        choices=made,
    )


def read_model(task: Task, settings: Settings) -> tuple[TextReader, Encoder]:
    """Return the reader of texts of a model, and the description of its encoder."""
    model = os.fspath(settings.model)
    tokenizer = WordTokenizer(model)
    encoder = describe_encoder(model, sees_case=tokenizer.sees_case)
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


def shared_seed(settings: Settings) -> int:
    """Return the seed of a fit: in all processes of a job, that of the first."""
    state = settings.random_state
    if isinstance(state, np.random.RandomState):  # It is advanced, as a generator is.
        drawn = int(state.randint(2**31 - 1))
    elif state is None or isinstance(state, np.random.Generator):
        drawn = int(np.random.default_rng(state).integers(2**31))
    else:
        drawn = int(state)
    seed = torch.tensor(drawn)
    ranks_of(settings).copy_first([seed])
    return int(seed)


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


def choose(prepared: Prepared, kind: str) -> Plan:
    """Return all that a training depends on, with a choice for each parameter that was left open.

    ``kind`` is what the progress bar calls one of several networks.
    """
    task, settings, reader = prepared.task, prepared.settings, prepared.reader
    choices = dict(prepared.choices)
    training_set = task.training_set(prepared.rows, reader, settings.negative_ratio is not None)
    if not training_set.dataset.n_items:
        raise ValueError("Found no word to train on: the training sentences have no words.")
    ratio = settings.negative_ratio
    if isinstance(ratio, str):
        n_texts, n_positive = training_set.n_texts, training_set.n_positive
        choice = auto.choose_negative_ratio(prepared.facts, n_texts, n_positive)
        ratio, choices["negative_ratio"] = choice.value, choice
    sampled = sample(training_set, ratio)
    facts = EpochFacts(
        rows=prepared.facts,
        n_texts=training_set.n_texts,
        n_positive=training_set.n_positive,
        ratio=sampled.ratio,
        n_steps=len(make_sampler(sampled, settings, reader, prepared.rng)),
        compares=prepared.initial is not None and prepared.initial.slope is not None,
        has_trained_head=prepared.has_trained_head,
    )
    loss, of_loss = _choose_loss(settings, facts, training_set)
    schedule, of_schedule = _choose_schedule(settings, facts)
    device = resolve_device(settings.device)
    precision = resolve_precision(settings.precision, device)
    choices |= of_loss | of_schedule
    if settings.device == "auto":
        choices["device"] = auto.choose_device(device)
    if settings.precision == "auto":
        choices["precision"] = auto.choose_precision(torch.device(device).type, precision)

    cuda_graphs = False
    if works_on(device):
        choices["cuda_graphs"] = auto.choose_cuda_graphs(
            n_processes=ranks_of(settings).count,
            accumulate=settings.accumulate,
            has_callbacks=bool(settings.callbacks),
            precision=precision,
            pads_left=reader.tokenizer.pads_left,
            has_matches=task.head.match_size is not None,
            has_own_loss=type(loss).__module__.startswith("skdice.") and loss.additive,
        )
        cuda_graphs = choices["cuda_graphs"].value

    shown = settings.loss if isinstance(settings.loss, str) else type(loss).__name__
    if "loss" in choices:
        shown = choices["loss"].value
    if sampled.draw is not None:
        n_drawn = int(sampled.draw.n_drawn.sum())
        shown = f"{shown}, {n_drawn} of {len(sampled.draw.group)} texts in each epoch"
    return Plan(
        task=task,
        settings=settings,
        reader=reader,
        sampled=sampled.corrected(task, loss),
        loss=loss,
        schedule=schedule,
        precision=precision,
        valid=prepared.valid,
        must_learn=auto.must_learn(facts, schedule.max_epochs, settings.lr == "auto"),
        description=f"{shown}, lr {schedule.lr:g}" if settings.lr == "auto" else shown,
        kind=kind,
        initial=prepared.initial,
        choices=choices,
        cuda_graphs=cuda_graphs,
    )


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
        warnings.warn(f"loss={settings.loss!r}: {reason}", stacklevel=4)
    return loss, choices


def _choose_schedule(settings: Settings, facts: EpochFacts) -> tuple[Schedule, dict[str, Choice]]:
    """Return the schedule of a fit, and the choices in it."""
    choices: dict[str, Choice] = {}
    encoder, has_adapters = facts.rows.encoder, facts.rows.has_adapters
    given = None if settings.lr == "auto" else float(settings.lr)
    if settings.max_epochs == "auto":
        choices["max_epochs"] = auto.choose_max_epochs(facts)
    if given is None:
        choices["lr"] = auto.choose_lr(encoder, has_adapters)
    if settings.head_lr is None:
        choices["head_lr"] = auto.choose_head_lr(
            encoder, has_adapters, given, facts.has_trained_head
        )
    taken = vars(settings) | {name: choice.value for name, choice in choices.items()}
    return Schedule(int(taken["max_epochs"]), float(taken["lr"]), float(taken["head_lr"])), choices


def choose_again(plan: Plan, problem: BaseException) -> Plan:
    """Return the plan with a third of an open rate, with which a fit learned nothing."""
    choices, schedule = dict(plan.choices), plan.schedule
    choices["lr"] = auto.choose_lr_again(schedule.lr, problem)
    third = replace(schedule, lr=choices["lr"].value)
    if plan.settings.head_lr is None:
        choices["head_lr"] = auto.choose_head_lr_again(schedule.head_lr)
        third = replace(third, head_lr=choices["head_lr"].value)
    warnings.warn(
        f"With the learning rate {schedule.lr:g} the fit learned nothing, so it started again with "
        f"{third.lr:.2g}. {problem}",
        stacklevel=5,
    )
    return replace(plan, schedule=third, must_learn=False, choices=choices)


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
