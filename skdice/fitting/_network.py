"""Networks of a fit: made, trained, and asked for predictions."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

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
    FitProgress,
    Frames,
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
from ..tasks import ClassifyingPairs, Logits, Rows, Task
from ..text import EncodedDataset, TextReader
from ._draw import SampledTrainingSet
from ._initial_weights import InitialWeights, regress_pairs
from ._settings import Settings, learned_with
from .auto import Choice

_SAVED_STATE = "saved state (checkpoint_dir must be one directory that all see)"
_HISTORY = ("epoch", "train_loss", "valid_score", "lr", "n_texts", "dur")
MODULES: dict[str, type[TextModule]] = {
    "tokens": TokenModule,
    "sequence": SequenceModule,
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


class Member(NamedTuple):
    """A network of an ensemble: its seed is torch's, its generator draws the order of the texts."""

    number: int
    seed: int
    rng: np.random.Generator


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
    must_learn: bool  # whether a training loss that has not fallen at the end is an error
    description: str  # what the progress bar calls the fit
    kind: str  # what it calls one of several networks
    initial: InitialWeights | None  # where the comparison of two texts begins
    choices: Mapping[str, Choice]  # what was taken for each parameter that was left open
    cuda_graphs: bool  # whether steps are CUDA graphs, where the network masks padding


def members_of(seed: int, rng: np.random.Generator, n: int) -> list[Member]:
    """Return the members of a fit; the first has this seed and generator, the others their own."""
    others = np.random.SeedSequence(seed).generate_state(n - 1).tolist()
    rngs = [rng, *map(np.random.default_rng, others)]
    return [Member(i, own, own_rng) for i, (own, own_rng) in enumerate(zip([seed, *others], rngs))]


def train_members(
    plan: Plan, members: Sequence[Member]
) -> tuple[list[TextNet], BaseException | None]:
    """Train the networks of an ensemble, in processes if joblib was told to.

    If an error ends one, it is returned with the members that were finished; or with the one that
    was interrupted, if it was the first. An error in another process is raised.
    """
    # Processes that train together have to do the same things in the same order.
    has_threads = getattr(get_active_backend()[0], "supports_sharedmem", False)
    in_processes = effective_n_jobs(None) > 1 and not has_threads
    if ranks_of(plan.settings).count == 1 and in_processes and len(members) > 1:
        fit = delayed(_train_elsewhere)
        return list(Parallel()(fit(plan, member) for member in members)), None
    nets: list[TextNet] = []
    for member in members:
        net, error = train_member(plan, member)
        if error is not None:
            return nets or [net], error
        nets.append(net)
    return nets, None


def _train_elsewhere(plan: Plan, member: Member) -> TextNet:
    """Train one network in another process, of which nothing is left if it is interrupted."""
    net, error = train_member(plan, member)
    if error is not None:
        raise error
    return net


def join_members(nets: Sequence[TextNet]) -> TextNet:
    """Return the first of several nets, with the modules of the others as its members."""
    nets[0].module_.members.extend([net.module_ for net in nets[1:]])
    return nets[0]


def train_member(plan: Plan, member: Member) -> tuple[TextNet, BaseException | None]:
    """Train one network; return it as it came to be, and the error that ended its training."""
    task, settings, error = plan.task, plan.settings, None
    ranks = ranks_of(settings)
    is_shown = bool(settings.verbose and ranks.is_first)
    callbacks = list(settings.callbacks or [])
    if is_shown:
        text = plan.description
        if settings.n_members > 1:
            text = f"{text}, {plan.kind} {member.number + 1} of {settings.n_members}"
        callbacks.append(("progress", FitProgress(text, task.metric_name)))
    net = make_net(
        task,
        settings,
        plan.reader,
        criterion=task.criterion(plan.loss),
        precision=plan.precision,
        schedule=plan.schedule,
        callbacks=callbacks,
        verbose=is_shown,  # Whether callbacks of skorch print.
    )
    with seeded(member.seed, net.device), denormals_flushed():
        with quiet_transformers():
            net.initialize()
            _warn_of_other_classes(plan, net.module_.trained_labels)
            # The files of the base model are on this machine from here on.
            checkpoint, state = _find_checkpoint(plan, net, member, ranks)
            net.pads = net.module_.masks_padding
            if not net.pads:
                warnings.warn(
                    f"{type(net.module_.transformer).__name__} scores a text differently if it is "
                    f"padded, so batches have texts of the same length only. That takes longer; "
                    f"the scores are those of each text by itself.",
                    stacklevel=5,
                )
            if state is None and plan.initial is not None:
                plan.initial.apply(net.module_)
        if ranks.count > 1:
            ranks.copy_first(net.module_.state_dict().values())
            seed_generators(ranks.seed(member.seed), net.device)
        try:
            train(
                net,
                make_sampler(plan, member.rng, ranks, net),
                validate=_validator(plan, net),
                patience=settings.patience,
                must_learn=plan.must_learn,
                loss_of_constant=loss_of_constant(plan) if plan.must_learn else None,
                checkpoint=checkpoint,
                state=state,
            )
        except BaseException as caught:
            error = caught
        finally:
            net.module_.merge_adapters()
    return net, error


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
    if head.n_token_types is not None:
        module["module__n_token_types"] = head.n_token_types
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


