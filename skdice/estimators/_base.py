"""What all estimators share: parameters, seeds, training and saved state."""

import numbers
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .._digest import digest
from .._parameters import check_number, check_option
from ..io._checkpoint import DirectoryCheckpoint, damaged_checkpoint
from ..nn._batching import Batcher, StepSampler
from ..nn._finite_guard import NotFiniteError
from ..nn._modules import position_limit
from ..nn._net import TextNet
from ..nn._predicted import predicted_classes
from ..nn._probe import padding_is_masked, probe_dataset
from ..nn._progress import FitProgress
from ..nn._ranks import LostProcessError, Ranks, current_ranks
from ..nn._runtime import (
    denormals_flushed,
    resolve_device,
    resolve_precision,
    seed_generators,
    seeded,
)
from ..nn._training_state import State, UnfitStateError
from ..text._encoding import EncodedDataset
from ..text._frame import Frame
from ..text._tokenizer import WordTokenizer
from ._collapse import warn_of_collapse
from ._fit_fingerprint import check_directory, fit_digests, fit_fingerprint
from ._loss import LossMixin
from ._persistence import PersistenceMixin, loss_of
from ._reuse import active_reuse

_INTERRUPTED = (
    "The estimator can be used: it has the weights of the last step or, with patience, of the best "
    "epoch so far. Its interrupted_ is True until it is fitted again."
)
_SAVED_STATE = "saved state (checkpoint_dir must be one directory that all see)"
# Where neither the model nor its tokenizer says how long a text may be.
_DEFAULT_MAX_LENGTH = 512


