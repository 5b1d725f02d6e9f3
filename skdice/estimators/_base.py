"""What all estimators share: the template of ``fit``, a network, predictions."""

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .._digest import digest
from .._inputs import check_sample_weight, list_some
from .._parameters import check_option
from .._pretrained import quiet_transformers
from ..io._checkpoint import DirectoryCheckpoint
from ..io._onnx_network import BATCH_TOKENS, OnnxNetwork, onnx_network
from ..nn._batching import Batcher, StepSampler
from ..nn._callbacks import check_callbacks
from ..nn._chain import TagChain
from ..nn._modules import TextModule, hidden_size
from ..nn._net import TextNet
from ..nn._predicted import predicted_classes
from ..nn._probe import padding_is_masked, probe_dataset
from ..nn._progress import FitProgress
from ..nn._ranks import Ranks, current_ranks
from ..nn._runtime import (
    RUNTIMES,
    denormals_flushed,
    resolve_device,
    resolve_precision,
    seed_generators,
    seeded,
)
from ..nn._train import train
from ..text._encoding import EncodedDataset
from ..text._frame import Frame
from ..text._tokenizer import WordTokenizer
from ._collapse import warn_of_collapse
from ._fit_fingerprint import fit_digests, fit_fingerprint
from ._loss import make_training_loss
from ._members import Member, history_of, mean_history, members_of
from ._open_parameters import Pace, choose_pace, longest_window
from ._reuse import active_reuse
from ._rows import Rows, read_fit_rows
from ._saving import SavedEstimator
from ._shared_parameters import FITTED_ATTRIBUTES
from ._task import Task, frame_of

_INTERRUPTED = (
    "The estimator can be used: it has the weights of the last step or, with patience, of the best "
    "epoch so far; of several members, those that were finished. Its interrupted_ is True "
    "until it is fitted again."
)
_SAVED_STATE = "saved state (checkpoint_dir must be one directory that all see)"


class Lesson(NamedTuple):
    """What a fit learns from.

    Attributes
    ----------
    dataset : EncodedDataset
        With targets.
    labels : list of n_classes labels
        The classes of an item.
    counts : ndarray of shape (n_classes,), or (n_classes, 2) if multi-label
        Training items of each class, or without and with each label.
    background : int or None
        The class that set losses leave out.
    binary : bool
        Whether one class is searched among the rest.
    recommended : str
        What ``loss="recommended"`` means here.
    """

    dataset: EncodedDataset
    labels: list[Any]
    counts: np.ndarray
    background: int | None
    binary: bool
    recommended: str = "ce"


