"""What a fit knows before anything is trained: classes, parts of the rows, and their facts."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch

from ..nn import Encoder, describe_encoder
from ..tasks import ClassifyingPairs, Rows, Task
from ..text import Reader, load_tokenizer
from ._network import begin_pairs, ranks_of
from ._settings import Settings, seed_of
from ._start import Start
from .auto import TASK_RULES, Choice, RowFacts, choose_threshold

# Where neither the model nor its tokenizer says how long a text may be.
_DEFAULT_MAX_LENGTH = 512


@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared:
    """A fit whose rows are read and split."""

    task: Task  # with its classes; none of its parameters is open
    settings: Settings
    reader: Reader
    rows: Rows  # to learn from
    valid: Rows  # scored after every epoch; may be empty
    facts: RowFacts  # of the rows with labels that are learned from
    has_trained_head: bool  # whether the checkpoint brings a head of this task
    start: Start | None  # where the comparison of two texts begins
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
    made |= {name: TASK_RULES[name](facts) for name in task.open}
    task = replace(task, **{name: made[name].value for name in task.open}).learn(rows, reader)

    training, held_out = rows.split(settings.validation_fraction, rng)
    start = None
    if task.head.compares_texts(reader):
        pairs = cast(ClassifyingPairs, task)  # No other task has such a head.
        start = begin_pairs(pairs, settings, reader, training, seed)
        # A task that has learned already, as those of folds, has similarities of other rows.
        pairs = replace(pairs, similarities=start.similarities if start else None)
        if start is not None:
            made["similarities"] = start.choice
            if "threshold" in made:
                # More is known now than when the others were chosen.
                made["threshold"] = choose_threshold(facts, start.best_f1)
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
        start=start,
        seed=seed,
        rng=rng,
        choices=made,
    )


def read_model(task: Task, settings: Settings) -> tuple[Reader, Encoder]:
    """Return how texts are read for a model, and what is known of its encoder."""
    model = os.fspath(settings.model)
    tokenizer = load_tokenizer(model)
    encoder = describe_encoder(model, sees_case=tokenizer.sees_case)
    frame = tokenizer.pair_frame if task.info.n_texts == 2 else tokenizer.frame
    limits = (encoder.n_positions, tokenizer.tokenizer.model_max_length)
    known = [n for n in limits if n and n < 10**9]
    longest, wanted = min(known, default=_DEFAULT_MAX_LENGTH), settings.max_length
    if wanted is None:
        return Reader(tokenizer, longest), encoder
    if frame.n_special < wanted <= min(known, default=wanted):
        return Reader(tokenizer, int(wanted)), encoder
    raise ValueError(
        f"The 'max_length' parameter of {task.owner} must be None or an int in the range "
        f"[{frame.n_special + 1}, {longest}] for {model!r}. Got {wanted!r} instead."
    )


def shared_seed(settings: Settings) -> int:
    """Return the seed of a fit: in all processes of a job, that of the first."""
    seed = torch.tensor(seed_of(settings))
    ranks_of(settings).copy_first([seed])
    return int(seed)
