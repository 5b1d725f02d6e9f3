"""Networks of a fit: made, trained, and asked for predictions."""

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch

from .._digest import base_model_digest, digest
from .._inputs import list_some
from .._pretrained import quiet_transformers
from ..io import (
    BATCH_TOKENS,
    DirectoryCheckpoint,
    installed_versions,
    onnx_network,
)
from ..losses import CrossEntropyLoss, Loss
from ..nn import (
    Batcher,
    Draw,
    FitProgress,
    Frames,
    MeanModule,
    NotLearningError,
    PairModule,
    QueryModule,
    Ranks,
    SequenceModule,
    SpanModule,
    StepSampler,
    TagChain,
    TextModule,
    TextNet,
    TokenModule,
    current_ranks,
    denormals_flushed,
    resolve_device,
    resolve_precision,
    seed_generators,
    seeded,
    train,
)
from ..tasks import Classifying, ClassifyingPairs, Logits, Rows, Task, TrainingSet
from ..text import EncodedDataset, TextReader
from ._initial_weights import InitialWeights, regress_pairs, regress_texts
from ._settings import Settings, learned_with
from .auto import Choice, capped

_SAVED_STATE = "saved state (checkpoint_dir must be one directory that all see)"
_HISTORY = ("epoch", "train_loss", "valid_score", "lr", "n_texts", "dur")
MODULES: dict[str, type[TextModule]] = {
    "tokens": TokenModule,
    "sequence": SequenceModule,
    "mean": MeanModule,
    "pair": PairModule,
    "spans": SpanModule,
    "queries": QueryModule,
}


@dataclass(frozen=True)
class Schedule:
    """How long and how fast a fit learns."""

    max_epochs: int
    lr: float
    head_lr: float


@dataclass(frozen=True, eq=False)
class SampledTrainingSet:
    """A training set, and the texts that an epoch draws from it."""

    training_set: TrainingSet
    ratio: float | None = None  # what was taken for negative_ratio; None if an epoch has all texts
    draw: Draw | None = None
    # What is added to the logits in training because of the draw, (n_outputs,) or (n_items,
    # n_outputs).
    shift: np.ndarray | None = None
    # What each target counts for because of the draw, besides the weight of its text; of the shape
    # of the targets, with a third column for the matches of queries.
    weight: np.ndarray | None = None

    def corrected(self, task: Task, loss: Loss) -> "SampledTrainingSet":
        """Return the same with a correction of what the draw changes.

        A set loss weighs each drawn text for all texts that it represents, which a ratio forgives.
        Such weights would make the gradient of a mean of single losses noisy; its logits are
        shifted by the change of the classes' shares instead, and weights of about 1 make up for
        what changes within a class.
        """
        assert self.draw is not None
        dataset = self.training_set.dataset
        if loss.separable:
            counts = np.diff(dataset.item_offsets)
            weight = np.repeat(dataset.text_weight, counts)
            share = np.repeat(self.draw.share, counts)
            shift, each = task.correct(self.training_set, loss, weight, share)
            return replace(self, shift=shift, weight=None if (each == 1).all() else each)
        weight = (dataset.text_weight / self.draw.share).astype(np.float32)
        return replace(
            self, training_set=replace(self.training_set, dataset=replace(dataset, weight=weight))
        )


