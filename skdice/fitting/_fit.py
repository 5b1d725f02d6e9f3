"""A fit as a function: from a task, settings and rows to what was learned."""

import copy
import math
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from ..losses import Loss, LossName
from ..nn import (
    Encoder,
    NotFiniteError,
    NotLearningError,
    TextNet,
    describe_encoder,
    resolve_device,
    resolve_precision,
)
from ..tasks import ClassifyingPairs, Lesson, Logits, Rows, Task
from ..text import Reader, load_tokenizer
from ._draw import Sampled, sample
from ._fitted import FitResult, Fitted
from ._loss import make_training_loss, warn_of_collapse
from ._network import (
    Pace,
    Plan,
    Stopped,
    begin_pairs,
    history_of,
    join_members,
    mean_history,
    members_of,
    ranks_of,
    sampler_of,
    train_members,
)
from ._settings import Settings, seed_of
from .auto import Choices, Facts

# Folds in which a decision is tuned on the training rows.
N_FOLDS = 5
# Losses that "cv" compares.
_CV_LOSSES: tuple[LossName, ...] = ("ce", "dice")
# Networks that label rows without labels (benchmarks/RESULTS.md, "Self-training").
_N_TEACHERS = 3
# Training texts that a fit looks at, at a time, for what it has found.
_CHUNK_TEXTS = 64
# Share of the steps after which the loss of a fit must have fallen.
_FIRST_LOOK = 0.3
# Where neither the model nor its tokenizer says how long a text may be.
_DEFAULT_MAX_LENGTH = 512

Splits = Sequence[tuple[np.ndarray, np.ndarray]]


def fit(
    task: Task,
    settings: Settings,
    rows: Rows,
    valid: Rows | None = None,
    unlabeled: Rows | None = None,
    *,
    feature_names: np.ndarray | None = None,
    kind: str = "member",
) -> FitResult:
    """Fine-tune a network.

    Parameters
    ----------
    task : Task
        What is asked for; it has learned nothing yet.
    settings : Settings
    rows : Rows
        To learn from; those of ``validation_fraction`` are held out of them.
    valid : Rows, optional
        Other rows, to score after every epoch.
    unlabeled : Rows, optional
        Rows without labels, which an ensemble of three networks labels first.
    feature_names : ndarray of shape (n_columns,), optional
        Of X, if it was a table.
    kind : str
        What the progress bar calls one of several networks.

    Returns
    -------
    FitResult
        With the error, if one or Ctrl-C ended the training.

    Raises
    ------
    ValueError
        If parameters or rows are not allowed.
    """
    task.check_learnable(rows, settings.loss)
    seed = _shared_seed(settings)
    rng = np.random.default_rng(seed)
    reader, encoder = read_model(task, settings)
    choices = Choices()
    if settings.loss == "cv":
        learned, _ = _learn(task, settings, rows, reader, encoder, Choices())
        splits = split_folds(learned, rows, N_FOLDS, seed)
        settings = _with_best_loss(task, settings, rows, valid, unlabeled, splits, choices)
    task, facts = _learn(task, settings, rows, reader, encoder, choices)

    training, held_out = rows.split(settings.validation_fraction, rng, task.strata(rows))
    given, n_rows = valid, len(training)
    valid = held_out if valid is None else valid
    n_unlabeled = 0 if unlabeled is None else len(unlabeled)
    # What is left open goes by the rows with labels, whatever else is learned from.
    facts = replace(
        facts,
        n_unlabeled=n_unlabeled,
        n_rows=n_rows,
        has_trained_head=task.continues(encoder.heads, encoder.n_labels),
        **task.facts(training),
    )
    start = None
    if isinstance(task, ClassifyingPairs) and task.compares(reader):
        start = begin_pairs(task, settings, reader, training, seed)
        # A task that has learned already, as those of folds, has similarities of other rows.
        task = replace(task, similarities=start.similarities if start else None)
        if start is not None:
            facts = replace(facts, compares=start.slope is not None)
            share = round(1 - start.similarities.share, 2)
            choices.note("similarities", share, start.why)
    if unlabeled is not None:
        training = with_taught(task, settings, training, unlabeled, valid, seed)
    lesson = task.lesson(training, reader, settings.negative_ratio is not None)
    if not lesson.dataset.n_items:
        raise ValueError("Found no word to train on: the training sentences have no words.")
    sampled, loss, facts = _prepare(settings, lesson, reader, facts, choices)
    pace = _choose_pace(settings, facts, choices)
    sampled = sampled.corrected(task, loss)
    plan = Plan(
        task,
        settings,
        reader,
        sampled,
        loss,
        pace,
        resolve_precision(settings.precision, resolve_device(settings.device)),
        valid,
        _first_look(facts, pace),
        _describe(settings, loss, sampled, pace, choices),
        kind,
        start,
    )

    def fitted(task: Task, net: TextNet, nets: Sequence[TextNet], *, interrupted: bool) -> Fitted:
        return Fitted(
            task=task,
            reader=reader,
            net=net,
            loss=loss,
            choices=choices.table(),
            history=mean_history([history_of(net) for net in nets]),
            best_epoch=max(net.progress_.best_epoch for net in nets),
            negative_ratio=sampled.ratio,
            n_rows=n_rows,
            n_unlabeled=n_unlabeled,
            feature_names=feature_names,
            interrupted=interrupted,
        )

    try:
        nets, pace = _train(plan, seed, rng, choices)
    except Stopped as stopped:
        kept = fitted(task, stopped.net, [stopped.net], interrupted=True)
        return FitResult(fitted=kept, error=stopped.error)
    net = join_members(nets)
    trained = fitted(task, net, nets, interrupted=True)
    try:
        task = _tune(trained, settings, rows, valid, given, unlabeled, choices)
        trained = replace(trained, task=task, choices=choices.table())
        if missed := _missed(trained, settings, lesson):
            warn_of_collapse(settings, loss, pace.lr, pace.max_epochs, missed)
    except BaseException as error:
        return FitResult(fitted=trained, error=error)
    return FitResult(fitted=replace(trained, interrupted=False))