def begin_pairs(
    task: ClassifyingPairs, settings: Settings, reader: TextReader, rows: Rows, seed: int
) -> InitialWeights | None:
    """Return where the comparison of two texts begins; in all processes of a job, the same."""
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
        net.pads = net.module_.masks_padding
        batcher = make_batcher(task.windows(rows.X, reader)[0], reader, settings.batch_size, net)
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight.astype(np.float64)
        initial = regress_pairs(
            net,
            batcher,
            list(rows.X),
            task.targets(rows),
            weight,
            rows.group_numbers,
            len(task.class_names),
            task.positive if task.is_binary else 0,
        )
    if initial is None:
        return None
    first = torch.tensor([initial.similarities.share, initial.best_f1], dtype=torch.float64)
    ranks_of(settings).copy_first([first])
    share, best_f1 = first.tolist()
    similarities = initial.similarities._replace(share=share)
    return replace(initial, similarities=similarities, best_f1=best_f1)


def ranks_of(settings: Settings) -> Ranks:
    """Return the processes that train together."""
    return current_ranks(resolve_device(settings.device))


def make_batcher(
    dataset: EncodedDataset,
    reader: TextReader,
    batch_size: int,
    net: TextNet | None = None,
    windows_per_text: int = 1,
) -> Batcher:
    """Return the batcher of a network, or of one that masks padding."""
    pads = net is None or net.pads
    tokenizer, n_windows = reader.tokenizer, batch_size * windows_per_text
    if net is not None and not pads and net.module is PairModule:
        n_windows = 1  # Pairs of one length may have texts of several.
    return Batcher(dataset, n_windows, tokenizer.pad_id, tokenizer.pads_left, pads=pads)


def make_sampler(
    plan: Plan, rng: np.random.Generator, ranks: Ranks, net: TextNet | None = None
) -> StepSampler:
    """Return the sampler of the steps of an epoch."""
    more: dict[str, Any] = {
        "chain": _chain(plan.task, plan.sampled.training_set.dataset),
        "shift": _shift(plan),
    }
    more["has_few_shapes"] = plan.cuda_graphs and net is not None and net.pads
    return sampler_of(plan.sampled, plan.settings, plan.reader, rng, ranks, net, **more)