class TextEstimator(SavedEstimator):
    """Base of the estimators: ``fit`` is a template, of which a subclass fills in the steps.

    Rows are read (:meth:`_read_training`), what a fit knows of them is set (:meth:`_learn`), they
    are encoded and counted (:meth:`_prepare`); then the loss is made, the network trained, and the
    decision tuned (:meth:`_decide_on`).
    """

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

    # -- the steps of a fit, which a subclass brings -----------------------------------------------

    def _read_training(self, X: Any, y: Any) -> tuple[Sequence[Any], Any, np.ndarray | None]:
        """Return checked rows and labels, and which of them can be learned from (None: all)."""
        return (*self._read_labelled(X, y), None)

    def _read_labelled(self, X: Any, y: Any) -> tuple[Sequence[Any], Any]:
        """Return checked rows and labels to compare predictions with."""
        rows = self._task.read_X(X)
        return rows, self._task.read_y(y, rows)

    def _check_learnable(self, rows: Rows) -> None:
        """Raise a ValueError if nothing can be learned from the rows."""
        raise NotImplementedError

    def _learn(self, rows: Rows) -> None:
        """Set what a fit knows of its rows: classes, scheme, decisions before they are tuned."""
        raise NotImplementedError

    def _strata(self, rows: Rows) -> np.ndarray | None:
        """Return the class of each row, if both parts of a split should have all of them."""
        return None

    def _prepare(self, rows: Rows, rng: np.random.Generator) -> Lesson:
        """Return the encoded training rows and the counts of their classes."""
        raise NotImplementedError

    def _criterion(self, loss: Any) -> Any:
        """Return what a step computes, of the loss that was chosen."""
        return loss

    def _n_outputs(self) -> int:
        """Return how many logits an item has."""
        return len(self._class_names())

    def _validator(self, rows: Rows) -> Callable[[], float]:
        """Return what scores rows with the network as it is then."""
        raise NotImplementedError

    def _decide_on(self, rows: Rows, valid: Rows, held_out: tuple[Any, Any] | None) -> None:
        """Tune the decision, if that was asked for.

        Parameters
        ----------
        rows : Rows
            Of the whole fit.
        valid : Rows
            Those to validate on.
        held_out : tuple of X and y, or None
            These, if ``fit`` was given them.
        """

    def _predicted(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return what is predicted of a batch, for :meth:`_missed`."""
        return predicted_classes(logits, target)

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

    # -- what else a subclass may bring ------------------------------------------------------------

    def _tunes_on_validation(self) -> str | None:
        """Return the parameter that needs rows to validate on, as it is set."""
        return None if self.patience is None else f"patience={self.patience!r}"

    def _feature_names(self, X: Any) -> np.ndarray | None:
        """Return the names of the columns of X, if it is a table with names."""
        return None

    def _groups(self, X: Any) -> Sequence[Any] | None:
        """Return what rows of X have in common that have to be in the same part of a split."""
        return None if self._task.find_groups is None else self._task.find_groups(X)

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

    def _n_token_types(self) -> int | None:
        """Return how many types of pieces are told apart, None for those of the model."""
        return None

    # -- fitting -----------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        validation: Any = None,
    ) -> Self:
        """Fine-tune the model.

        Parameters
        ----------
        X, y : rows and labels
            As the class says.
        sample_weight : array-like of shape (n_rows,), optional
            Weight of each row; 2 counts as repetition, 0 as absence.
        groups : array-like of shape (n_rows,), optional
            Rows of one group, such as a document, are kept together when rows are split for
            validation or folds.
        validation : tuple (X, y), or array of int or bool, optional
            What is scored after every epoch, instead of ``validation_fraction``: other rows, or the
            indices or a mask of rows of X.

        Returns
        -------
        estimator
            self

        Raises
        ------
        ValueError
            If parameters or data are not allowed, or the loss stops being finite; the message says
            what was got, what is allowed, and which row.
        """
        self._check_parameters()
        self._check_validation(validation)
        given = read_fit_rows(X, y, sample_weight, groups, validation)
        read_X, read_y, kept = self._read_training(given.X, given.y)
        weight = check_sample_weight(given.sample_weight, len(read_X))
        own_groups = self._groups(read_X) if given.groups is None else given.groups
        rows = Rows(read_X, read_y, weight, own_groups, np.arange(len(read_X))).used(kept)
        valid = None
        if given.held_out is not None:
            valid = Rows.of(*self._read_labelled(*given.held_out))
        self._check_learnable(rows)

        # A fit that fails from here on must not leave new classes on the old network.
        self.__dict__.pop("net_", None)
        self.interrupted_ = True
        seed = self._draw_seed()
        rng = np.random.default_rng(seed)
        self.tokenizer_ = self._load_tokenizer()
        self.max_length_ = longest_window(self, self.tokenizer_, self._frame())
        self.__dict__.pop("feature_names_in_", None)
        names = self._feature_names(X)
        if names is not None:
            self.feature_names_in_ = names
        if given.held_out is not None:
            self._check_feature_names(given.held_out[0])
        self._learn(rows)

        training, held_out = rows.split(self.validation_fraction, rng, self._strata(rows))
        valid = held_out if valid is None else valid
        lesson = self._prepare(training, rng)
        if not lesson.dataset.n_items:
            raise ValueError("Found no word to train on: the training sentences have no words.")
        self._n_training_rows = lesson.dataset.n_texts
        self.loss_ = make_training_loss(
            self,
            lesson.labels,
            lesson.counts,
            lesson.background,
            binary=lesson.binary,
            n_steps=self._count_steps(lesson.dataset),
            recommended=lesson.recommended,
        )
        self._fit_network(lesson.dataset, seed, rng, valid)
        self._decide_on(rows, valid, given.held_out)
        self.interrupted_ = False
        return self

    def _check_validation(self, validation: Any) -> None:
        """Raise a ValueError if rows to validate on are missing, or are named twice."""
        if validation is not None and self.validation_fraction is not None:
            raise ValueError(
                f"validation takes the place of validation_fraction, which must be None with it. "
                f"Got validation_fraction={self.validation_fraction!r}."
            )
        validates = validation is not None or self.validation_fraction is not None
        needs = self._tunes_on_validation()
        if needs and not validates:
            raise ValueError(
                f"{needs} needs rows to validate on: validation_fraction (a float in (0, 1)), or "
                f"validation=(X, y) in fit. Got validation_fraction=None."
            )
        check_callbacks(self.callbacks, validates)

    def _check_feature_names(self, X: Any) -> None:
        """Raise a ValueError unless a table has the columns of the fit, in that order."""
        names, known = self._feature_names(X), getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and names.tolist() != known.tolist():
            raise ValueError(
                f"The columns of X must be those of the fit, in that order: {known.tolist()}; got "
                f"{names.tolist()}."
            )

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
        self._ranks().copy_first([seed])
        return int(seed)

    def _load_tokenizer(self) -> WordTokenizer:
        """Return the tokenizer of the base model."""
        reuse, model = active_reuse(), os.fspath(self.model)
        return WordTokenizer(model) if reuse is None else reuse.tokenizer(model)

    def _fit_network(
        self, dataset: EncodedDataset, seed: int, rng: np.random.Generator, valid: Rows
    ) -> None:
        """Set ``net_``, all members in it, and what is known of its training.

        ``seed`` and ``rng`` are those of the first member.
        """
        members = members_of(seed, rng, self.n_members, begin_alike=self.merge_members)
        # Processes that train together have to do the same things in the same order.
        # Threads would share this estimator, which validates the network that it has.
        has_threads = getattr(get_active_backend()[0], "supports_sharedmem", False)
        in_processes = effective_n_jobs(None) > 1 and not has_threads
        if self._ranks().count == 1 and in_processes and len(members) > 1:
            fit = delayed(self._fit_member)
            self._keep(Parallel()(fit(dataset, member, valid) for member in members))
            return
        nets: list[TextNet] = []
        try:
            for member in members:
                nets.append(self._fit_member(dataset, member, valid))
        finally:
            # The members that were finished are better than one that was interrupted.
            if nets:
                self._keep(nets)

    def _keep(self, nets: Sequence[TextNet]) -> None:
        """Set ``net_`` to what several fits have trained."""
        self.net_ = nets[0]
        # What a process of its own has set is not set here.
        self.max_epochs_, self.lr_ = self.net_.max_epochs, self.net_.lr
        module, others = self.net_.module_, [net.module_ for net in nets[1:]]
        module.merge(others) if self.merge_members else module.join(others)
        self.history_ = mean_history([history_of(net) for net in nets])
        self.best_epoch_ = max(net.progress_.best_epoch for net in nets)

    def _fit_member(self, dataset: EncodedDataset, member: Member, valid: Rows) -> TextNet:
        """Train one network; ``fit`` of an estimator that is interrupted leaves it behind."""
        ranks, model = self._ranks(), os.fspath(self.model)
        pace = choose_pace(self, self._count_steps(dataset), hidden_size(model))
        self.max_epochs_, self.lr_ = pace.max_epochs, pace.lr
        is_shown = bool(self.verbose and ranks.is_first)
        callbacks = list(self.callbacks or [])
        if is_shown:
            progress = FitProgress(self._description(member, pace), self._metric_name())
            callbacks.append(("progress", progress))
        net = self._make_net(
            self._criterion(self.loss_),
            model,
            self._n_outputs(),
            resolve_precision(self.precision, resolve_device(self.device)),
            pace,
            callbacks=callbacks,
            verbose=is_shown,  # Whether callbacks of skorch print.
        )
        with seeded(member.first_seed, net.device), denormals_flushed():
            with quiet_transformers():
                net.initialize()
                if member.seed != member.first_seed:
                    seed_generators(member.seed, net.device)
                self._warn_of_other_classes(net.module_.trained_labels)
                # The files of the base model are on this machine from here on.
                checkpoint, state = self._find_checkpoint(net, dataset, member, valid, ranks)
                net.pads = self._finds_padding_masked(net)
            if ranks.count > 1:
                ranks.copy_first(net.module_.state_dict().values())
                seed_generators(ranks.seed(member.seed), net.device)
            self.net_ = net
            try:
                train(
                    net,
                    self._sampler(self._batcher(dataset, net.pads), member.rng, ranks),
                    validate=self._validator(valid) if len(valid) else None,
                    patience=self.patience,
                    predicted=self._predicted,
                    chain=self._chain(dataset),
                    checkpoint=checkpoint,
                    state=state,
                )
            except KeyboardInterrupt as error:
                error.add_note(_INTERRUPTED)
                raise
            finally:
                self.history_, self.best_epoch_ = history_of(net), net.progress_.best_epoch
        assert dataset.target is not None
        missed = self._missed(np.array(net.progress_.best_predicted, dtype=bool), dataset.target)
        if missed is not None:
            warn_of_collapse(missed, self.loss_)
        return net

    def _description(self, member: Member, pace: Pace) -> str:
        """Return what the progress bar calls a fit."""
        name = type(self.loss_).__name__
        if isinstance(self.loss, str):
            name = f"recommended, {name}" if self.loss == "recommended" else self.loss
        if self.n_members > 1:
            name = f"{name}, member {member.number + 1} of {self.n_members}"
        return f"{name}, lr {pace.lr:g}" if self.lr == "auto" else name

    def _find_checkpoint(
        self, net: TextNet, dataset: EncodedDataset, member: Member, valid: Rows, ranks: Ranks
    ) -> tuple[DirectoryCheckpoint | None, dict[str, Any] | None]:
        """Return where the state of a fit is kept, and that to go on from, if there is one.

        Raises
        ------
        ValueError
            If the state is damaged, or processes differ in what the fit depends on.
        """
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
                UserWarning,
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
            UserWarning,
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
            **more,
        )

    # -- batches -----------------------------------------------------------------------------------

    def _ranks(self) -> Ranks:
        """Return the processes that train together."""
        return current_ranks(resolve_device(self.device))

    def _frame(self) -> Frame:
        """Return the special tokens around the texts of a row."""
        return frame_of(self._task, self.tokenizer_)

    def _batcher(self, dataset: EncodedDataset, pads: bool = True) -> Batcher:
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
        return len(self._sampler(self._batcher(dataset), np.random.default_rng(), self._ranks()))

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

    # -- prediction --------------------------------------------------------------------------------

    def _predict_logits(self, dataset: EncodedDataset) -> np.ndarray:
        """Return logits of shape (n_items, n_outputs)."""
        if dataset.n_items == 0:
            return np.empty((0, self.net_.module_.n_outputs), dtype=np.float32)
        network = self._onnx_network()
        batcher = self._batcher(dataset, self.net_.pads)
        if network is not None:
            batcher.batch_tokens = BATCH_TOKENS
        with denormals_flushed():
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

    def _check_is_fitted(self) -> None:
        check_is_fitted(self, "net_")
        if self.interrupted_:
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
