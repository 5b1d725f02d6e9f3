"""What a fit is given, and all that it reads, draws and encodes before anything is chosen."""

import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..exceptions import silent
from ..losses import CrossEntropyLoss
from ..nn import current_ranks, read_model, resolve_device, resolve_precision
from ..tasks import Rows, Task, TeachableTask, TrainingSet, split_rows
from ..text import TextReader
from ._initial_weights import BEGINNINGS, Beginning, InitialWeights, Seen
from ._settings import Settings
from .auto import TASK_RULES, Choice, RowFacts


@dataclass(frozen=True, eq=False, kw_only=True)
class Given:
    """What the user passed to a fit, checked."""

    settings: Settings
    rows: Rows  # with labels
    valid: Rows | None = None  # other rows, to score after every epoch
    unlabeled: Rows | None = None  # their y is None, or TeacherLabels
    seed: int
    feature_names: np.ndarray | None = None  # the columns of X, if it was a table with names
    choices: Mapping[str, Choice] = field(default_factory=dict)  # those that folds have made
    network: str = "network"  # what the progress bar calls one of several networks
    deadline: float = math.inf  # when the fit has to end, by the clock time.monotonic
    # How long the other fits that follow take, in times of this one; None if that was told before.
    rest: float | None = 0.0

    def within(self, share: float) -> "Given":
        """Return the same, to be fitted in a share of the time that is left."""
        now, rest = time.monotonic(), None if self.rest is None else (1 + self.rest) / share - 1
        return replace(self, deadline=now + share * (self.deadline - now), rest=rest)

    def split(self) -> tuple[Rows, Rows | None, np.random.Generator]:
        """Return the rows to train on, those to validate on, and what draws the order of texts."""
        rows, fraction = self.rows, self.settings.validation_fraction
        rng = np.random.default_rng(self.seed)
        if fraction is None:
            return rows, self.valid, rng
        train, valid = split_rows(len(rows), fraction, rng, rows.strata, rows.groups)
        return rows.take(train), rows.take(valid), rng


@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared:
    """All that a plan is chosen from."""

    given: Given
    settings: Settings  # with the device and the precision that are used
    task: Task  # with what the rows say, and the decision as it is before it is tuned
    reader: TextReader
    training_set: TrainingSet  # of all texts
    valid: Rows | None  # scored after every epoch, if there are any
    order: Mapping[str, Any]  # state of the generator that draws the order of the texts
    initial: InitialWeights | None  # where the head begins; None if it begins as drawn
    facts: RowFacts  # of the training rows with labels
    n_ranks: int  # processes that train together
    choices: Mapping[str, Choice]  # those that encoding needs


def prepare(task: Task, given: Given) -> Prepared:
    """Read the model, split the rows, find where the head begins, and encode the texts.

    The task has learned nothing yet. Rows without labels have those of a teacher.
    """
    device = resolve_device(given.settings.device)
    precision = resolve_precision(given.settings.precision, device)
    settings, rows = replace(given.settings, device=device, precision=precision), given.rows
    labels = task.facts(rows)
    task.check_learnable(rows, labels, settings.loss)
    model, n_texts = os.fspath(settings.model), task.info.n_texts
    reader, encoder = read_model(model, settings.max_length, n_texts, task.owner)
    has_weights = settings.class_weight is not None or settings.K is not None
    loss = settings.loss
    is_ce = loss in ("auto", "ce") or (type(loss) is CrossEntropyLoss and loss.class_weight is None)
    facts = RowFacts(
        task=task.info.name,
        labels=labels,
        encoder=encoder,
        n_rows=len(rows),
        trains_embeddings=not settings.n_frozen_layers and settings.peft_config is None,
        has_adapters=settings.peft_config is not None,
        is_plain=is_ce and not has_weights,
    )
    names = [name for name in task.info.choosable if getattr(task, name) is None]
    of_task = {name: TASK_RULES[name](facts) for name in names}
    task = replace(task, **{name: choice.value for name, choice in of_task.items()})
    task = task.learn(rows, labels, reader)
    training, valid, rng = given.split()
    if training is not rows:
        labels = task.facts(training)
        try:
            with silent():  # All rows have been warned of.
                task.check_learnable(training, labels, "ce")
        except ValueError as error:
            raise ValueError(f"Without rows held out by validation_fraction: {error}") from error
    beginning: Beginning = task, None, {}
    if begin := BEGINNINGS.get(task.info.name):
        beginning = begin(task, Seen(training, settings, reader, encoder, given.seed))
    task, initial, of_head = beginning
    learned = training if given.unlabeled is None else _teach(task, training, given.unlabeled)
    data = task.training_set(learned, reader, settings.negative_ratio is not None)
    if not data.dataset.item_offsets[-1]:
        raise ValueError("Found no word to train on: the training sentences have no words.")
    # Labels are those of the labelled rows alone; an epoch also has those of a teacher.
    return Prepared(
        given=given,
        settings=settings,
        task=task,
        reader=reader,
        training_set=data,
        valid=valid,
        order=rng.bit_generator.state,
        initial=initial,
        facts=replace(facts, n_rows=len(training), labels=labels),
        n_ranks=current_ranks(device).count,
        choices={**given.choices, **of_task, **of_head},
    )


def _teach(task: Task, training: Rows, unlabeled: Rows) -> Rows:
    """Return training rows together with rows that a teacher has labelled.

    A row without a label weighs as much as its label is probable, times the mean weight of the
    training rows. Training rows are there twice, so that they count for more than what a teacher
    says of other rows.
    """
    assert isinstance(task, TeachableTask)
    mean = 1.0 if training.weight is None else training.weight.mean()
    taught = training.join(training)
    for labels, p in task.taught(unlabeled.y):
        weight = (p * mean).astype(np.float32)
        taught = taught.join(replace(unlabeled, y=labels, weight=weight).used())
    return taught
