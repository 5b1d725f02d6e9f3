"""The network of an estimator: made, trained and asked for predictions."""

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from .._digest import digest
from .._inputs import list_some
from .._parameters import check_option
from .._pretrained import quiet_transformers
from ..io import BATCH_TOKENS, DirectoryCheckpoint, OnnxNetwork, onnx_network
from ..losses import Loss
from ..nn import (
    RUNTIMES,
    Batcher,
    FitProgress,
    Ranks,
    StepSampler,
    TagChain,
    TextModule,
    TextNet,
    current_ranks,
    denormals_flushed,
    hidden_size,
    padding_is_masked,
    probe_dataset,
    resolve_device,
    resolve_precision,
    seed_generators,
    seeded,
    train,
)
from ..text import EncodedDataset, Frame, WordTokenizer
from ._lesson import Lesson, Pace, choose_pace, open_epochs
from ._reuse import active_reuse, fit_digests, fit_fingerprint
from ._rows import Rows, Task
from ._saving import SavedEstimator

_INTERRUPTED = (
    "The estimator can be used: it has the weights of the last step or, with patience, of the best "
    "epoch so far; of several members, those that were finished. Its interrupted_ is True."
)
_SAVED_STATE = "saved state (checkpoint_dir must be one directory that all see)"
# Training texts that a fit looks at, at a time, for what it has found.
_CHUNK_TEXTS = 64
_HISTORY = ("epoch", "train_loss", "valid_score", "lr", "n_texts", "dur")


class Member(NamedTuple):
    """A network of a fit; its seed is for torch, its generator for the order of the texts."""

    number: int
    seed: int
    rng: np.random.Generator


def members_of(seed: int, rng: np.random.Generator, n: int) -> list[Member]:
    """Return the members of a fit; the first has this seed and generator, the others their own."""
    others = np.random.SeedSequence(seed).generate_state(n - 1).tolist()
    rngs = [rng, *map(np.random.default_rng, others)]
    return [Member(i, own, own_rng) for i, (own, own_rng) in enumerate(zip([seed, *others], rngs))]