class TextEstimator(LossMixin, PersistenceMixin, BaseEstimator):
    """Base of the estimators; a subclass brings its parameters, encoding and decoding."""

    def _more_parameters(self) -> None:
        """Check the parameters that only this estimator has."""

    def _metric_name(self) -> str:
        """Return what the progress bar calls the validation score."""
        return "F1"

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

    def _windows_per_text(self) -> int:
        """Return how many windows a text has that is not longer than one."""
        return 1

    def _frame(self) -> Frame:
        """Return the special tokens around the texts of a row."""
        return self.tokenizer_.frame

    # -- parameters ------------------------------------------------------------------------------

    def set_params(self, **params: Any) -> "TextEstimator":
        """Set parameters, also of a loss object (``loss__gamma``).

        Raises
        ------
        ValueError
            If a parameter is unknown, or ``loss__...`` is set while ``loss`` is a name.
        """
        loss = params.get("loss", self.loss)
        nested = [name for name in params if name.startswith("loss__")]
        if nested and isinstance(loss, str):
            parameter = nested[0].removeprefix("loss__")
            raise ValueError(
                f"{nested[0]!r} needs a loss object, but loss={loss!r} is a name. Pass an object, "
                f"for instance loss=DiceLoss() of skdice.losses, or set {parameter!r} on the "
                f"estimator."
            )
        return super().set_params(**params)

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        if not isinstance(self.model, str | os.PathLike) or not str(self.model):
            raise ValueError(
                f"The 'model' parameter of {owner} must be a hub id or a directory (str or "
                f"PathLike). Got {self.model!r} instead."
            )
        check_number(owner, "max_epochs", self.max_epochs, low=1, integer=True)
        check_number(owner, "batch_size", self.batch_size, low=1, integer=True)
        check_number(owner, "batch_tokens", self.batch_tokens, low=1, integer=True, optional=True)
        check_number(owner, "accumulate", self.accumulate, low=1, integer=True)
        check_number(owner, "lr", self.lr, low=0, closed="neither")
        check_number(owner, "head_lr", self.head_lr, low=0, closed="neither", optional=True)
        check_number(owner, "weight_decay", self.weight_decay, low=0)
        if isinstance(self.warmup, numbers.Integral):
            check_number(owner, "warmup", self.warmup, low=0, integer=True)
        else:
            check_number(owner, "warmup", self.warmup, low=0, high=1)
        check_option(owner, "schedule", self.schedule, ("linear", "cosine", "constant"))
        check_number(owner, "clip_norm", self.clip_norm, low=0, closed="neither", optional=True)
        check_number(owner, "max_length", self.max_length, low=1, integer=True, optional=True)
        check_number(owner, "stride", self.stride, low=0, integer=True, optional=True)
        check_number(
            owner, "n_frozen_layers", self.n_frozen_layers, low=0, integer=True, optional=True
        )
        check_number(
            owner,
            "validation_fraction",
            self.validation_fraction,
            low=0,
            high=1,
            closed="neither",
            optional=True,
        )
        check_number(owner, "patience", self.patience, low=1, integer=True, optional=True)
        if self.patience is not None and self.validation_fraction is None:
            raise ValueError(
                f"patience={self.patience!r} needs validation_fraction (a float in (0, 1)): early "
                f"stopping scores the task metric on that part. Got validation_fraction=None."
            )
        check_option(owner, "precision", self.precision, ("auto", "fp32", "bf16", "fp16"))
        if self.checkpoint_dir is not None:
            check_directory(owner, self.checkpoint_dir, self.random_state)
        self._check_loss()
        self._more_parameters()

    # -- fitting ---------------------------------------------------------------------------------

    def _draw_seed(self) -> int:
        """Return the seed of this fit: in all processes of a job, that of the first."""
        seed = torch.tensor(self._draw_own_seed())
        current_ranks(resolve_device(self.device)).copy_first([seed])
        return int(seed)

    def _draw_own_seed(self) -> int:
        """Return a seed; numpy's global generator is left alone."""
        state = self.random_state
        if state is None:
            return int(np.random.default_rng().integers(2**31))
        if isinstance(state, int | np.integer) and not isinstance(state, bool) and state >= 0:
            return int(state)
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31 - 1))
        if isinstance(state, np.random.Generator):
            return int(state.integers(2**31))
        raise ValueError(
            f"The 'random_state' parameter of {type(self).__name__} must be None, an int >= 0, a "
            f"numpy RandomState or a Generator. Got {state!r} instead."
        )

    def _split(
        self, n_texts: int, rng: np.random.Generator, classes: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows to train on and, if asked for, those to validate on.

        With the class of each row, the classes have equal shares in both parts, and all of them
        are trained on.
        """
        rows = np.arange(n_texts)
        if self.validation_fraction is None:
            return rows, rows[:0]
        n_valid = max(1, round(self.validation_fraction * n_texts))
        if n_valid >= n_texts:
            raise ValueError(
                f"validation_fraction={self.validation_fraction!r} leaves no row to train on; got "
                f"{n_texts} rows."
            )
        order = rng.permutation(n_texts)
        if classes is None:
            valid = order[:n_valid]
        else:
            order = order[np.argsort(classes[order], kind="stable")]
            free = order[np.diff(classes[order], prepend=-1) == 0]
            n_valid = min(n_valid, len(free))
            if not n_valid:
                raise ValueError(
                    f"validation_fraction={self.validation_fraction!r} needs a class with two rows "
                    f"or more; got one row of each class."
                )
            # Equal steps through the rows, which are sorted by class.
            valid = free[((np.arange(n_valid) + rng.random()) * len(free) / n_valid).astype(int)]
        return np.setdiff1d(rows, valid), np.sort(valid)

    def _load_tokenizer(self) -> None:
        """Set ``tokenizer_`` and the longest window, ``max_length_``."""
        model = os.fspath(self.model)
        # A fit that fails from here on must not leave new classes on the old network.
        self.__dict__.pop("net_", None)
        reuse = active_reuse()
        self.tokenizer_ = WordTokenizer(model) if reuse is None else reuse.tokenizer(model)
        limit = position_limit(model)
        known = [n for n in (limit, self.tokenizer_.tokenizer.model_max_length) if n and n < 10**9]
        longest = min(known, default=_DEFAULT_MAX_LENGTH)
        n_special = self._frame().n_special
        if self.max_length is None:
            self.max_length_ = longest
        elif n_special < self.max_length <= min(known, default=self.max_length):
            self.max_length_ = self.max_length
        else:
            raise ValueError(
                f"The 'max_length' parameter of {type(self).__name__} must be None or an int in "
                f"the range [{n_special + 1}, {longest}] for {model!r}. Got {self.max_length!r} "
                f"instead."
            )

    def _set_stride(self) -> None:
        """Set ``stride_``, the pieces that neighbouring windows share."""
        capacity = self.max_length_ - self._frame().n_special
        self.stride_ = capacity // 4 if self.stride is None else self.stride
        if self.stride_ >= capacity:
            raise ValueError(
                f"The 'stride' parameter of {type(self).__name__} must be smaller than the "
                f"{capacity} pieces of text in a window. Got {self.stride!r} instead."
            )

    def _train(
        self,
        dataset: EncodedDataset,
        loss: Any,
        n_outputs: int,
        seed: int,
        rng: np.random.Generator,
        validate: Callable[[], float] | None,
        held_out: Any,
    ) -> None:
        """Train a fresh network and set ``net_``, ``loss_``, ``history_`` and ``best_epoch_``.

        ``seed`` is for torch (new weights, dropout), ``rng`` for the order of the texts.
        ``held_out`` is what ``validate`` looks at, by which a checkpoint is found to be of this
        fit. The caller resets ``interrupted_`` when its fit is complete.
        """
        ranks = current_ranks(resolve_device(self.device))
        callbacks = list(self.callbacks or [])
        if self.verbose and ranks.is_first:
            name = self.loss if isinstance(self.loss, str) else type(self.loss).__name__
            callbacks.append(("progress", FitProgress(name, self._metric_name())))
        net = self._make_net(loss, os.fspath(self.model), n_outputs, callbacks)
        checkpoint, state = None, None
        with seeded(seed, net.device), denormals_flushed():
            net.initialize()
            # The files of the base model are on this machine from here on.
            if self.checkpoint_dir is not None or ranks.count > 1:
                digests = fit_digests(
                    self,
                    settings=(net.precision, torch.device(net.device).type, seed),
                    training_data=(dataset.fingerprint, self._class_names(), loss, rng),
                    held_out_data=held_out,
                )
                checkpoint, state = self._find_checkpoint(digests, ranks)
            if ranks.count > 1:
                ranks.copy_first(net.module_.state_dict().values())
                seed_generators(ranks.seed(seed), net.device)
            self._pads = self._padding_is_masked(net)
            self.net_ = net
            self.loss_ = loss_of(net)
            self.interrupted_ = True
            self._n_training_rows = dataset.n_texts
            sampler = self._sampler(self._batcher(dataset, net.precision), rng, ranks)
            try:
                with ranks.left_on_error(NotFiniteError):
                    net.fit(
                        sampler,
                        validate=validate,
                        patience=self.patience,
                        predicted=self._predicted,
                        resume_from=state,
                        save_state=None if checkpoint is None else checkpoint.save,
                    )
            except KeyboardInterrupt as error:
                error.add_note(_INTERRUPTED)
                raise
            except UnfitStateError as error:
                assert checkpoint is not None  # The state is from there.
                raise damaged_checkpoint(checkpoint.path, error) from error
            except LostProcessError as error:
                raise LostProcessError(f"{error} {self._how_to_go_on()}") from error
            finally:
                self.history_ = _history(net)
                self.best_epoch_ = int(net.best_epoch_)
        self._warn_of_collapse(dataset.target)

    def _warn_of_collapse(self, target: Any) -> None:
        predicted = np.array(self.net_.history[self.best_epoch_ - 1]["predicted"])
        missed = self._missed(predicted, target)
        if missed is not None:
            warn_of_collapse(missed, self.loss_)

    def _find_checkpoint(
        self, digests: dict[str, str], ranks: Ranks
    ) -> tuple[DirectoryCheckpoint | None, State | None]:
        """Return where the state of a fit is kept and what it is, the same in all processes.

        ``digests`` are of what the fit depends on, which is compared as well.
        """
        checkpoint, state = None, None
        if self.checkpoint_dir is not None:
            fingerprint = fit_fingerprint(digests, ranks.count)
            checkpoint = DirectoryCheckpoint(self.checkpoint_dir, fingerprint)
            state = checkpoint.load()
        history = None if state is None else state.get("history")
        ranks.compare({**digests, _SAVED_STATE: digest(history)})
        return checkpoint, state

    def _how_to_go_on(self) -> str:
        if self.checkpoint_dir is None:
            return "With checkpoint_dir=... it would go on from the last finished epoch."
        epoch = 1 + sum("dur" in row for row in self.net_.history)
        return f"checkpoint_dir={os.fspath(self.checkpoint_dir)!r} goes on from epoch {epoch}."

    def _make_net(self, loss: Any, model: str, n_outputs: int, callbacks: list[Any]) -> TextNet:
        device = resolve_device(self.device)
        return TextNet(
            self._module_class,
            type(loss),
            module__model=model,
            module__n_classes=n_outputs,
            module__n_frozen_layers=self.n_frozen_layers,
            lr=self.lr,
            head_lr=self.head_lr,
            max_epochs=self.max_epochs,
            batch_size=self.batch_size,
            weight_decay=self.weight_decay,
            warmup=self.warmup,
            schedule=self.schedule,
            clip_norm=self.clip_norm,
            precision=resolve_precision(self.precision, device),
            predict_precision="fp32" if self.precision == "auto" else self.precision,
            device=device,
            callbacks=callbacks,
            **{f"criterion__{name}": value for name, value in loss.get_params(deep=False).items()},
        )

    def _predict_logits(self, dataset: EncodedDataset) -> np.ndarray:
        """Return logits of shape (n_items, n_outputs)."""
        if dataset.n_items == 0:
            return np.empty((0, self.net_.module__n_classes), dtype=np.float32)
        with denormals_flushed():
            batcher = self._batcher(dataset, self.net_.predict_precision)
            return self.net_.predict_logits(batcher)

    def _batcher(self, dataset: EncodedDataset, precision: str) -> Batcher:
        batcher = self._padding(dataset)
        reuse = active_reuse()
        if reuse is not None:
            batcher.states = reuse.frozen_states(self.net_, batcher, precision, self._probe)
        return batcher

    def _padding(self, dataset: EncodedDataset) -> Batcher:
        return Batcher(
            dataset,
            self.batch_size * self._windows_per_text(),
            self.tokenizer_.pad_id,
            self.tokenizer_.pads_left,
            batch_tokens=self.batch_tokens,
            pads=getattr(self, "_pads", True),
        )

    def _sampler(self, batcher: Batcher, rng: np.random.Generator, ranks: Ranks) -> StepSampler:
        batch_size = self.batch_size if self.batch_tokens is None else self.batch_tokens
        return StepSampler(batcher, batch_size * self.accumulate, rng, ranks)

    def _count_steps(self, dataset: EncodedDataset) -> int:
        """Return the optimiser steps of an epoch."""
        ranks = current_ranks(resolve_device(self.device))
        return len(self._sampler(self._padding(dataset), np.random.default_rng(), ranks))

    def _probe(self) -> Batcher:
        """Return a few tiny windows, to try out what the model does."""
        pieces = self.tokenizer_.encode(list("abcdefgh")).values
        return self._padding(probe_dataset(pieces, self._frame(), self.max_length_))

    def _padding_is_masked(self, net: TextNet) -> bool:
        """Whether texts of several lengths may share a batch."""
        module = net.module_
        is_masked = padding_is_masked(module, self._probe(), net.device)
        if not is_masked:
            warnings.warn(
                f"{type(module.transformer).__name__} scores a text differently if it is padded, "
                f"so batches have texts of the same length only. That takes longer; the scores are "
                f"those of each text by itself.",
                UserWarning,
                stacklevel=4,
            )
        return is_masked

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
                f"epoch {len(self.history_)} of {self.max_epochs} (interrupted_ is True).",
                UserWarning,
                stacklevel=3,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.non_deterministic = self.random_state is None
        return tags


def _history(net: TextNet) -> pd.DataFrame:
    columns = ("epoch", "train_loss", "valid_score", "lr", "dur")
    rows = [{name: row[name] for name in columns if name in row} for row in net.history]
    return pd.DataFrame(rows).set_index("epoch") if rows else pd.DataFrame()