def _learn(
    task: Task, settings: Settings, rows: Rows, reader: Reader, encoder: Encoder, choices: Choices
) -> tuple[Task, Facts]:
    """Choose what a task has left open and learn its classes; return the first facts, too."""
    facts = first_facts(task, settings, rows, reader, encoder)
    chosen = {name: choices.choose(name, facts) for name in task.open}
    return replace(task, **chosen).learn(rows, reader), facts


def read_model(task: Task, settings: Settings) -> tuple[Reader, Encoder]:
    """Return how texts are read for a model, and what is known of its encoder."""
    model = os.fspath(settings.model)
    tokenizer = load_tokenizer(model)
    encoder = describe_encoder(model, sees_case=tokenizer.sees_case)
    frame = tokenizer.pair_frame if task.reads_two_texts else tokenizer.frame
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


def first_facts(
    task: Task, settings: Settings, rows: Rows, reader: Reader, encoder: Encoder
) -> Facts:
    """Return what the rules of "auto" go by before anything is encoded."""
    has_weights = settings.class_weight is not None or settings.K is not None
    return Facts(
        task=task.name,
        encoder=encoder,
        n_rows=len(rows),
        trains_embeddings=not settings.n_frozen_layers and settings.peft_config is None,
        has_adapters=settings.peft_config is not None,
        is_plain=settings.loss in ("auto", "ce") and not has_weights,
        compares=task.compares(reader),
        lr=None if settings.lr == "auto" else float(settings.lr),
        **task.facts(rows),
    )