class NetworkEstimator(SavedEstimator):
    """Base of the estimators: a network for encoded rows, whatever these are rows of."""

    _task: Task
    _module_class: type[TextModule]
    _member_name = "member"

    tokenizer_: WordTokenizer
    max_length_: int
    net_: TextNet
    loss_: Loss
    loss_reason_: str | None
    history_: pd.DataFrame
    max_epochs_: int
    lr_: float
    best_epoch_: int
    negative_ratio_: float | None
    interrupted_: bool

    def _criterion(self, loss: Any) -> Any:
        """Return what a step computes, of the loss that was chosen."""
        return loss

    def _n_outputs(self) -> int:
        """Return how many logits an item has."""
        return len(self._class_names())

    def _class_names(self) -> list[Any]:
        """Return the classes, or the types of a query tagger; none of an extractor."""
        names = getattr(self, "classes_", getattr(self, "labels_", []))
        return list(names.tolist() if isinstance(names, np.ndarray) else names)

    def _metric_name(self) -> str:
        """Return what the progress bar calls the validation score."""
        return "F1"

    def _chain(self, dataset: EncodedDataset) -> TagChain | None:
        """Return by what the items of a text depend on one another, if they do."""
        return None

    def _model_config(self) -> dict[str, Any]:
        """Return the entries of ``config.json`` that tell what the outputs mean."""
        return {}

    def _windows_per_text(self) -> int:
        """Return how many windows a text has that is not longer than one."""
        return 1

    def _module_parameters(self) -> dict[str, Any]:
        """Return what the module takes that other estimators do not have."""
        return {}

    def _open_epochs(self, lesson: Lesson) -> int:
        """Return what ``max_epochs="auto"`` is."""
        return open_epochs(self._count_steps(lesson), lesson.n_passes)

    def _begin(self, net: TextNet, dataset: EncodedDataset) -> None:
        """Set the weights that a fit begins with, where they are not drawn."""

    def _validator(self, rows: Rows) -> Callable[[], float]:
        """Return what scores rows with the network as it is then."""
        raise NotImplementedError

    def _predicted(self, logits: np.ndarray, dataset: EncodedDataset) -> np.ndarray:
        """Return what is predicted of some texts, as bools: here, which classes."""
        return np.bincount(logits.argmax(1), minlength=logits.shape[1]) > 0

    def _missed(self, predicted: np.ndarray, target: np.ndarray) -> str | None:
        """Say what is never predicted (by :meth:`_predicted`), or what alone is."""
        raise NotImplementedError

    def _fit_network(
        self, lesson: Lesson, seed: int, rng: np.random.Generator, valid: Rows
    ) -> None:
        """Set ``net_``, all members in it; seed and generator are those of the first one."""
        members = members_of(seed, rng, self.n_members)
        shared = (lesson, valid, resolve_precision(self.precision, resolve_device(self.device)))
        # Processes that train together have to do the same things in the same order.
        # Threads would share this estimator, which validates the network that it has.
        has_threads = getattr(get_active_backend()[0], "supports_sharedmem", False)
        in_processes = effective_n_jobs(None) > 1 and not has_threads
        nets: list[TextNet] = []
        try:
            if self._ranks().count == 1 and in_processes and len(members) > 1:
                fit = delayed(self._fit_member)
                nets = Parallel()(fit(member, *shared) for member in members)
            else:
                for member in members:
                    nets.append(self._fit_member(member, *shared))
        finally:
            # The members that were finished are better than one that was interrupted.
            if nets:
                self._keep(nets)

    def _keep(self, nets: Sequence[TextNet]) -> None:
        """Set ``net_`` to what several fits have trained."""
        self.net_ = nets[0]
        # What a process of its own has set is not set here.
        self.max_epochs_, self.lr_ = self.net_.max_epochs, self.net_.lr
        self.net_.module_.members.extend([net.module_ for net in nets[1:]])
        self.history_ = mean_history([history_of(net) for net in nets])
        self.best_epoch_ = max(net.progress_.best_epoch for net in nets)

    def _fit_member(self, member: Member, lesson: Lesson, valid: Rows, precision: str) -> TextNet:
        """Train one network; ``fit`` of an estimator that is interrupted leaves it behind."""
        ranks, model = self._ranks(), os.fspath(self.model)
        pace = choose_pace(self, self._open_epochs(lesson), hidden_size(model))
        self.max_epochs_, self.lr_ = pace.max_epochs, pace.lr
        is_shown = bool(self.verbose and ranks.is_first)
        callbacks = list(self.callbacks or [])
        if is_shown:
            progress = FitProgress(self._description(member, pace, lesson), self._metric_name())
            callbacks.append(("progress", progress))
        net = self._make_net(
            self._criterion(self.loss_),
            model,
            self._n_outputs(),
            precision,
            pace,
            callbacks=callbacks,
            verbose=is_shown,  # Whether callbacks of skorch print.
        )
        with seeded(member.seed, net.device), denormals_flushed():
            with quiet_transformers():
                net.initialize()
                self._warn_of_other_classes(net.module_.trained_labels)
                # The files of the base model are on this machine from here on.
                checkpoint, state = self._find_checkpoint(net, lesson.dataset, member, valid, ranks)
                net.pads = self._finds_padding_masked(net)
                if state is None:
                    self._begin(net, lesson.dataset)
            if ranks.count > 1:
                ranks.copy_first(net.module_.state_dict().values())
                seed_generators(ranks.seed(member.seed), net.device)
            self.net_ = net
            try:
                train(
                    net,
                    self._sampler(lesson, member.rng, ranks, net.pads),
                    validate=self._validator(valid) if len(valid) else None,
                    patience=self.patience,
                    chain=self._chain(lesson.dataset),
                    shift=lesson.shift,
                    checkpoint=checkpoint,
                    state=state,
                )
            except KeyboardInterrupt as error:
                error.add_note(_INTERRUPTED)
                raise
            finally:
                self.history_, self.best_epoch_ = history_of(net), net.progress_.best_epoch
        return net

    def _missed_by_predict(self, lesson: Lesson) -> str | None:
        """Say what the fitted network misses in all training texts, in the words of ``_missed``."""
        dataset, missed = lesson.dataset, None
        assert dataset.target is not None
        found = np.zeros(1, dtype=bool)
        order = lesson.in_turn
        for start in range(0, len(order), _CHUNK_TEXTS):
            part = dataset.take(order[start : start + _CHUNK_TEXTS])
            found = found | self._predicted(self._predict_logits(part), part)
            missed = self._missed(found, dataset.target)
            if missed is None:
                break
        return missed

    def _description(self, member: Member, pace: Pace, lesson: Lesson) -> str:
        """Return what the progress bar calls a fit."""
        name = type(self.loss_).__name__
        if isinstance(self.loss, str):
            name = self.loss_reason_ or self.loss
        if lesson.draw is not None:
            name = f"{name}, {int(lesson.draw.n_drawn.sum())} of {len(lesson.draw.group)} texts"
        if self.n_members > 1:
            name = f"{name}, {self._member_name} {member.number + 1} of {self.n_members}"
        return f"{name}, lr {pace.lr:g}" if self.lr == "auto" else name

    def _find_checkpoint(
        self, net: TextNet, dataset: EncodedDataset, member: Member, valid: Rows, ranks: Ranks
    ) -> tuple[DirectoryCheckpoint | None, dict[str, Any] | None]:
        """Return where the state of a fit is kept, and that to go on from, if there is one."""
        if self.checkpoint_dir is None and ranks.count == 1:
            return None, None
        digests = fit_digests(
            self,
            settings=(net.precision, torch.device(net.device).type, member.seed),
            training_data=(dataset.fingerprint, self._class_names(), net.loss, member.rng),
            held_out_data=(valid.X, valid.y),
        )
        checkpoint = state = None
        if self.checkpoint_dir is not None:
            fingerprint = fit_fingerprint(digests, ranks.count)
            checkpoint = DirectoryCheckpoint(self.checkpoint_dir, fingerprint)
            state = checkpoint.load()
        history = None if state is None else state.get("history")
        ranks.compare({**digests, _SAVED_STATE: digest(history)})
        return checkpoint, state

    def _finds_padding_masked(self, net: TextNet) -> bool:
        """Whether texts of several lengths may share a batch; a warning says if they may not."""
        is_masked = padding_is_masked(net.module_, self._probe(), net.device)
        if not is_masked:
            warnings.warn(
                f"{type(net.module_.transformer).__name__} scores a text differently if it is "
                f"padded, so batches have texts of the same length only. That takes longer; the "
                f"scores are those of each text by itself.",
                stacklevel=5,
            )
        return is_masked

    def _warn_of_other_classes(self, trained: list[str] | None) -> None:
        """Warn if the base model has a head of this task, for other classes."""
        own = list(self._model_config().get("id2label", {}).values())
        if trained is None or not own or own == trained:
            return
        goes_on = "a new head" if len(own) != len(trained) else "that head, class by class"
        warnings.warn(
            f"model={os.fspath(self.model)!r} was trained for the classes {list_some(trained)}; "
            f"those of this fit are {list_some(own)}. It starts from {goes_on}.",
            stacklevel=5,
        )

    def _make_net(
        self,
        criterion: Any,
        model: str,
        n_outputs: int,
        precision: str,
        pace: Pace,
        **more: Any,
    ) -> TextNet:
        """Return a network that is not initialised yet."""
        return TextNet(
            self._module_class,
            criterion,
            module__model=model,
            module__n_classes=n_outputs,
            module__n_frozen_layers=self.n_frozen_layers,
            module__peft_config=self.peft_config,
            module__config=None,
            **{f"module__{name}": value for name, value in self._module_parameters().items()},
            lr=pace.lr,
            head_lr=pace.head_lr,
            max_epochs=pace.max_epochs,
            batch_size=self.batch_size,
            weight_decay=self.weight_decay,
            warmup=self.warmup,
            clip_norm=self.clip_norm,
            precision=precision,
            predict_precision="fp32" if self.precision == "auto" else self.precision,
            device=resolve_device(self.device),
            **more,
        )

    def _ranks(self) -> Ranks:
        """Return the processes that train together."""
        return current_ranks(resolve_device(self.device))

    def _frame(self) -> Frame:
        """Return the special tokens around the texts of a row."""
        tokenizer = self.tokenizer_
        return tokenizer.pair_frame if self._task.reads_two_texts else tokenizer.frame

    def _batcher(
        self, dataset: EncodedDataset, pads: bool = True, windows_per_text: int | None = None
    ) -> Batcher:
        return Batcher(
            dataset,
            self.batch_size * (windows_per_text or self._windows_per_text()),
            self.tokenizer_.pad_id,
            self.tokenizer_.pads_left,
            pads=pads,
        )

    def _sampler(
        self, lesson: Lesson, rng: np.random.Generator, ranks: Ranks, pads: bool = True
    ) -> StepSampler:
        return StepSampler(
            self._batcher(lesson.dataset, pads, lesson.windows_per_text),
            self.batch_size * self.accumulate,
            rng,
            ranks,
            windows_per_text=lesson.windows_per_text,
            draw=lesson.draw,
        )

    def _count_steps(self, lesson: Lesson) -> int:
        """Return the optimiser steps of an epoch."""
        return len(self._sampler(lesson, np.random.default_rng(), self._ranks()))

    def _probe(self) -> Batcher:
        """Return a few tiny windows, to try out what the model does."""
        pieces = self.tokenizer_.encode(list("abcdefgh")).values
        return self._batcher(probe_dataset(pieces, self._frame(), self.max_length_))

    def _encode_once(self, content: Any, encode: Callable[[], Any]) -> Any:
        """Return what ``encode`` gives, which depends on the content and the tokenizer alone."""
        reuse = active_reuse()
        if reuse is None:
            return encode()
        fingerprint = self.tokenizer_.fingerprint
        return reuse.encoded((type(self), fingerprint, self.max_length_, content), encode)

    def _predict_logits(self, dataset: EncodedDataset) -> np.ndarray:
        """Return logits of shape (n_items, n_outputs)."""
        if dataset.n_items == 0:
            return np.empty((0, self.net_.module_.n_outputs), dtype=np.float32)
        network = self._onnx_network()
        batcher = self._batcher(dataset, self.net_.pads)
        if network is not None:
            batcher.batch_pieces = BATCH_TOKENS
        with denormals_flushed():
            return self.net_.predict_logits(batcher, network, verbose=bool(self.verbose))

    def _onnx_network(self) -> OnnxNetwork | None:
        """Return what predicts in place of torch, which computes all of a fit."""
        check_option(type(self).__name__, "runtime", self.runtime, RUNTIMES)
        if self.runtime == "torch" or self.interrupted_:
            return None
        return onnx_network(self.net_.module_, self.runtime, self.max_length_)

    def _network_bytes(self) -> int:
        network = self._onnx_network()
        if network is not None:
            return network.n_bytes
        return sum(weight.nbytes for weight in self.net_.module_.parameters())


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
