"""A fit as a function, plan, train, decide; what it has learned is one value."""

import copy
import os
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch

from .._digest import base_model_digest, digest, installed_versions
from .._inputs import list_some
from .._parameters import relevant_parameters
from .._pretrained import quiet_transformers
from ..exceptions import warn
from ..nn import (
    DirectoryCheckpoint,
    FitProgress,
    NotFiniteError,
    NotLearningError,
    Ranks,
    StepSampler,
    TagChain,
    TextNet,
    Training,
    current_ranks,
    denormals_flushed,
    history_of,
    seed_generators,
    seeded,
    shared_seed,
)
from ..tasks import Rows, Task
from ._fitted import FitResult, Fitted
from ._folds import Folds
from ._network import NET_SETTINGS, logits_of, make_batcher, make_net
from ._plan import Plan, choose, choose_again
from ._settings import Settings
from .auto import Choice, table_of

_SAVED_STATE = "saved state (checkpoint_dir must be one directory that all see)"


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
    """Fine-tune a network to the rows; the task has learned nothing yet.

    ``valid`` are other rows, to score after every epoch; those of ``validation_fraction`` are held
    out of ``rows``. ``unlabeled`` are rows without labels, which an ensemble of three networks
    labels first, or whose labels are ``TeacherLabels``. ``kind`` is what the progress bar calls one
    of several networks. An error or Ctrl-C that ends the training is in the result.
    """
    labels, choices = task.facts(rows), dict[str, Choice]()
    task.check_learnable(rows, labels, settings.loss)
    seed = shared_seed(settings.random_state, settings.device)
    folds = Folds(fit=fit, settings=settings, seed=seed, valid=valid, unlabeled=unlabeled)
    if settings.loss == "cv":
        choices["loss"] = folds.compare_losses(task, rows)
        folds = replace(folds, settings=replace(settings, loss=choices["loss"].value))
    plan, nets, error = train(choose(task, rows, labels, folds, choices), kind)
    others: list[TextNet] = []
    if plan.partner is not None and error is None:
        _, others, error = train(plan.partner, kind)
        others = others if error is None else []
        # Between networks that begin alike there is a good one (Wortsman et al. 2022, Model soups).
        for net, other in zip(nets, others):
            weights = net.module_.parameters(), other.module_.parameters()
            for own, its in zip(*weights, strict=True):
                own.data.lerp_(its.data, 0.5)
    nets[0].module_.members.extend([net.module_ for net in nets[1:]])
    history, best_epoch = history_of(nets), max(net.best_epoch_ for net in nets)
    if others:
        more = history_of(others)
        history = pd.concat([history, more.set_index(more.index + len(history))])
        best_epoch = len(history)
        if plan.valid is not None:
            score = plan.task.validator(plan.valid, plan.reader)
            logits = logits_of(plan.task, nets[0], plan.reader, plan.settings)
            history.loc[best_epoch, "valid_score"] = score(logits)
    fitted = Fitted(
        task=plan.task,
        reader=plan.reader,
        net=nets[0],
        loss=plan.settings.loss,
        choices=table_of(plan.choices),
        history=history,
        best_epoch=best_epoch,
        negative_ratio=plan.training_set.ratio,
        n_rows=plan.n_rows,
        n_unlabeled=0 if unlabeled is None else len(unlabeled),
        feature_names=feature_names,
        interrupted=error is not None,
    )
    if error is not None or plan.task.tuning is None:
        return FitResult(fitted=fitted, error=error)
    return decide(fitted, plan, rows, folds)


def decide(fitted: Fitted, plan: Plan, rows: Rows, folds: Folds) -> FitResult:
    """Tune the decision on the rows with labels, out of fold, or on those to validate on."""
    task, reader, valid = fitted.task, fitted.reader, plan.valid
    try:
        if task.tuning == "cv":
            tuned = task.tune(rows, folds.scores(task, rows))
            where = "the training rows, as fits without them predict them"
        elif valid is None:
            return FitResult(fitted=fitted)
        else:
            logits = logits_of(task, fitted.net, reader, plan.settings)
            tuned = task.tune(valid, task.scores(valid.X, reader, logits))
            where = f"the {len(valid):,} rows that are held out"
        found = {
            name.removesuffix("_"): Choice(value, f"It was tuned on {where}.")
            for name, value in tuned.decision_attributes.items()
        }
        choices = table_of({**plan.choices, **found})
        return FitResult(fitted=replace(fitted, task=tuned, choices=choices))
    except BaseException as error:
        return FitResult(fitted=replace(fitted, interrupted=True), error=error)


def train(plan: Plan, kind: str) -> tuple[Plan, list[TextNet], BaseException | None]:
    """Train the networks of an ensemble, once more with a third of an open rate if need be.

    The plan that is returned is the one that was followed. If an error ends a network, it is
    returned with the networks that were finished; or with the one that was interrupted, if it was
    the first. ``kind`` is what the progress bar calls a network.
    """
    seed, n_members = plan.settings.random_state, plan.settings.n_members
    others = np.random.SeedSequence(seed).generate_state(n_members - 1).tolist()
    may_start_again = "lr" in plan.choices and not plan.is_second
    nets: list[TextNet] = []
    for number, own in enumerate([seed, *others]):
        rng = np.random.default_rng(own) if number else copy.deepcopy(plan.rng)
        shown = f"{plan.description}, {kind} {number + 1} of {n_members}"
        shown = shown if n_members > 1 else plan.description
        net, error = train_network(plan, own, rng, shown, is_first=not number)
        if may_start_again and isinstance(error, NotLearningError | NotFiniteError):
            return train(choose_again(plan, error), kind)
        if plan.is_second and isinstance(error, NotLearningError):
            warn(
                f"The second try, with the learning rate {plan.settings.lr:.2g}, learned nothing "
                f"either. {error} Another lr or loss, or more epochs may help."
            )
        elif error is not None:
            return plan, nets or [net], error
        nets.append(net)
    return plan, nets, None


