"""The training and prediction loops: a skorch net whose batches are whole optimiser steps."""

import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import EpochTimer
from torch import Tensor

from ..losses import SumsMemory
from ._accumulation import accumulate_gradient
from ._attention import dropout_after_attention
from ._batching import Batch, Batcher, StepSampler, to_device
from ._callbacks import asks_to_stop
from ._chain import TagChain
from ._compact_embedding import compact_embedding
from ._finite_guard import FiniteGuard
from ._ranks import ALONE
from ._runtime import autocast
from ._schedule import make_schedule
from ._training_state import Progress, State, restore_training_state, training_state

# What is only needed for the next step.
_TRAINING_STATE = (
    "optimizer_",
    "scheduler_",
    "scaler_",
    "guard_",
    "memory_",
    "predicted_",
    "chain_",
    "seen_",
)
_FOR_READING = (
    "net_ is for reading: its history, module_ and other attributes. Fit, predict and set "
    "parameters with the estimator that has it."
)
_MODULE_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "row", "column")


class TextNet(NeuralNet):
    """A skorch net that trains on optimiser steps drawn by a :class:`StepSampler`.

    It keeps skorch's components, history, callbacks and pickling; fitting and prediction are our
    own (:meth:`train`, :meth:`predict_logits`), since skorch's batches, loss averaging and Ctrl-C
    handling do not fit ragged text. skorch's methods for that raise a TypeError.

    Parameters
    ----------
    module, criterion : type
        Classes, never instances: a clone must not share weights.
    head_lr : float or None
        Learning rate of the head; None is ``lr``.
    weight_decay : float
        Not applied to biases and norms.
    warmup : float or int
        A share of all steps, or a number of steps.
    schedule : {"linear", "cosine", "constant"}
        How the learning rate goes on after the warm-up.
    clip_norm : float or None
        Largest norm of the gradient.
    precision, predict_precision : {"fp32", "bf16", "fp16"}
        Of the training steps and of predictions; the loss is always computed in float32.
    **kwargs
        skorch's parameters.
    """

    # While it is trained, the processes that do so together.
    ranks_ = ALONE
    best_epoch_ = 0
    best_predicted_: tuple[bool, ...] = ()

    def __init__(
        self,
        module: type,
        criterion: type,
        *,
        head_lr: float | None = None,
        weight_decay: float = 0.01,
        warmup: float = 0.1,
        schedule: str = "linear",
        clip_norm: float | None = 1.0,
        precision: str = "fp32",
        predict_precision: str = "fp32",
        **kwargs: Any,
    ) -> None:
        self.head_lr = head_lr
        self.weight_decay = weight_decay
        self.warmup = warmup
        self.schedule = schedule
        self.clip_norm = clip_norm
        self.precision = precision
        self.predict_precision = predict_precision
        # A clone passes them itself.
        fixed = {"optimizer": torch.optim.AdamW, "train_split": None, "verbose": 0}
        # What skorch's progress bar counts: a step is one batch.
        fixed["iterator_train__batch_size"] = 1
        super().__init__(module, criterion, **{**fixed, **kwargs})

    @property
    def _default_callbacks(self) -> list[tuple[str, Any]]:
        return [("epoch_timer", EpochTimer())]

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

    def notify(self, method_name: str, **cb_kwargs: Any) -> None:
        """Tell all callbacks; one that raises KeyboardInterrupt ends the fit."""
        getattr(self, method_name)(self, **cb_kwargs)
        for _, callback in self.callbacks_:
            try:
                getattr(callback, method_name)(self, **cb_kwargs)
            except KeyboardInterrupt as error:
                if not asks_to_stop(error):
                    raise
                self.stops_ = True

    def train(
        self,
        sampler: StepSampler,
        *,
        validate: Callable[[], float] | None = None,
        patience: int | None = None,
        predicted: Callable[[Tensor, Tensor], Tensor] | None = None,
        chain: TagChain | None = None,
        resume_from: State | None = None,
        save_state: Callable[[State], None] | None = None,
    ) -> "TextNet":
        """Train the initialised net.

        If several processes do so together, all have to call it, with the same weights.

        Parameters
        ----------
        sampler : StepSampler
        validate : callable, optional
            Gives the task metric of the validation part, larger is better; called every epoch.
        patience : int, optional
            Stop after this many epochs without improvement and restore the best weights.
        predicted : callable, optional
            From the logits and targets of a batch to what is predicted of it, a bool Tensor.
            ``best_predicted_`` has what a batch of the best epoch had.
        chain : TagChain, optional
            Whose log-probabilities the loss is computed of, in place of the logits.
        resume_from : State, optional
            What ``save_state`` was given by a run that this one continues, bit for bit.
        save_state : callable, optional
            Called with the state after every epoch, by the first process alone.

        Raises
        ------
        ValueError
            If loss or gradient stop being finite; the weights are those before that step or, with
            patience, the best ones.
        """
        # The pieces that batches are padded with are looked up, too.
        batcher = sampler.batcher
        pieces = np.append(batcher.dataset.input_ids.values, batcher.pad_id)
        self.best_epoch_, self.best_predicted_ = 0, ()
        self.stops_ = False
        self.ranks_ = sampler.ranks
        self.predicted_, self.chain_ = predicted, chain
        try:
            attention = dropout_after_attention(self.module_)
            with compact_embedding(self.module_, pieces), attention:
                self.initialize_optimizer()
                self._run_epochs(sampler, validate, patience, resume_from, save_state)
        finally:
            self.ranks_ = ALONE
        return self

    def _run_epochs(
        self,
        sampler: StepSampler,
        validate: Callable[[], float] | None,
        patience: int | None,
        resume_from: State | None,
        save_state: Callable[[State], None] | None,
    ) -> None:
        self.n_steps_ = len(sampler) * self.max_epochs
        is_count = isinstance(self.warmup, numbers.Integral)
        n_warmup = int(self.warmup) if is_count else round(self.warmup * self.n_steps_)
        self.scheduler_ = make_schedule(self.optimizer_, self.schedule, n_warmup, self.n_steps_)
        self.scaler_ = torch.amp.GradScaler(
            torch.device(self.device).type, enabled=self.precision == "fp16"
        )
        self.scaler_.scale(torch.zeros((), device=self.device))  # Sets up its scale.
        is_gpu = torch.device(self.device).type == "cuda"
        self.guard_ = FiniteGuard(self.optimizer_, not is_gpu or self.scaler_.is_enabled())
        memory = self.criterion_.memory
        self.memory_ = SumsMemory(0 if isinstance(memory, str) else memory)
        progress = Progress(self.max_epochs, patience)
        if resume_from is not None:
            restore_training_state(self, progress, sampler.rng, resume_from)
        self.notify("on_train_begin", X=sampler, y=None)
        try:
            while not progress.is_over:
                self.notify("on_epoch_begin", dataset_train=sampler, dataset_valid=None)
                self._run_epoch(sampler, progress.epoch + 1)
                score = None
                if validate is not None:
                    score = validate()
                    self._record_score("valid_score", score, max)
                self.notify("on_epoch_end", dataset_train=sampler, dataset_valid=None)
                seen = None if self.seen_ is None else self.ranks_.sum(self.seen_.long()) > 0
                progress.end_epoch(score, self.module_, [] if seen is None else seen.tolist())
                stops = self.ranks_.sum(torch.tensor(self.stops_, dtype=torch.long))
                progress.is_stopped = bool(stops)
                if progress.is_over:
                    progress.keep_best(self.module_)
                if save_state is not None:
                    state = training_state(self, progress, sampler.rng)
                    if self.ranks_.is_first:
                        save_state(state)
        finally:
            progress.keep_best(self.module_)
            self.best_epoch_ = progress.best_epoch
            self.best_predicted_ = tuple(progress.best_predicted)
            self.notify("on_train_end", X=sampler, y=None)
            self._drop_training_state()

    def _run_epoch(self, sampler: StepSampler, epoch: int) -> None:
        self._set_training(True)
        losses, rates = [], []
        self.history.record("lr", self.scheduler_.get_last_lr()[0])
        self.seen_: Tensor | None = None
        for number, step in enumerate(sampler, start=1):
            where = f"epoch {epoch}, batch {number} of {len(sampler)}"
            step = [to_device(batch, self.device) for batch in step]
            self.notify("on_batch_begin", batch=step, training=True)
            rates.append(self.scheduler_.get_last_lr()[0])
            losses.append(self._train_step(step, where))
            if self.callbacks:  # Some show it; on a GPU it is waited for.
                self.history.record_batch("train_loss", losses[-1].item())
                self.history.record_batch("train_batch_size", 1)
            self.notify("on_batch_end", batch=step, training=True, loss=losses[-1])
            if self.stops_ and self.ranks_.count == 1:
                break
        self.guard_.look()
        self.history.record("lr", sum(rates) / len(rates))
        self._record_score("train_loss", torch.stack(losses).mean().item(), min)

    def _record_score(self, name: str, score: float, best: Callable[..., float]) -> None:
        """Record a score of this epoch, and whether it is better than all before."""
        before = [row[name] for row in self.history[:-1]]
        self.history.record(name, score)
        is_best = not before or (score not in before and best(score, *before) == score)
        self.history.record(f"{name}_best", is_best)

    def _train_step(self, step: list[Batch], where: str) -> Tensor:
        self.optimizer_.zero_grad(set_to_none=True)
        scale = self.scaler_.get_scale()
        loss = accumulate_gradient(
            self.criterion_, step, self._logits, scale, self.ranks_, self.memory_
        )
        parameters = [p for p in self.module_.parameters() if p.grad is not None]
        self.ranks_.add_up(p.grad for p in parameters)
        self.scaler_.unscale_(self.optimizer_)
        self.notify(
            "on_grad_computed", named_parameters=self.get_all_learnable_params(), batch=step
        )
        limit = math.inf if self.clip_norm is None else self.clip_norm
        norm = torch.nn.utils.clip_grad_norm_(parameters, limit)
        # With a scaler, a gradient that overflows is no error: the step is skipped.
        self.guard_.watch(loss, None if self.scaler_.is_enabled() else norm, where)
        self.scaler_.step(self.optimizer_)
        self.scaler_.update()
        self.scheduler_.step()
        return loss

    def _is_for_reading(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(_FOR_READING)

    fit = partial_fit = predict = predict_proba = _is_for_reading
    forward = forward_iter = infer = set_params = _is_for_reading

    def predict_logits(
        self, batcher: Batcher, network: Callable[[Batch], np.ndarray] | None = None
    ) -> np.ndarray:
        """Return float32 logits of all items, of shape (n_items, n_outputs), in their order.

        The processes that train together share out the windows, and all get all logits.

        Parameters
        ----------
        batcher : Batcher
        network : callable, optional
            From a batch to the logits of its items, in place of the module.
        """
        network = self._run_module if network is None else network
        self._set_training(False)
        windows = self.ranks_.own(np.arange(len(batcher.dataset)))
        shape = (batcher.dataset.n_items, self.module_.n_outputs)
        logits = np.zeros(shape, dtype=np.float32)
        with torch.inference_mode(), autocast(self.predict_precision, self.device):
            for _, batch in batcher.by_length(windows):
                logits[batch["item"].numpy()] = network(batch)
        self.ranks_.add_up([torch.from_numpy(logits)])
        return logits

    def _run_module(self, batch: Batch) -> np.ndarray:
        part = self.module_(**_module_inputs(to_device(batch, self.device)))
        logits: np.ndarray = part.cpu().numpy()
        return logits

    def _logits(self, batch: Batch) -> Tensor:
        with autocast(self.precision, self.device):
            logits: Tensor = self.module_(**_module_inputs(batch))
        if self.chain_ is not None:
            logits = self.chain_.train(logits, batch)
        if self.predicted_ is not None:
            seen = self.predicted_(logits.detach(), batch["target"])
            self.seen_ = seen if self.seen_ is None else self.seen_ | seen
        return logits

    def _drop_training_state(self) -> None:
        """Make a pickle as large as the weights."""
        self.module_.zero_grad(set_to_none=True)
        for name in _TRAINING_STATE:
            setattr(self, name, None)


def _module_inputs(batch: Batch) -> dict[str, Tensor]:
    return {name: batch[name] for name in _MODULE_INPUTS if name in batch}