def open_rates(encoder: Encoder, *, has_adapters: bool) -> tuple[float, float]:
    """Return the learning rates of the encoder and of the head that are taken for "auto"."""
    facts = Facts(task="", encoder=encoder, n_rows=0, has_adapters=has_adapters)
    choices = Choices()
    return choices.choose("lr", facts), choices.choose("head_lr", facts)


def _prepare(
    settings: Settings, lesson: Lesson, reader: Reader, facts: Facts, choices: Choices
) -> tuple[Sampled, Loss, Facts]:
    """Choose what an epoch has, and the loss; return them with the facts that follow."""
    facts = replace(facts, n_texts=lesson.n_texts, n_positive=lesson.n_positive)
    ratio = settings.negative_ratio
    if ratio == "auto":
        ratio = choices.choose("negative_ratio", facts)
    sampled = sample(lesson, ratio)
    ranks, rng = ranks_of(settings), np.random.default_rng()
    n_steps = len(sampler_of(sampled, settings, reader, rng, ranks))
    facts = replace(facts, ratio=sampled.ratio, n_steps=n_steps)
    name: Any = settings.loss
    if isinstance(name, str) and name == "auto":
        name = choices.choose("loss", facts)
    loss = make_training_loss(settings, name, lesson, facts, choices)
    return sampled, loss, replace(facts, is_mean=loss.separable)


def _choose_pace(settings: Settings, facts: Facts, choices: Choices) -> Pace:
    epochs: Any = settings.max_epochs
    if epochs == "auto":
        epochs = choices.choose("max_epochs", facts)
    lr = choices.choose("lr", facts) if facts.lr is None else facts.lr
    head_lr = settings.head_lr
    if head_lr is None:
        head_lr = choices.choose("head_lr", facts)
    return Pace(int(epochs), float(lr), float(head_lr))


def _first_look(facts: Facts, pace: Pace) -> int | None:
    """Return the epoch after three tenths of the steps, if the rate is open and there are enough.

    A head that begins trained has little to learn in its first epochs.
    """
    epoch = math.ceil(_FIRST_LOOK * pace.max_epochs)
    begins_trained = facts.compares or facts.has_trained_head
    return epoch if facts.lr is None and epoch > 1 and not begins_trained else None


def _train(
    plan: Plan, seed: int, rng: np.random.Generator, choices: Choices
) -> tuple[list[TextNet], Pace]:
    """Train the networks, once more with a third of an open rate if they learn nothing."""
    n_members, again = plan.settings.n_members, copy.deepcopy(rng)
    try:
        return train_members(plan, members_of(seed, rng, n_members)), plan.pace
    except (Stopped, NotLearningError, NotFiniteError) as stopped:
        error = stopped.error if isinstance(stopped, Stopped) else stopped
        is_dead = isinstance(error, NotLearningError | NotFiniteError)
        if not is_dead or plan.settings.lr != "auto":
            raise
    lr, third = plan.pace.lr, replace(plan.pace, lr=plan.pace.lr / 3)
    choices.note("lr", third.lr, f"With {lr:g} the fit learned nothing. {error}")
    if plan.settings.head_lr is None:
        third = replace(third, head_lr=plan.pace.head_lr / 3)
        choices.note("head_lr", third.head_lr, "It is a third of the first choice, as lr is.")
    warnings.warn(
        f"With the learning rate {lr:g} the fit learned nothing, so it started again with "
        f"{third.lr:.2g}. {error}",
        stacklevel=4,
    )
    plan = replace(plan, pace=third, look_at=None)
    return train_members(plan, members_of(seed, again, n_members)), third


def _describe(
    settings: Settings, loss: Loss, sampled: Sampled, pace: Pace, choices: Choices
) -> str:
    """Return what the progress bar calls a fit."""
    name = settings.loss if isinstance(settings.loss, str) else type(loss).__name__
    if "loss" in choices.made:
        name = choices.made["loss"].value
    if sampled.draw is not None:
        n_drawn, n_texts = int(sampled.draw.n_drawn.sum()), len(sampled.draw.group)
        name = f"{name}, {n_drawn} of {n_texts} texts in each epoch"
    return f"{name}, lr {pace.lr:g}" if settings.lr == "auto" else str(name)


