"""The network of a fit as a skorch net, which trains on steps of ragged text.

skorch runs the training: its ``fit``, its loop over epochs, its callbacks in its order and its
history. The data are a :class:`StepSampler`; a batch, to skorch, is an optimiser step, which is a
list of padded batches. What skorch's own methods would do otherwise is:

- ``train_step``: the gradient of a step is that of one large batch, however it is cut, over all
  processes of a job; a GPU in half precision scales it.
- ``run_single_epoch``: a loss is read at every step only if a callback may ask for it, since a GPU
  is waited for; the steps of an epoch end where a callback ends the fit.
- ``notify``: a callback that ends the fit lets the others hear of the epoch, too.
- ``partial_fit``: Ctrl-C and errors get out, after ``on_train_end``; skorch swallows Ctrl-C.

skorch's ``Checkpoint`` keeps weights, optimizer and history. To go on bit for bit needs the scaler,
the memory of the loss and all generators, of every process; see :mod:`skdice.nn._training_state`.
"""

import copy
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import EpochTimer
from skorch.utils import TeeGenerator
from torch import Tensor

from ..losses import Loss, SumsMemory
from ._accumulation import accumulate_gradient
from ._batching import Batch, Batcher, StepSampler, to_device
from ._callbacks import CtrlC, ctrl_c_told_apart, named_callbacks
from ._guard import FiniteGuard, NotFiniteError
from ._modules import module_inputs
from ._progress import FitProgress, with_progress
from ._runtime import ALONE, autocast
from ._schedule import LinearSchedule
from ._speedups import compact_embedding, own_attention

# Numbers that are collected on a GPU before they are copied: each copy waits for it.
_COLLECTED = 2**24


class _EndOfFit(BaseException):
    """A callback has ended the fit."""