def sampler_of(
    sampled: SampledTrainingSet,
    settings: Settings,
    reader: TextReader,
    rng: np.random.Generator,
    ranks: Ranks,
    net: TextNet | None = None,
    **more: Any,
) -> StepSampler:
    """Return the sampler of the steps of an epoch."""
    training_set, n_windows = sampled.training_set, sampled.training_set.windows_per_text
    return StepSampler(
        make_batcher(training_set.dataset, reader, settings.batch_size, net, n_windows),
        settings.batch_size * settings.accumulate,
        rng,
        ranks,
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
        if dataset.n_items == 0:
            return np.empty((0, net.module_.n_outputs), dtype=np.float32)
        network = None
        n_windows = task.head.windows_per_text
        batcher = make_batcher(dataset, reader, settings.batch_size, net, n_windows)
        if runtime != "torch":
            network = onnx_network(
                net.module_, runtime, reader.max_length, verbose=bool(settings.verbose)
            )
            batcher.batch_pieces = BATCH_TOKENS
        with denormals_flushed():
            found = net.predict_logits(batcher, network, verbose=bool(settings.verbose))
        if dataset.offset is not None:
            found += dataset.offset
        chain = _chain(task, dataset)
        return found if chain is None else chain.predict(found)

    return logits


def history_of(net: Any) -> pd.DataFrame:
    """Return a row per epoch of a trained net: loss, validation score, learning rate, seconds."""
    rows = [{name: row[name] for name in _HISTORY if name in row} for row in net.history]
    return pd.DataFrame(rows).set_index("epoch") if rows else pd.DataFrame()


def mean_history(histories: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the means over members, epoch by epoch, and the seconds of all."""
    by_epoch = pd.concat(histories).groupby(level=0)
    mean: pd.DataFrame = by_epoch.mean()
    if "dur" in mean:
        mean["dur"] = by_epoch["dur"].sum()
    return mean


def _shift(plan: Plan) -> np.ndarray | None:
    """Return the shift of the logits in training."""
    shift, offset = plan.sampled.shift, plan.sampled.training_set.dataset.offset
    if offset is None:
        return shift
    return offset if shift is None else offset + shift


def loss_of_constant(plan: Plan) -> float | None:
    """Return the cross-entropy of the same probabilities for all items, the shares of the labels.

    It is None for other losses, and for items with several labels.
    """
    sampled, loss = plan.sampled, plan.task.criterion(plan.loss)
    dataset = sampled.training_set.dataset
    target = dataset.target
    if target is None or target.ndim > 1 or type(loss) is not CrossEntropyLoss:
        return None
    share = np.ones(dataset.n_texts) if sampled.draw is None else sampled.draw.share
    weight = np.repeat(dataset.text_weight * share, np.diff(dataset.item_offsets))
    if sampled.weight is not None:
        weight = weight * sampled.weight
    total: np.ndarray = np.bincount(target, weight, plan.task.head.n_outputs)
    if loss.class_weight is not None:
        total = total * np.asarray(loss.class_weight)
    of_class = total[total > 0] / total.sum()
    return float(-(of_class @ np.log(of_class)) * total.sum() / weight.sum())


def _chain(task: Task, dataset: EncodedDataset) -> TagChain | None:
    transitions = task.head.transitions
    return None if transitions is None else TagChain(transitions, dataset.item_offsets)


def _validator(plan: Plan, net: TextNet) -> Callable[[], float] | None:
    if not len(plan.valid):
        return None
    validate = plan.task.validator(plan.valid, plan.reader)
    logits = logits_of(plan.task, net, plan.reader, plan.settings)
    return lambda: validate(logits)


def _find_checkpoint(
    plan: Plan, net: TextNet, member: Member, ranks: Ranks
) -> tuple[DirectoryCheckpoint | None, dict[str, Any] | None]:
    """Return where the state of a fit is kept, and that to go on from, if there is one."""
    directory = plan.settings.checkpoint_dir
    if directory is None and ranks.count == 1:
        return None, None
    digests = _digests(plan, member, torch.device(net.device).type)
    checkpoint = state = None
    if directory is not None:
        checkpoint = DirectoryCheckpoint(directory, digest([digests, ranks.count]))
        state = checkpoint.load()
    history = None if state is None else state.get("history")
    ranks.compare({**digests, _SAVED_STATE: digest(history)})
    return checkpoint, state


def _digests(plan: Plan, member: Member, device: str) -> dict[str, str]:
    """Return digests of all that a fit depends on, alike in every process, by what they are of."""
    settings = plan.settings
    # Nothing is kept of the fit: the first of several processes may have callbacks of its own.
    without = ["callbacks"] if settings.checkpoint_dir is None else []
    parameters = learned_with(settings, without)
    if not isinstance(parameters["random_state"], int | np.integer):
        del parameters["random_state"]  # The seed that was drawn from it counts.
    training_set = plan.sampled.training_set
    return {
        "parameters": digest([parameters, plan.schedule, plan.precision, device, member.seed]),
        "base model": digest(base_model_digest(settings.model)),
        "package versions": digest(installed_versions()),
        "training data": digest(
            [plan.task, training_set.dataset.fingerprint, plan.loss, member.rng]
        ),
        "held-out data": digest(plan.valid),
    }


def _warn_of_other_classes(plan: Plan, trained: list[str] | None) -> None:
    """Warn if the base model has a head of this task, for other classes."""
    own = list(plan.task.head.model_config.get("id2label", {}).values())
    if trained is None or not own or own == trained:
        return
    goes_on = "a new head" if len(own) != len(trained) else "that head, class by class"
    warnings.warn(
        f"model={os.fspath(plan.settings.model)!r} was trained for the classes "
        f"{list_some(trained)}; those of this fit are {list_some(own)}. It starts from {goes_on}.",
        stacklevel=6,
    )