def train_network(
    plan: Plan, seed: int, rng: np.random.Generator, description: str, *, is_first: bool
) -> tuple[TextNet, BaseException | None]:
    """Train one network; return it as it came to be, and the error that ended its training.

    The seed is that of torch; the generator draws the order of the texts. The first network may go
    on from the one that the plan has begun.
    """
    task, settings, reader, data = plan.task, plan.settings, plan.reader, plan.training_set
    error: BaseException | None = None
    ranks = current_ranks(settings.device)
    is_shown = bool(settings.verbose and ranks.index == 0)
    callbacks = list(settings.callbacks or [])
    if is_shown:
        callbacks.append(("progress", FitProgress(description, task.metric_name)))
    criterion = task.criterion(settings.loss)
    net = make_net(
        task,
        reader,
        criterion,
        **{name: getattr(settings, name) for name in NET_SETTINGS},
        predict_precision="fp32" if "precision" in plan.choices else settings.precision,
        begun=plan.initial.begun if plan.initial is not None and is_first else None,
        callbacks=callbacks,
        verbose=is_shown,  # Whether callbacks of skorch print.
    )
    with seeded(seed, net.device), denormals_flushed():
        checkpoint, state = _initialize(plan, net, seed, rng, ranks)
        dataset, transitions = data.dataset, task.head.transitions
        sampler = StepSampler(
            make_batcher(dataset, reader, settings.batch_size * data.windows_per_text, net.module_),
            settings.batch_size * settings.accumulate,
            rng,
            ranks,
            windows_per_text=data.windows_per_text,
            draw=data.draw,
            weight=data.weight,
            chain=None if transitions is None else TagChain(transitions, dataset.item_offsets),
            shift=data.shift,
            has_few_shapes=plan.cuda_graphs,
        )
        validate = limit = None
        if plan.valid is not None:
            score = task.validator(plan.valid, reader)
            validate = partial(score, logits_of(task, net, reader, settings))
        if plan.must_learn:
            limit = data.loss_of_constant(criterion, task.head.n_outputs)
        try:
            with Training(validate, settings.patience, checkpoint, state).watching(net, limit):
                net.partial_fit(sampler)
        except BaseException as caught:
            error = caught
        finally:
            if settings.peft_config is not None:
                net.module_.merge_adapters()
    return net, error


def _initialize(
    plan: Plan, net: TextNet, seed: int, rng: np.random.Generator, ranks: Ranks
) -> tuple[DirectoryCheckpoint | None, dict[str, Any] | None]:
    """Make the weights of a network; return where its state is kept, and that to go on from."""
    with quiet_transformers():
        net.initialize()
        module, checkpoint, state = net.module_, None, None
        if module.trained_labels is not None:
            _warn_of_other_classes(plan, module.trained_labels)
        # The files of the base model are on this machine from here on.
        if plan.settings.checkpoint_dir is not None or ranks.count > 1:
            checkpoint, state = _find_checkpoint(plan, seed, rng, ranks)
        if state is None and plan.initial is not None:
            plan.initial.apply(module)
    if ranks.count > 1:
        ranks.copy_first(module.state_dict().values())
        own = np.random.SeedSequence([seed, ranks.index]).generate_state(1)
        seed_generators(int(own[0]), net.device)
    return checkpoint, state


def _find_checkpoint(
    plan: Plan, seed: int, rng: np.random.Generator, ranks: Ranks
) -> tuple[DirectoryCheckpoint | None, dict[str, Any] | None]:
    """Return where the state of a fit is kept, and that to go on from, if there is one.

    All that a fit depends on has to be alike in every process.
    """
    settings, directory = plan.settings, plan.settings.checkpoint_dir
    if directory is None:
        # Nothing is kept of the fit: the first of several processes may have callbacks of its own.
        settings = replace(settings, callbacks=None)
    kind = torch.device(settings.device).type
    digests = {
        "parameters": digest([relevant_parameters(settings, "in fits"), kind, seed]),
        "base model": digest(base_model_digest(settings.model)),
        "package versions": digest(installed_versions()),
        "training data": digest([plan.task, plan.training_set.dataset, rng]),
        "held-out data": digest(plan.valid),
    }
    checkpoint = state = None
    if directory is not None:
        checkpoint = DirectoryCheckpoint(directory, digest([digests, ranks.count]))
        state = checkpoint.load()
    history = None if state is None else state.get("history")
    ranks.compare({**digests, _SAVED_STATE: digest(history)})
    return checkpoint, state


def _warn_of_other_classes(plan: Plan, trained: list[str]) -> None:
    """Warn if the base model has a head of this task, for other classes."""
    own = list(plan.task.head.model_config.get("id2label", {}).values())
    if not own or own == trained:
        return
    goes_on = "a new head" if len(own) != len(trained) else "that head, class by class"
    warn(
        f"model={os.fspath(plan.settings.model)!r} was trained for the classes "
        f"{list_some(trained)}; those of this fit are {list_some(own)}. It starts from {goes_on}."
    )