def sample(training_set: TrainingSet, ratio: Any) -> SampledTrainingSet:
    """Return the training set with a draw, unless the ratio leaves no text out."""
    n_texts = training_set.n_texts
    if ratio is None or n_texts is None or (capped(n_texts, ratio) == n_texts).all():
        return SampledTrainingSet(training_set)
    assert training_set.group is not None
    return SampledTrainingSet(
        training_set, float(ratio), Draw(training_set.group, n_texts, capped(n_texts, ratio))
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """All that the training of a network depends on, but for its seed."""

    task: Task  # with what the rows say, and the decision as it is before it is tuned
    settings: Settings
    reader: TextReader
    sampled: SampledTrainingSet
    loss: Loss
    schedule: Schedule
    precision: str  # "fp32", "bf16" or "fp16"
    valid: Rows  # scored after every epoch; may be empty
    must_learn: bool  # whether the training loss must have fallen at the end
    is_second: bool = False  # whether the first try learned nothing: then this is a warning only
    description: str  # what the progress bar calls the fit
    kind: str  # what it calls one of several networks
    initial: InitialWeights | None  # where the head begins
    choices: Mapping[str, Choice]  # what was taken for each parameter that was left open
    cuda_graphs: bool  # whether steps are CUDA graphs


def train_members(
    plan: Plan, seed: int, rng: np.random.Generator
) -> tuple[list[TextNet], BaseException | None]:
    """Train the networks of an ensemble; the first has this seed and generator.

    If an error ends one, it is returned with the networks that were finished; or with the one that
    was interrupted, if it was the first.
    """
    others = np.random.SeedSequence(seed).generate_state(plan.settings.n_members - 1).tolist()
    nets: list[TextNet] = []
    for number, own in enumerate([seed, *others]):
        net, error = train_member(plan, number, own, np.random.default_rng(own) if number else rng)
        if error is not None:
            return nets or [net], error
        nets.append(net)
    return nets, None


def train_member(
    plan: Plan, number: int, seed: int, rng: np.random.Generator
) -> tuple[TextNet, BaseException | None]:
    """Train one network; return it as it came to be, and the error that ended its training.

    The seed is that of torch; the generator draws the order of the texts.
    """
    task, settings, reader = plan.task, plan.settings, plan.reader
    dataset = plan.sampled.training_set.dataset
    error: BaseException | None = None
    ranks = current_ranks(settings.device)
    is_shown = bool(settings.verbose and ranks.index == 0)
    callbacks = list(settings.callbacks or [])
    if is_shown:
        text = plan.description
        if settings.n_members > 1:
            text = f"{text}, {plan.kind} {number + 1} of {settings.n_members}"
        callbacks.append(("progress", FitProgress(text, task.metric_name)))
    criterion = task.criterion(plan.loss)
    net = make_net(
        task,
        settings,
        reader,
        criterion=criterion,
        precision=plan.precision,
        schedule=plan.schedule,
        callbacks=callbacks,
        verbose=is_shown,  # Whether callbacks of skorch print.
    )
    with seeded(seed, net.device), denormals_flushed():
        checkpoint, state = _initialize(plan, net, seed, rng, ranks)
        shifts = [shift for shift in (dataset.offset, plan.sampled.shift) if shift is not None]
        transitions, validate = task.head.transitions, None
        sampler = make_sampler(
            plan.sampled,
            settings,
            reader,
            rng,
            net,
            chain=None if transitions is None else TagChain(transitions, dataset.item_offsets),
            shift=sum(shifts) if shifts else None,
            has_few_shapes=plan.cuda_graphs,
        )
        if len(plan.valid):
            score = task.validator(plan.valid, reader)
            validate = partial(score, logits_of(task, net, reader, settings))
        must_reach = None
        if plan.must_learn:
            must_reach = loss_of_constant(plan.sampled, criterion, task.head.n_outputs)
        try:
            train(
                net,
                sampler,
                validate=validate,
                patience=settings.patience,
                must_reach=must_reach,
                checkpoint=checkpoint,
                state=state,
            )
        except NotLearningError as caught:
            error = caught
            if plan.is_second:
                error = None
                warnings.warn(
                    f"The second try, with the learning rate {plan.schedule.lr:.2g}, learned "
                    f"nothing either. {caught} Another lr or loss, or more epochs may help.",
                    stacklevel=6,
                )
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
            checkpoint, state = _find_checkpoint(plan, net.device, seed, rng, ranks)
        if state is None and plan.initial is not None:
            plan.initial.apply(module)
    if ranks.count > 1:
        ranks.copy_first(module.state_dict().values())
        own = np.random.SeedSequence([seed, ranks.index]).generate_state(1)
        seed_generators(int(own[0]), net.device)
    return checkpoint, state


def make_net(
    task: Task,
    settings: Settings,
    reader: TextReader,
    *,
    criterion: Any,
    precision: str,
    schedule: Schedule,
    **more: Any,
) -> TextNet:
    """Return a network that is not initialised yet."""
    module: dict[str, Any] = {}
    head = task.head
    if head.compares_texts(reader):
        tokenizer = reader.tokenizer
        frames = Frames(tokenizer.frame, tokenizer.pair_frame, tokenizer.pad_id)
        module["module__frames"] = frames
    if head.match_size is not None:
        module["module__match_size"] = head.match_size
    return TextNet(
        MODULES[head.kind],
        criterion,
        module__model=os.fspath(settings.model),
        module__n_classes=head.n_outputs,
        module__n_frozen_layers=settings.n_frozen_layers,
        module__peft_config=settings.peft_config,
        module__n_token_types=head.n_token_types,
        **module,
        lr=schedule.lr,
        head_lr=schedule.head_lr,
        max_epochs=schedule.max_epochs,
        batch_size=settings.batch_size,
        weight_decay=settings.weight_decay,
        warmup=settings.warmup,
        clip_norm=settings.clip_norm,
        precision=precision,
        predict_precision="fp32" if settings.precision == "auto" else settings.precision,
        device=resolve_device(settings.device),
        **more,
    )


def begin_head(
    task: Classifying, settings: Settings, reader: TextReader, rows: Rows, seed: int
) -> InitialWeights | None:
    """Return where the head on states begins; in all processes of a job, the same."""
    net = make_net(
        task,
        settings,
        reader,
        criterion=CrossEntropyLoss(),
        precision=resolve_precision(settings.precision, resolve_device(settings.device)),
        schedule=Schedule(max_epochs=1, lr=1.0, head_lr=1.0),  # It is not trained.
    )
    with seeded(seed, net.device), denormals_flushed(), quiet_transformers():
        net.initialize()
        batcher = make_batcher(task.windows(rows.X, reader)[0], reader, settings.batch_size, net)
        if not isinstance(task, ClassifyingPairs):
            return regress_texts(net, batcher, task, rows)
        initial = regress_pairs(net, batcher, task, rows)
    if initial is None or initial.similarities is None:
        return None
    first = torch.tensor([initial.similarities.share, initial.best_f1], dtype=torch.float64)
    current_ranks(settings.device).copy_first([first])
    share, best_f1 = first.tolist()
    similarities = initial.similarities._replace(share=share)
    return replace(initial, similarities=similarities, best_f1=best_f1)


def make_batcher(
    dataset: EncodedDataset, reader: TextReader, n_windows: int, net: TextNet | None
) -> Batcher:
    """Return what makes batches of about so many windows, for a network."""
    tokenizer = reader.tokenizer
    # Without the ids of pieces, MPNet counts the padding before a text among its positions.
    pads_left = tokenizer.pads_left and (net is None or net.module_.type_table is None)
    return Batcher(dataset, n_windows, tokenizer.pad_id, pads_left)


def make_sampler(
    sampled: SampledTrainingSet,
    settings: Settings,
    reader: TextReader,
    rng: np.random.Generator,
    net: TextNet | None = None,
    **more: Any,
) -> StepSampler:
    """Return the sampler of the steps of an epoch."""
    training_set, n_windows = sampled.training_set, sampled.training_set.windows_per_text
    return StepSampler(
        make_batcher(training_set.dataset, reader, settings.batch_size * n_windows, net),
        settings.batch_size * settings.accumulate,
        rng,
        current_ranks(settings.device),
        windows_per_text=n_windows,
        draw=sampled.draw,
        weight=sampled.weight,
        **more,
    )


def logits_of(
    task: Task, net: TextNet, reader: TextReader, settings: Settings, runtime: str = "torch"
) -> Logits:
    """Return a network as a task sees it: a function from encoded texts to logits."""

    def logits(dataset: EncodedDataset) -> np.ndarray:
        if not dataset.item_offsets[-1]:
            return np.empty((0, net.module_.n_outputs), dtype=np.float32)
        network, head = None, task.head
        n_windows = settings.batch_size * head.windows_per_text
        batcher = make_batcher(dataset, reader, n_windows, net)
        if runtime != "torch":
            network = onnx_network(
                net.module_, runtime, reader.max_length, verbose=bool(settings.verbose)
            )
            batcher.batch_pieces = BATCH_TOKENS
        with denormals_flushed():
            found = net.predict_logits(batcher, network, verbose=bool(settings.verbose))
        if dataset.offset is not None:
            found += dataset.offset
        if head.transitions is None:
            return found
        return TagChain(head.transitions, dataset.item_offsets).predict(found)

    return logits


def history_of(nets: Sequence[TextNet]) -> pd.DataFrame:
    """Return a row per epoch: loss, validation score, learning rate, texts and seconds.

    They are the means over the members, and the seconds of all.
    """
    rows = [{n: row[n] for n in _HISTORY if n in row} for net in nets for row in net.history]
    if not rows:
        return pd.DataFrame()
    by_epoch = pd.DataFrame(rows).groupby("epoch")
    mean: pd.DataFrame = by_epoch.mean()
    if "dur" in mean:
        mean["dur"] = by_epoch["dur"].sum()
    return mean


def loss_of_constant(sampled: SampledTrainingSet, loss: Any, n_classes: int) -> float:
    """Return the loss of logits that say the shares of the classes, the same for all items.

    Of cross-entropy no logits that are the same for all items have a lower one. It is infinite for
    set losses, whose value is not a mean, and for items with several labels.
    """
    dataset = sampled.training_set.dataset
    target = dataset.target
    if target is None or target.ndim > 1 or not loss.separable:
        return math.inf
    share = np.ones(dataset.n_texts) if sampled.draw is None else sampled.draw.share
    weight = np.repeat(dataset.text_weight * share, np.diff(dataset.item_offsets))
    if sampled.weight is not None:
        weight = weight * sampled.weight
    of_class = np.bincount(target, weight, n_classes)
    weighted = of_class * (1.0 if loss.class_weight is None else loss.class_weight)
    logits = np.log(np.maximum(weighted / weighted.sum(), np.finfo(np.float64).tiny))
    same = torch.from_numpy(logits).expand(n_classes, -1)
    return float(loss(same, torch.arange(n_classes), torch.from_numpy(of_class)))


def _find_checkpoint(
    plan: Plan, device: str, seed: int, rng: np.random.Generator, ranks: Ranks
) -> tuple[DirectoryCheckpoint | None, dict[str, Any] | None]:
    """Return where the state of a fit is kept, and that to go on from, if there is one.

    All that a fit depends on has to be alike in every process.
    """
    settings, training_set = plan.settings, plan.sampled.training_set
    directory = settings.checkpoint_dir
    # Nothing is kept of the fit: the first of several processes may have callbacks of its own.
    parameters = learned_with(settings, ["callbacks"] if directory is None else [])
    if not isinstance(parameters["random_state"], int | np.integer):
        del parameters["random_state"]  # The seed that was drawn from it counts.
    kind = torch.device(device).type
    digests = {
        "parameters": digest([parameters, plan.schedule, plan.precision, kind, seed]),
        "base model": digest(base_model_digest(settings.model)),
        "package versions": digest(installed_versions()),
        "training data": digest([plan.task, training_set.dataset, plan.loss, rng]),
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
    warnings.warn(
        f"model={os.fspath(plan.settings.model)!r} was trained for the classes "
        f"{list_some(trained)}; those of this fit are {list_some(own)}. It starts from {goes_on}.",
        stacklevel=8,
    )