class TextNet(NeuralNet):
    """A skorch net of a transformer.

    ``fit`` and ``partial_fit`` take a :class:`StepSampler`, ``predict`` and :meth:`predict_logits`
    a :class:`Batcher`. Its parameters are those of the estimators and of skorch. ``module`` is a
    class, since a clone must not share weights; of the ``loss``, which is always computed in
    float32, ``criterion_`` is a copy. ``pads`` says whether a batch may hold windows of several
    lengths. ``best_epoch_`` is the epoch of the weights that :func:`train` has kept.
    """

    # While it is trained, the processes that do so together.
    ranks_ = ALONE
    best_epoch_ = 0

    def __init__(
        self,
        module: type,
        loss: Loss,
        *,
        head_lr: float | None = None,
        weight_decay: float = 0.01,
        warmup: float = 0.1,
        clip_norm: float | None = 1.0,
        precision: str = "fp32",
        predict_precision: str = "fp32",
        pads: bool = True,
        **kwargs: Any,
    ) -> None:
        self.loss = loss
        self.head_lr = head_lr
        self.weight_decay = weight_decay
        self.warmup = warmup
        self.clip_norm = clip_norm
        self.precision = precision
        self.predict_precision = predict_precision
        self.pads = pads
        # A clone passes them itself.
        fixed = {"optimizer": torch.optim.AdamW, "train_split": None, "verbose": 0}
        # What skorch's progress bar counts: a step is one batch.
        fixed["iterator_train__batch_size"] = 1
        super().__init__(module, **{"criterion": type(loss), **fixed, **kwargs})

    @property
    def _default_callbacks(self) -> list[tuple[str, Any]]:
        return [("epoch_timer", EpochTimer()), ("schedule", LinearSchedule())]

    def initialize_criterion(self) -> "TextNet":
        """Copy the loss to the device, with its class weights."""
        self.criterion_ = copy.deepcopy(self.loss).to(self.device)
        return self

    def initialize_optimizer(self, *args: Any, **kwargs: Any) -> "TextNet":
        """Set up fused AdamW, without weight decay on biases and norms."""
        head = self.module_.head_parameters()
        groups: dict[tuple[bool, bool], list[Any]] = {}
        for parameter in self.module_.parameters():
            if parameter.requires_grad:
                key = (parameter in head, parameter.ndim > 1)
                groups.setdefault(key, []).append(parameter)
        head_lr = self.lr if self.head_lr is None else self.head_lr
        self.optimizer_ = self.optimizer(
            [
                {
                    "params": parameters,
                    "lr": head_lr if in_head else self.lr,
                    "weight_decay": self.weight_decay if decays else 0.0,
                }
                for (in_head, decays), parameters in groups.items()
            ],
            fused=torch.device(self.device).type in ("cpu", "cuda"),
        )
        return self

    def get_dataset(self, X: Any, y: Any = None) -> Any:
        """Return the data as they are: they make batches themselves."""
        return X

    def get_iterator(self, dataset: Any, training: bool = False) -> Iterable[Any]:
        """Return the optimiser steps of a sampler, or the batches of a batcher."""
        steps: Iterable[Any] = dataset if training else (b for _, b in dataset.by_length())
        return steps

    # -- training ----------------------------------------------------------------------------------

    def partial_fit(
        self, X: StepSampler, y: Any = None, classes: Any = None, **fit_params: Any
    ) -> "TextNet":
        """Train the net for ``max_epochs``; it goes on from the weights that it has.

        With several processes all of them have to call it, with the same weights. It is a
        ValueError if loss or gradient stop being finite; the weights are those before that step.
        """
        if not self.initialized_:
            self.initialize()
        batcher = X.batcher
        # The pieces that batches are padded with are looked up, too.
        pieces = np.append(batcher.dataset.input_ids.values, batcher.pad_id)
        self.ranks_ = X.ranks
        try:
            with (
                ctrl_c_told_apart(),
                X.ranks.left_on_error(NotFiniteError),
                compact_embedding(self.module_, pieces),
                own_attention(self.module_),
            ):
                self._run(X, y, fit_params)
        finally:
            self.ranks_ = ALONE
            self.drop_training_state()
        return self

    def _run(self, X: StepSampler, y: Any, fit_params: dict[str, Any]) -> None:
        """Run the epochs that are left."""
        self.notify("on_train_begin", X=X, y=y)
        n_done = len(self.rows_of_run)
        # A fit that is ended before its first step makes that one.
        n_left = 0 if self.is_stopped_ and n_done else self.max_epochs - n_done
        try:
            self.fit_loop(X, y, epochs=n_left, **fit_params)
        except _EndOfFit:
            pass
        finally:
            self.notify("on_train_end", X=X, y=y)

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """Set up what the steps of a run need and nobody after it."""
        self.is_stopped_ = False
        self.n_rows_before_ = len(self.history)
        self.sampler_: Any = X
        self.shift_ = None if X.shift is None else torch.from_numpy(X.shift).to(self.device)
        self.initialize_optimizer()  # Of the parameters as they are now.
        kind = torch.device(self.device).type
        self.scaler_: Any = torch.amp.GradScaler(kind, enabled=self.precision == "fp16")
        self.scaler_.scale(torch.zeros((), device=self.device))  # Sets up its scale.
        self.guard_: Any = FiniteGuard(self.optimizer_, kind != "cuda" or self.scaler_.is_enabled())
        memory = self.criterion_.memory
        self.memory_: Any = SumsMemory(0 if isinstance(memory, str) else memory)

    def drop_training_state(self) -> None:
        """Drop what only the next step would need, so that a pickle is as large as the weights."""
        self.module_.zero_grad(set_to_none=True)
        self.optimizer_ = self.scaler_ = self.guard_ = self.memory_ = None
        self.sampler_ = self.shift_ = None

    @property
    def rows_of_run(self) -> list[dict[str, Any]]:
        """The rows of the history of this run: it has come as far as they say."""
        rows: list[dict[str, Any]] = self.history[self.n_rows_before_ :]
        return rows

    def notify(self, method_name: str, **cb_kwargs: Any) -> None:
        """Tell all callbacks; one that raises KeyboardInterrupt, as skorch's do, ends the fit."""
        getattr(self, method_name)(self, **cb_kwargs)
        for _, callback in self.callbacks_:
            try:
                getattr(callback, method_name)(self, **cb_kwargs)
            except CtrlC:
                raise
            except KeyboardInterrupt:
                self.is_stopped_ = True
        if method_name == "on_epoch_end" and self.is_stopped_:
            raise _EndOfFit

    def run_single_epoch(
        self, iterator: Any, training: bool, prefix: str, step_fn: Any, **fit_params: Any
    ) -> None:
        """Run the steps of an epoch; its history has their mean loss and learning rate."""
        if iterator is None:  # The task metric is scored at the end of the epoch.
            return
        self._set_training(training)
        history, losses, rates = self.history, [], []
        callbacks = [callback for _, callback in named_callbacks(self.callbacks)]
        reads_losses = not all(isinstance(callback, FitProgress) for callback in callbacks)
        groups = self.optimizer_.param_groups
        history.record("lr", groups[0]["lr"])
        history.record("n_texts", iterator.n_texts)
        for step in iterator:
            self.notify("on_batch_begin", batch=step, training=training)
            rates.append(groups[0]["lr"])
            outcome = step_fn(step, **fit_params)
            losses.append(outcome["loss"])
            if reads_losses:  # A GPU is waited for.
                history.record_batch(f"{prefix}_loss", losses[-1].item())
                history.record_batch(f"{prefix}_batch_size", 1)
            self.notify("on_batch_end", batch=step, training=training, **outcome)
            if self.is_stopped_ and self.ranks_.count == 1:
                break
        self.guard_.look()
        history.record("lr", sum(rates) / len(rates))
        history.record(f"{prefix}_batch_count", len(losses))
        name, loss = f"{prefix}_loss", torch.stack(losses).mean().item()
        history.record(name, loss)
        history.record(f"{name}_best", all(loss < row[name] for row in history[:-1]))

    def train_step(self, batch: list[Batch], **fit_params: Any) -> dict[str, Any]:
        """Take an optimiser step with the gradient of a list of batches."""
        row, n_steps = self.history[-1], len(self.sampler_)
        where = f"epoch {row['epoch']}, batch {len(row['batches'])} of {n_steps}"
        step = [self.send(part) for part in batch]
        self.optimizer_.zero_grad(set_to_none=True)
        scale = self.scaler_.get_scale()
        loss = accumulate_gradient(
            self.criterion_, step, self._logits_of_loss, scale, self.ranks_, self.memory_
        )
        parameters = [p for p in self.module_.parameters() if p.grad is not None]
        self.ranks_.add_up(p.grad for p in parameters)
        self.scaler_.unscale_(self.optimizer_)
        named = TeeGenerator(self.get_all_learnable_params())
        self.notify("on_grad_computed", named_parameters=named, batch=step, training=True)
        limit = math.inf if self.clip_norm is None else self.clip_norm
        norm = torch.nn.utils.clip_grad_norm_(parameters, limit)
        # With a scaler, a gradient that overflows is no error: the step is skipped.
        self.guard_.watch(loss, None if self.scaler_.is_enabled() else norm, where)
        self.scaler_.step(self.optimizer_)
        self.scaler_.update()
        return {"loss": loss, "y_pred": None}

    def _logits_of_loss(self, batch: Batch) -> Tensor:
        """Return what the loss is computed of: logits, or the log-probabilities of a chain."""
        logits = self.module_logits(batch)
        if self.sampler_.chain is not None:
            logits = self.sampler_.chain.train(logits, batch)
        if self.shift_ is None:
            return logits
        return logits + (self.shift_ if self.shift_.ndim == 1 else self.shift_[batch["item"]])

    def module_logits(self, batch: Batch) -> Tensor:
        """Return the logits of a batch on the device, in the precision of training."""
        with autocast(self.precision, self.device):
            logits: Tensor = self.module_(**module_inputs(batch))
        return logits

    # -- predictions -------------------------------------------------------------------------------

    def predict_proba(self, X: Batcher) -> np.ndarray:
        """Return the logits: which function makes probabilities of them, the task knows."""
        return self.predict_logits(X)

    def predict_logits(
        self,
        batcher: Batcher,
        network: Callable[[Batch], np.ndarray] | None = None,
        *,
        verbose: bool = False,
    ) -> np.ndarray:
        """Return float32 logits of all items, of shape (n_items, n_outputs), in their order.

        A ``network`` gives the logits of a batch in place of the module. The processes that train
        together share out the windows, and all get all logits; if ``verbose``, the first one shows
        how far it is.
        """
        self._set_training(False)
        windows = self.ranks_.own(np.arange(len(batcher.dataset)))
        logits = torch.zeros((batcher.dataset.n_items, self.module_.n_outputs))
        is_on_gpu = network is None and torch.device(self.device).type == "cuda"
        batcher = replace(batcher, device=str(self.device) if is_on_gpu else "cpu")
        attention = own_attention(self.module_) if is_on_gpu else nullcontext()
        with torch.inference_mode(), autocast(self.predict_precision, self.device), attention:
            batches: Iterable[tuple[np.ndarray, Batch]] = batcher.by_length(windows)
            if verbose and self.ranks_.is_first:
                batches = with_progress(batches, batcher.lengths, windows)
            for items, parts in self._collected(batches, network):
                logits[torch.cat(items)] = torch.cat(parts).cpu()
        self.ranks_.add_up([logits])
        return logits.numpy()

    def _collected(
        self,
        batches: Iterable[tuple[np.ndarray, Batch]],
        network: Callable[[Batch], np.ndarray] | None,
    ) -> Iterator[tuple[list[Tensor], list[Tensor]]]:
        """Yield the numbers of the items of some batches, and their logits."""
        items: list[Tensor] = []
        parts: list[Tensor] = []
        n_found = 0
        for _, batch in batches:
            items.append(batch["item"])
            if network is None:
                parts.append(self.module_(**module_inputs(self.send(batch))))
            else:
                parts.append(torch.from_numpy(network(batch)))
            n_found += parts[-1].numel()
            if n_found >= _COLLECTED:
                yield items, parts
                items, parts, n_found = [], [], 0
        if items:
            yield items, parts

    def send(self, batch: Batch) -> Batch:
        """Return a batch on the device, prepared for the module."""
        return to_device(self.module_.prepare(batch), self.device)
