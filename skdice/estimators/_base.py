"""What all estimators share: checks of parameters, a network, fits and predictions."""

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .._inputs import list_some
from .._parameters import check_option
from .._pretrained import quiet_transformers
from ..io._checkpoint import DirectoryCheckpoint
from ..io._onnx_network import BATCH_TOKENS, OnnxNetwork, onnx_network
from ..nn._adapters import changed, fields_of
from ..nn._batching import Batcher, StepSampler
from ..nn._callbacks import check_callbacks, named_callbacks
from ..nn._chain import TagChain
from ..nn._loading import hidden_size
from ..nn._modules import TextModule
from ..nn._net import TextNet
from ..nn._predicted import predicted_classes
from ..nn._probe import padding_is_masked, probe_dataset
from ..nn._progress import FitProgress
from ..nn._ranks import Ranks, current_ranks
from ..nn._runtime import PRECISIONS, RUNTIMES, denormals_flushed, resolve_device, resolve_precision
from ..nn._train import Start, Training, initialized, start, train
from ..text._encoding import EncodedDataset
from ..text._tokenizer import Frame, WordTokenizer
from ._collapse import warn_of_collapse
from ._fit_fingerprint import fit_digests, fit_fingerprint
from ._loss import check_loss
from ._members import Lesson, Member, members_of
from ._pace import Pace, choose_pace
from ._parameter import check_parameters
from ._reuse import active_reuse
from ._saving import SavedEstimator
from ._shared_parameters import FITTED_ATTRIBUTES
from ._split import FitRows, read_fit_rows
from ._task import Task, frame_of

_INTERRUPTED = (
    "The estimator can be used: it has the weights of the last step or, with patience, of the best "
    "epoch so far; of several members, those that were finished. Its interrupted_ is True "
    "until it is fitted again."
)
_ADAPTERS = "peft_config__"