def _shared_seed(settings: Settings) -> int:
    """Return the seed of a fit: in all processes of a job, that of the first."""
    seed = torch.tensor(seed_of(settings))
    ranks_of(settings).copy_first([seed])
    return int(seed)


def _tune(
    trained: Fitted,
    settings: Settings,
    rows: Rows,
    valid: Rows,
    given: Rows | None,
    unlabeled: Rows | None,
    choices: Choices,
) -> Task:
    """Return the task with its decision tuned, if that was asked for and there are rows for it."""
    task = trained.task
    if not task.is_tuned:
        return task
    if task.tuning == "cv":
        scores = out_of_fold_scores(task, settings, rows, valid=given, unlabeled=unlabeled)
        tuned, where = task.tune(rows, scores), f"the training rows, out of {N_FOLDS} folds"
    elif len(valid):
        scores = task.scores(valid.X, trained.reader, trained.logits(settings))
        tuned, where = task.tune(valid, scores), f"the {len(valid):,} rows that are held out"
    else:
        return task
    for name, value in tuned.decision.items():
        if name != "scheme_":
            choices.note(name.removesuffix("_"), value, f"It was tuned on {where}.")
    return tuned


def _missed(trained: Fitted, settings: Settings, lesson: Lesson) -> str | None:
    """Say what the fitted network misses in all training texts."""
    dataset, missed = lesson.dataset, None
    task, logits = trained.task, trained.logits(settings)
    assert dataset.target is not None
    found = np.zeros(1, dtype=bool)
    order = lesson.in_turn
    for start in range(0, len(order), _CHUNK_TEXTS):
        part = dataset.take(order[start : start + _CHUNK_TEXTS])
        found = found | task.found(logits(part), part)
        missed = task.missed(found, dataset.target)
        if missed is None:
            break
    return missed


def out_of_fold_scores(
    task: Task,
    settings: Settings,
    rows: Rows,
    *,
    valid: Rows | None = None,
    unlabeled: Rows | None = None,
    n_folds: int = N_FOLDS,
    splits: Splits | None = None,
) -> list[Any]:
    """Return what the decision is made on, for each row, by a network that has not seen it.

    The task has learned from all rows. Logits have its classes; those that a fold's network does
    not know get the lowest logit there is. There are ``n_folds``, fewer if there are not so many
    rows, groups of rows, or rows of a class; or those of ``splits``, where each row is in one test
    part. Two folds at least, or a ValueError.
    """
    found: list[Any] = [None] * len(rows)
    splits = splits or split_folds(task, rows, n_folds, _shared_seed(settings))
    for part, logits, test in _fold_fits(task, settings, rows, valid, unlabeled, splits):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # The fit of all rows says it.
            scores = part.task.scores(rows.take(test).X, part.reader, logits)
        known, classes = part.task.class_names, task.class_names
        if task.head in ("tokens", "sequence", "pair") and known != classes:
            lowest = min((float(row.min()) for row in scores if row.size), default=0.0)
            scores = [in_columns(row, known, classes, lowest) for row in scores]
        for i, score in zip(test, scores):
            found[i] = score
    return found


def _fold_fits(
    task: Task,
    settings: Settings,
    rows: Rows,
    valid: Rows | None,
    unlabeled: Rows | None,
    splits: Splits,
) -> Iterator[tuple[Fitted, Logits, np.ndarray]]:
    """Fit the training rows of each split; yield the fit, its network and the test rows."""
    asked = _without_folds(task)
    for train, test in splits:
        # Callbacks collect what they see of one fit.
        callbacks = clone(settings.callbacks, safe=False)
        of_part = replace(settings, runtime="torch", callbacks=callbacks)
        with warnings.catch_warnings():
            # What is wrong with rows, the fit of all rows has said.
            warnings.simplefilter("ignore", UserWarning)
            part = fit(asked, of_part, rows.take(train).used(), valid, unlabeled).complete()
        yield part, part.logits(of_part), test


