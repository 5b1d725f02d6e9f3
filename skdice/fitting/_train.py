"""The training of a plan: its runs, one network each, and how these become one."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

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
    generators_of,
    history_of,
    seeded,
)
from ._network import NET_SETTINGS, make_batcher, make_net, network_of
from ._plan import Plan, Run, begin_again
from ._settings import Settings

_SAVED_STATE = "saved state (checkpoint_dir must be one directory that all see)"
# A network that has been trained, and the error that ended its training, if one did.
Done: TypeAlias = tuple[TextNet, BaseException | None]
_LOWER = 0.95  # share of a second try's loss below which the first one is kept: judgement


class Kept(NamedTuple):
    """The network that is kept, and which runs are in it."""

    net: TextNet
    runs: Sequence[int]
    score: float  # on the rows to validate on; NaN without any


class Trained(NamedTuple):
    """What the runs of a plan have learned."""

    plan: Plan  # the one that was followed
    kept: Kept
    runs: pd.DataFrame  # as runs_ of the estimators
    history: pd.DataFrame
    error: BaseException | None  # what ended the training before its end


def train(plan: Plan) -> Trained:
    """Train a network in each run, and make one of them.

    If a network learns nothing and the rate is open, all start again once with a third of it. An
    error that comes after a network has weights is in the result, with what was finished before.
    """
    done: list[Done] = []
    kept = error = None
    may_begin_again = plan.settings.lr == "auto" and not plan.runs[0].began_again
    try:
        for run in plan.runs:
            net, failure = _train_network(plan, run, len(done))
            done.append((net, failure))
            if may_begin_again and isinstance(failure, NotLearningError | NotFiniteError):
                again, may_begin_again = train(begin_again(plan, failure)), False
                if isinstance(failure, NotFiniteError) or again.error:
                    return again
                first, second = (each.history[-1, "train_loss"] for each in (net, again.kept.net))
                if first > _LOWER * second:
                    return again
                what = f"{second:.4f} in place of {first:.4f}, so the first one is kept"
                warn(f"The second try ended with a higher training loss, {what}.")
            elif isinstance(failure, NotLearningError):
                warn(f"With {run.lr:.2g}, too, the fit learned nothing. {failure} Set another lr.")
            elif failure is not None:
                error = failure
                break
        n_failed = sum(failure is not None for _, failure in done)
        if error is None and 0 < n_failed < len(done):
            warn(f"{n_failed} of {len(done)} networks learned nothing: left out.")
        kept = _keep(plan, done, is_whole=True)
    except BaseException as caught:
        if not done:
            raise
        error = caught
    kept = kept or _keep(plan, done, is_whole=False)
    nets, n_left = [net for net, _ in done], len(plan.runs) - len(done)
    has_ended = [failure is None or isinstance(failure, NotLearningError) for _, failure in done]
    n_epochs = [sum("dur" in row for row in net.history) for net in nets]
    columns: dict[str, list[Any]] = {
        "loss": [run.name for run in plan.runs],
        "lr": [run.lr for run in plan.runs],
        "max_epochs": [run.max_epochs for run in plan.runs],
        "epochs": [*n_epochs, *[0] * n_left],
        "best_epoch": [*(net.best_epoch_ for net in nets), *[0] * n_left],
        "score": [*(net.best_score_ for net in nets), *[np.nan] * n_left],
        "began_again": [run.began_again for run in plan.runs],
        "is_finished": [*has_ended, *[False] * n_left],
        "is_kept": [i in kept.runs for i in range(len(plan.runs))],
    }
    runs = pd.DataFrame(columns, index=pd.RangeIndex(1, len(plan.runs) + 1, name="run"))
    return Trained(plan, kept, runs, history_of(nets), error)


def _keep(plan: Plan, done: Sequence[Done], *, is_whole: bool) -> Kept:
    """Make an ensemble of the networks that learned something, or keep the first if some lack."""
    finished = [i for i, (_, failure) in enumerate(done) if failure is None] or [0]
    net, *others = [done[i][0] for i in finished]
    if not is_whole or not others:
        return Kept(net, finished[:1], net.best_score_)
    members = net.module_.members
    members.extend([other.module_ for other in others])
    try:
        score = np.nan if plan.prepared.valid is None else _validate(plan, net)()
    except BaseException:
        del members[:]
        raise
    return Kept(net, finished, score)


def _validate(plan: Plan, net: TextNet) -> Callable[[], float]:
    """Return a function that scores a network on the rows to validate on."""
    prepared, task = plan.prepared, plan.prepared.task
    assert prepared.valid is not None
    network = network_of(task, net, prepared.reader, plan.settings)
    return task.validator(prepared.valid, network)


def _train_network(plan: Plan, run: Run, number: int) -> Done:
    """Train the network of a run; an error that ends the training is in the result."""
    prepared, data = plan.prepared, run.training_set
    own = {name: getattr(run, name) for name in ("loss", "max_epochs", "lr", "head_lr")}
    settings = replace(plan.settings, **own)
    task, reader = prepared.task, prepared.reader
    error: BaseException | None = None
    ranks = current_ranks(settings.device)
    n_own, *n_later = [plan.n_steps * one.max_epochs for one in plan.runs[number:]]
    own_part = prepared.given.within(n_own / (n_own + sum(n_later)))
    is_shown = bool(settings.verbose and ranks.index == 0)
    callbacks = list(settings.callbacks or [])
    if is_shown:
        shown = plan.description
        if len(plan.runs) > 1:
            shown = f"{shown}, {prepared.given.network} {number + 1} of {len(plan.runs)}"
        # The first network tells how long all of them take.
        later = None if number or own_part.rest is None else own_part.rest * n_own
        callbacks.append(("skdice_progress", FitProgress(shown, task.metric_name, later)))
    criterion = task.criterion(run.loss)
    is_open = prepared.given.settings.precision == "auto"
    net = make_net(
        task,
        reader,
        criterion,
        **{name: getattr(settings, name) for name in NET_SETTINGS},
        predict_precision="fp32" if is_open else settings.precision,
        callbacks=callbacks,
        verbose=is_shown,  # Whether callbacks of skorch print.
    )
    rng = np.random.default_rng(run.seed)
    if run.seed == prepared.given.seed:  # It drew the rows to validate on.
        rng.bit_generator.state = prepared.order
    with seeded(run.seed, net.device), denormals_flushed():
        checkpoint, state = _initialize(plan, run, settings, net, rng, ranks)
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
        validate = None if prepared.valid is None else _validate(plan, net)
        limit = data.loss_of_constant(criterion, task.head.n_outputs) if run.must_learn else None
        training = Training(validate, settings.patience, checkpoint, state, own_part.deadline)
        try:
            with training.watching(net, limit):
                net.partial_fit(sampler)
        except BaseException as caught:
            error = caught
        net.module_.merge_adapters()
    return net, error


def _initialize(
    plan: Plan, run: Run, settings: Settings, net: TextNet, rng: np.random.Generator, ranks: Ranks
) -> tuple[DirectoryCheckpoint | None, dict[str, Any] | None]:
    """Make the weights of a network; return where its state is kept, and that to go on from."""
    prepared, directory = plan.prepared, settings.checkpoint_dir
    checkpoint = state = None
    with quiet_transformers():
        net.initialize()
        module, classes = net.module_, [str(label) for label in prepared.task.head.classes or ()]
        if module.trained_labels is not None and classes not in ([], module.trained_labels):
            is_kept = len(classes) == len(module.trained_labels)
            warn(
                f"model={os.fspath(settings.model)!r} was trained for the classes "
                f"{list_some(module.trained_labels)}; those of this fit are {list_some(classes)}. "
                f"It starts from {'that head, class by class' if is_kept else 'a new head'}."
            )
        # The files of the base model are on this machine from here on.
        if directory is not None or ranks.count > 1:
            # If no state is kept, the first of several processes may have callbacks of its own.
            alike = settings if directory is not None else replace(settings, callbacks=None)
            kind = torch.device(settings.device).type
            digests = {
                "parameters": digest([relevant_parameters(alike, "in fits"), kind, run.seed]),
                "base model": digest(base_model_digest(settings.model)),
                "package versions": digest(installed_versions()),
                "training data": digest([prepared.task, run.training_set.dataset, rng]),
                "held-out data": digest(prepared.valid),
            }
            if directory is not None:
                checkpoint = DirectoryCheckpoint(directory, digest([digests, ranks.count]))
                state = checkpoint.load()
            history = None if state is None else state.get("history")
            ranks.compare({**digests, _SAVED_STATE: digest(history)})
        if state is None and prepared.initial is not None:
            prepared.initial.apply(module)
    if ranks.count > 1:
        ranks.copy_first(module.state_dict().values())
        own = np.random.SeedSequence([run.seed, ranks.index]).generate_state(1)
        for generator in generators_of(net.device):
            generator.manual_seed(int(own[0]))
    return checkpoint, state