class TextEstimator(SavedEstimator):
    """Base of the estimators; a subclass brings its parameters, ``fit``, encoding and decoding."""

    _task: Task
    _module_class: type[TextModule]
    _attributes = FITTED_ATTRIBUTES

    tokenizer_: WordTokenizer
    max_length_: int
    net_: TextNet
    loss_: Any
    history_: pd.DataFrame
    max_epochs_: int
    lr_: float
    best_epoch_: int
    interrupted_: bool

    # -- what a subclass may bring -----------------------------------------------------------------

    def _check_together(self) -> None:
        """Check parameters that depend on each other."""

    def _tunes_on_validation(self) -> str | None:
        """Return the parameter that needs rows to validate on, as it is set."""
        return None if self.patience is None else f"patience={self.patience!r}"

    def _check_validation(self, validation: Any) -> None:
        """Raise a ValueError if rows to validate on are missing, or are named twice."""
        if validation is not None and self.validation_fraction is not None:
            raise ValueError(
                f"validation takes the place of validation_fraction, which must be None with it. "
                f"Got validation_fraction={self.validation_fraction!r}."
            )
        needs = self._tunes_on_validation()
        if needs and validation is None and self.validation_fraction is None:
            raise ValueError(
                f"{needs} needs rows to validate on: validation_fraction (a float in (0, 1)), or "
                f"validation=(X, y) in fit. Got validation_fraction=None."
            )

    def _metric_name(self) -> str:
        """Return what the progress bar calls the validation score."""
        return "F1"

    def _predicted(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return what is predicted of a batch, for :meth:`_missed`."""
        return predicted_classes(logits, target)

    def _chain(self, dataset: EncodedDataset) -> TagChain | None:
        """Return by what the items of a text depend on one another, if they do."""
        return None

    def _missed(self, predicted: np.ndarray, target: np.ndarray) -> str | None:
        """Say what a fit never predicted in an epoch, or predicted alone.

        Parameters
        ----------
        predicted : ndarray, bool
            What :meth:`_predicted` had for a batch of the epoch.
        target : ndarray
            Of the training data.
        """
        raise NotImplementedError

    def _model_config(self) -> dict[str, Any]:
        """Return the entries of ``config.json`` that tell what the outputs mean."""
        return {}

    def _windows_per_text(self) -> int:
        """Return how many windows a text has that is not longer than one."""
        return 1

    # -- parameters --------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; if deep, also those of loss, adapters and callbacks."""
        params: dict[str, Any] = super().get_params(deep)
        for name, value in fields_of(self.peft_config).items() if deep else ():
            params[f"{_ADAPTERS}{name}"] = value
        for name, callback in self._named_callbacks().items() if deep else ():
            for key, value in callback.get_params().items():
                params[f"callbacks__{name}__{key}"] = value
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also of a loss object (``loss__gamma``), adapters or a callback.

        Those of adapters are ``peft_config__<field>``. Those of a callback are
        ``callbacks__<name>__<parameter>``; its name is the one given with it, or that of its class.

        Raises
        ------
        ValueError
            If a parameter is unknown, or ``loss__...`` is set while ``loss`` is a name, or
            ``peft_config__...`` while ``peft_config`` is None.
        """
        of_callbacks = {
            name: params.pop(name) for name in list(params) if name.startswith("callbacks__")
        }
        of_adapters = {
            name.removeprefix(_ADAPTERS): params.pop(name)
            for name in list(params)
            if name.startswith(_ADAPTERS)
        }
        loss = params.get("loss", self.loss)
        nested = [name for name in params if name.startswith("loss__")]
        if nested and isinstance(loss, str):
            parameter = nested[0].removeprefix("loss__")
            raise ValueError(
                f"{nested[0]!r} needs a loss object, but loss={loss!r} is a name. Pass an object, "
                f"for instance loss=DiceLoss() of skdice.losses, or set {parameter!r} on the "
                f"estimator."
            )
        super().set_params(**params)
        if of_adapters:
            self.peft_config = changed(self.peft_config, **of_adapters)
        callbacks = self._named_callbacks()
        for key, value in of_callbacks.items():
            name, _, parameter = key.removeprefix("callbacks__").partition("__")
            if name not in callbacks or not parameter:
                raise ValueError(
                    f"{key!r} is no parameter of a callback: they are named "
                    f"callbacks__<name>__<parameter>, and the callbacks here {list(callbacks)}."
                )
            callbacks[name].set_params(**{parameter: value})
        return self

    def _named_callbacks(self) -> dict[str, Any]:
        """Return the callbacks that have parameters."""
        named = named_callbacks(self.callbacks)
        return {name: callback for name, callback in named if hasattr(callback, "get_params")}

    def _read_fit(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, validation: Any
    ) -> FitRows:
        """Return what ``fit`` was given, after all checks of parameters."""
        self._check_parameters()
        self._check_validation(validation)
        validates = validation is not None or self.validation_fraction is not None
        check_callbacks(self.callbacks, validates)
        return read_fit_rows(X, y, sample_weight, groups, validation)

    def _check_parameters(self) -> None:
        """Raise a ValueError unless all parameters are allowed, also together."""
        check_parameters(self)
        if self.checkpoint_dir is not None and self.random_state is None:
            raise ValueError(
                f"checkpoint_dir={os.fspath(self.checkpoint_dir)!r} needs a random_state, best an "
                f"int: with None every fit is another one, and none could go on from a checkpoint."
            )
        if self.peft_config is not None and self.n_frozen_layers is not None:
            raise ValueError(
                f"n_frozen_layers must be None with peft_config, which freezes the whole encoder. "
                f"Got {self.n_frozen_layers!r}."
            )
        check_loss(self)
        self._check_together()

    def _draw_seed(self) -> int:
        """Return the seed of a fit: in all processes of a job, that of the first."""
        state = self.random_state
        if isinstance(state, np.random.RandomState):
            drawn = int(state.randint(2**31 - 1))
        elif state is None or isinstance(state, np.random.Generator):
            drawn = int(np.random.default_rng(state).integers(2**31))
        else:
            drawn = int(state)
        seed = torch.tensor(drawn)
        current_ranks(resolve_device(self.device)).copy_first([seed])
        return int(seed)

    # -- fitting -----------------------------------------------------------------------------------

    def _load_tokenizer(self) -> WordTokenizer:
        """Return the tokenizer of the base model.

        What was fitted before is given up: a fit that fails from here on must not leave new classes
        on the old network.
        """
        self.__dict__.pop("net_", None)
        reuse, model = active_reuse(), os.fspath(self.model)
        return WordTokenizer(model) if reuse is None else reuse.tokenizer(model)

    def _fit_network(
        self,
        dataset: EncodedDataset,
        loss: Any,
        n_outputs: int,
        seed: int,
        rng: np.random.Generator,
        held_out: Any,
        validate: Callable[[], float] | None,
    ) -> None:
        """Set ``net_``, all members in it, and what is known of its training.

        ``seed`` and ``rng`` are those of the first member; for the rest see :class:`Lesson`.
        """
        ranks = current_ranks(resolve_device(self.device))
        precision = self._common_precision(ranks)
        lesson = Lesson(dataset, loss, n_outputs, precision, held_out, validate)
        members = members_of(seed, rng, self.n_members, begin_alike=self.merge_members)
        self.loss_, self.interrupted_ = getattr(loss, "loss", loss), True
        # Processes that train together have to do the same things in the same order.
        # Threads would share this estimator, which validates the network that it has.
        has_threads = getattr(get_active_backend()[0], "supports_sharedmem", False)
        in_processes = effective_n_jobs(None) > 1 and not has_threads
        if ranks.count == 1 and in_processes and len(members) > 1:
            self._keep(Parallel()(delayed(self._fit_member)(lesson, member) for member in members))
            return
        fits: list[tuple[TextNet, pd.DataFrame, int]] = []
        try:
            for member in members:
                fits.append(self._fit_member(lesson, member))
        finally:
            # The members that were finished are better than one that was interrupted.
            if fits:
                self._keep(fits)

    def _keep(self, fits: Sequence[tuple[TextNet, pd.DataFrame, int]]) -> None:
        """Set ``net_`` to what several fits have trained."""
        nets, histories, best_epochs = zip(*fits)
        self.net_ = nets[0]
        # What a process of its own has set is not set here.
        self.max_epochs_, self.lr_ = self.net_.max_epochs, self.net_.lr
        module, others = self.net_.module_, [net.module_ for net in nets[1:]]
        module.merge(others) if self.merge_members else module.join(others)
        self.history_, self.best_epoch_ = _mean_history(histories), max(best_epochs)

    def _fit_member(self, lesson: Lesson, member: Member) -> tuple[TextNet, pd.DataFrame, int]:
        """Train one network; ``fit`` of an estimator that is interrupted leaves it behind."""
        with quiet_transformers():
            begun = self._start(lesson, member)
        self.net_ = begun.net
        training = self._train(begun, lesson, member.rng)
        self.history_, self.best_epoch_ = training.history, training.best_epoch
        training.check()
        return begun.net, training.history, training.best_epoch

    def _start(self, lesson: Lesson, member: Member) -> Start:
        """Return a network with new weights or, after a crash, where its fit goes on."""
        dataset, loss, seed = lesson.dataset, lesson.loss, member.seed
        ranks = current_ranks(resolve_device(self.device))
        model = os.fspath(self.model)
        pace = choose_pace(self, self._count_steps(dataset), hidden_size(model))
        self.max_epochs_, self.lr_ = pace.max_epochs, pace.lr
        callbacks = list(self.callbacks or [])
        is_shown = bool(self.verbose and ranks.is_first)
        if is_shown:
            name = type(getattr(loss, "loss", loss)).__name__
            if isinstance(self.loss, str):
                name = f"recommended, {name}" if self.loss == "recommended" else self.loss
            if self.n_members > 1:
                name = f"{name}, member {member.number + 1} of {self.n_members}"
            if self.lr == "auto":
                name = f"{name}, lr {pace.lr:g}"
            callbacks.append(("progress", FitProgress(name, self._metric_name())))
        net = self._make_net(
            loss, model, lesson.n_outputs, lesson.precision, pace, callbacks, is_shown
        )
        generators = initialized(
            net, member.first_seed, None if seed == member.first_seed else seed
        )
        self._warn_of_other_classes(net.module_.trained_labels)
        checkpoint, digests = None, {}
        # The files of the base model are on this machine from here on.
        if self.checkpoint_dir is not None or ranks.count > 1:
            digests = fit_digests(
                self,
                settings=(net.precision, torch.device(net.device).type, seed),
                training_data=(dataset.fingerprint, self._class_names(), loss, member.rng),
                held_out_data=lesson.held_out,
            )
        if self.checkpoint_dir is not None:
            fingerprint = fit_fingerprint(digests, ranks.count)
            checkpoint = DirectoryCheckpoint(self.checkpoint_dir, fingerprint)
        begun = start(net, ranks, seed, generators, checkpoint, digests)
        net.pads = padding_is_masked(net.module_, self._probe(), net.device)
        if not net.pads:
            warnings.warn(
                f"{type(net.module_.transformer).__name__} scores a text differently if it is "
                f"padded, so batches have texts of the same length only. That takes longer; the "
                f"scores are those of each text by itself.",
                UserWarning,
                stacklevel=5,
            )
        return begun

    def _train(self, begun: Start, lesson: Lesson, rng: np.random.Generator) -> Training:
        """Train ``net_``; it sets nothing else."""
        dataset = lesson.dataset
        sampler = self._sampler(self._batcher(dataset, begun.net.precision), rng, begun.ranks)
        training = train(
            begun,
            sampler,
            validate=lesson.validate,
            patience=self.patience,
            predicted=self._predicted,
            chain=self._chain(dataset),
        )
        if isinstance(training.error, KeyboardInterrupt):
            training.error.add_note(_INTERRUPTED)
        if training.error is None and dataset.target is not None:
            missed = self._missed(training.predicted, dataset.target)
            if missed is not None:
                warn_of_collapse(missed, self.loss_)
        return training

    def _warn_of_other_classes(self, trained: list[str] | None) -> None:
        """Warn if the base model has a head of this task, for other classes."""
        own = list(self._model_config().get("id2label", {}).values())
        if trained is None or not own or own == trained:
            return
        goes_on = "a new head" if len(own) != len(trained) else "that head, class by class"
        warnings.warn(
            f"model={os.fspath(self.model)!r} was trained for the classes {list_some(trained)}; "
            f"those of this fit are {list_some(own)}. It starts from {goes_on}.",
            UserWarning,
            stacklevel=6,
        )

    def _common_precision(self, ranks: Ranks) -> str:
        """Return the precision to train in: in all processes of a job, that of the first."""
        own = resolve_precision(self.precision, resolve_device(self.device))
        chosen = torch.tensor(PRECISIONS.index(own))
        ranks.copy_first([chosen])
        return PRECISIONS[int(chosen)]

    def _make_net(
        self,
        loss: Any,
        model: str,
        n_outputs: int,
        precision: str,
        pace: Pace,
        callbacks: Sequence[Any] = (),
        is_shown: bool = False,
    ) -> TextNet:
        """Return a network that is not initialised yet."""
        return TextNet(
            self._module_class,
            type(loss),
            module__model=model,
            module__n_classes=n_outputs,
            module__n_frozen_layers=self.n_frozen_layers,
            module__attention_dropout=self.attention_dropout,
            module__n_token_types=self._n_token_types(),
            module__peft_config=self.peft_config,
            module__config=None,
            lr=pace.lr,
            head_lr=pace.head_lr,
            max_epochs=pace.max_epochs,
            batch_size=self.batch_size,
            weight_decay=self.weight_decay,
            warmup=self.warmup,
            schedule=self.schedule,
            clip_norm=self.clip_norm,
            precision=precision,
            predict_precision="fp32" if self.precision == "auto" else self.precision,
            device=resolve_device(self.device),
            callbacks=list(callbacks),
            verbose=is_shown,  # Whether callbacks of skorch print.
            **{f"criterion__{name}": value for name, value in loss.get_params(deep=False).items()},
        )

    def _n_token_types(self) -> int | None:
        """Return how many types of pieces are told apart, None for those of the model."""
        return None

    # -- batches -----------------------------------------------------------------------------------

    def _frame(self) -> Frame:
        """Return the special tokens around the texts of a row."""
        return frame_of(self._task, self.tokenizer_)

    def _predict_logits(self, dataset: EncodedDataset) -> np.ndarray:
        """Return logits of shape (n_items, n_outputs)."""
        if dataset.n_items == 0:
            return np.empty((0, self.net_.module_.n_outputs), dtype=np.float32)
        network = self._onnx_network()
        with denormals_flushed():
            if network is None:
                batcher = self._batcher(dataset, self.net_.predict_precision)
            else:
                batcher = self._padding(dataset, self.net_.pads)
                batcher.batch_tokens = BATCH_TOKENS
            return self.net_.predict_logits(batcher, network)

    def _onnx_network(self) -> OnnxNetwork | None:
        """Return what predicts in place of torch, which computes all of a fit."""
        check_option(type(self).__name__, "runtime", self.runtime, RUNTIMES)
        if self.runtime == "torch" or self.interrupted_:
            return None
        return onnx_network(self.net_.module_, self.runtime, self.max_length_)

    def _network_bytes(self) -> int:
        """Return the size of the network that predicts."""
        network = self._onnx_network()
        if network is not None:
            return network.n_bytes
        return sum(weight.nbytes for weight in self.net_.module_.parameters())

    def _batcher(self, dataset: EncodedDataset, precision: str) -> Batcher:
        return self._padding(dataset, self.net_.pads)

    def _padding(self, dataset: EncodedDataset, pads: bool = True) -> Batcher:
        return Batcher(
            dataset,
            self.batch_size * self._windows_per_text(),
            self.tokenizer_.pad_id,
            self.tokenizer_.pads_left,
            batch_tokens=self.batch_tokens,
            pads=pads,
        )

    def _sampler(self, batcher: Batcher, rng: np.random.Generator, ranks: Ranks) -> StepSampler:
        batch_size = self.batch_size if self.batch_tokens is None else self.batch_tokens
        return StepSampler(batcher, batch_size * self.accumulate, rng, ranks)

    def _count_steps(self, dataset: EncodedDataset) -> int:
        """Return the optimiser steps of an epoch."""
        ranks = current_ranks(resolve_device(self.device))
        return len(self._sampler(self._padding(dataset), np.random.default_rng(), ranks))

    def _probe(self, pads: bool = True) -> Batcher:
        """Return a few tiny windows, to try out what the model does."""
        pieces = self.tokenizer_.encode(list("abcdefgh")).values
        return self._padding(probe_dataset(pieces, self._frame(), self.max_length_), pads)

    def _encode_once(self, content: Any, encode: Callable[[], Any]) -> Any:
        """Return what ``encode`` gives, which depends on the content and the tokenizer alone."""
        reuse = active_reuse()
        if reuse is None:
            return encode()
        fingerprint = self.tokenizer_.fingerprint
        return reuse.encoded((type(self), fingerprint, self.max_length_, content), encode)

    def _check_is_fitted(self) -> None:
        check_is_fitted(self, "net_")
        if getattr(self, "interrupted_", False):
            warnings.warn(
                f"The fit of this {type(self).__name__} did not come to its end: it stopped in "
                f"epoch {len(self.history_)} of {self.max_epochs_} (interrupted_ is True).",
                UserWarning,
                stacklevel=3,
            )

    def _class_names(self) -> list[Any]:
        """Return the classes, or the types of a query tagger; none of an extractor."""
        names = getattr(self, "classes_", getattr(self, "labels_", []))
        return list(names.tolist() if isinstance(names, np.ndarray) else names)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.non_deterministic = self.random_state is None
        return tags


def _mean_history(histories: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the means over members, epoch by epoch, and the seconds of all."""
    by_epoch = pd.concat(histories).groupby(level=0)
    mean: pd.DataFrame = by_epoch.mean()
    if "dur" in mean:
        mean["dur"] = by_epoch["dur"].sum()
    return mean