def _with_best_loss(
    task: Task,
    settings: Settings,
    rows: Rows,
    valid: Rows | None,
    unlabeled: Rows | None,
    splits: Splits,
    choices: Choices,
) -> Settings:
    """Return settings with the loss that has the better mean score in the folds."""
    means = {}
    for name in _CV_LOSSES:
        tried = replace(settings, loss=name, checkpoint_dir=None)
        scores = []
        for part, logits, test in _fold_fits(task, tried, rows, valid, unlabeled, splits):
            scores.append(part.task.validator(rows.take(test), part.reader)(logits))
        means[name] = float(np.mean(scores))
    best = max(means, key=lambda name: means[name])
    shown = " and ".join(f"{name} has {mean:.3f}" for name, mean in means.items())
    choices.note("loss", best, f"In {len(splits)} folds of the rows {shown} ({task.metric_name}).")
    return replace(settings, loss=best)


def split_folds(
    task: Task, rows: Rows, n_folds: int, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the training and test rows of each fold: by groups, else by classes if there are."""
    groups = task.groups(rows.X) if rows.groups is None else rows.groups
    classes = task.strata(rows) if groups is None and task.is_classifier else None
    kinds = classes if classes is not None else range(len(rows)) if groups is None else groups
    _, number, sizes = np.unique(kinds, return_inverse=True, return_counts=True)
    most, needed = len(sizes), "two rows"
    if groups is not None:
        needed = "rows of two groups"
    elif classes is not None:
        most, needed = sizes.min(), "two rows of each class"
        if len(sizes) > 2:  # A class may be missing in a fold.
            most, needed = sizes.max(), "two rows of a class"
    if most < 2:
        raise ValueError(f"Out-of-fold predictions need {needed}; got {len(rows)} rows.")
    kind = StratifiedKFold if classes is not None else KFold if groups is None else GroupKFold
    cv = kind(min(n_folds, int(most)), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Of a class with fewer rows than folds.
        return list(cv.split(number, number, number))


def in_columns(row: np.ndarray, known: list[Any], classes: list[Any], fill: float) -> np.ndarray:
    """Return scores of some classes among those of all, which are filled up."""
    whole = np.full((*row.shape[:-1], len(classes)), fill, dtype=row.dtype)
    whole[..., [classes.index(name) for name in known]] = row
    return whole


def with_taught(
    task: Task, settings: Settings, rows: Rows, unlabeled: Rows, valid: Rows, seed: int
) -> Rows:
    """Return training rows twice, and then those without labels, as three networks label them.

    These weigh as much as their labels are probable, times the mean weight of the training rows. Of
    the fit of these networks the progress alone is shown: the fit that follows warns of the same.
    """
    teacher = replace(
        settings,
        n_members=max(_N_TEACHERS, settings.n_members),
        random_state=seed,
        validation_fraction=None,
        checkpoint_dir=None,
        callbacks=None,
        runtime="torch",
    )
    held_out = valid if len(valid) else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        asked = _without_folds(task)
        fitted = fit(asked, teacher, rows.used(), held_out, kind="teacher").complete()
        logits = fitted.logits(teacher)
        labelled = fitted.task.label(unlabeled.X, fitted.reader, logits)
    mean = 1.0 if rows.weight is None else rows.weight.mean()
    taught = rows.join(rows)
    for labels, p in labelled:
        weight = (p * mean).astype(np.float32)
        taught = taught.join(replace(unlabeled, y=labels, weight=weight).used())
    return taught


def _without_folds(task: Task) -> Task:
    """Return a task that tunes no decision out of fold."""
    return replace(task, tuning=None) if task.tuning == "cv" else task
