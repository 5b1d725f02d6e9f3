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
the memory of the loss and all generators, of every process: :class:`skdice.nn._train.Training`.
"""

import copy
import math
import numbers
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import EpochTimer
from skorch.utils import TeeGenerator
from torch import Tensor
from tqdm.auto import tqdm

from ..losses import Loss, SumsMemory
from ._accumulation import accumulate_gradient, target_of
from ._batching import Batch, Batcher, StepSampler, to_device
from ._graphs import StepGraphs, pad_prepared
from ._runtime import ALONE, autocast, set_generator_states
from ._speedups import compact_embedding, own_attention
from ._train import HIDES_BARS, FitProgress, named_callbacks

# On a GPU, which works while the CPU prepares what is next, asking it for a number makes both wait.
_STEPS_BETWEEN_LOOKS = 32
# Before the bar of a prediction.
_BAR_SECONDS = 5.0


class NotFiniteError(ValueError):
    """A loss or a gradient is infinite or not a number."""


class _EndOfFit(BaseException):
    """A callback has ended the fit."""


class _CtrlC(KeyboardInterrupt):
    """From the keyboard, not from a callback that ends a fit as skorch's do."""


class Begun(NamedTuple):
    """A module that is made already, and the states of torch's generators after that."""

    module: Any
    generators: list[Tensor]


def features_of(
    module: Any, batcher: Batcher, rows: np.ndarray, precision: str, device: str
) -> np.ndarray:
    """Return what the head of a module would read of some rows, before anything is learned."""
    module.eval()
    found: list[Any] = [None] * len(rows)
    place = {row: i for i, row in enumerate(rows.tolist())}
    with torch.inference_mode(), autocast(precision, device):
        for windows, batch in batcher.by_length(rows):
            features = module.features(to_device(module.prepare(batch), device))
            for window, row in zip(windows.tolist(), features.float().cpu().numpy()):
                found[place[window]] = row
    return np.stack(found)


class TextNet(NeuralNet):
    """A skorch net of a transformer.

    ``fit`` and ``partial_fit`` take a :class:`StepSampler`, :meth:`predict_logits` a
    :class:`Batcher`. Its parameters are those of the estimators and of skorch. ``module`` is a
    class, since a clone must not share weights; of the ``loss``, which is always computed in
    float32, ``criterion_`` is a copy. ``best_epoch_`` is the epoch of the weights that a
    :class:`Training` has kept. If there is a module already, ``begun``, it is not made anew.
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
        begun: Begun | None = None,
        **kwargs: Any,
    ) -> None:
        self.loss = loss
        self.head_lr = head_lr
        self.weight_decay = weight_decay
        self.warmup = warmup
        self.clip_norm = clip_norm
        self.precision = precision
        self.predict_precision = predict_precision
        self.begun = begun
        # A clone passes them itself.
        fixed = {"optimizer": torch.optim.AdamW, "train_split": None, "verbose": 0}
        # What skorch's progress bar counts: a step is one batch.
        fixed["iterator_train__batch_size"] = 1
        super().__init__(module, **{"criterion": type(loss), **fixed, **kwargs})

    @property
    def _default_callbacks(self) -> list[tuple[str, Any]]:
        return [("epoch_timer", EpochTimer())]

    def initialize_module(self) -> "TextNet":
        """Make the module, or take the one that has been begun."""
        if self.begun is None:
            super().initialize_module()
        else:
            self.module_, generators = self.begun
            set_generator_states(self.device, generators)
            self.begun = None
        return self

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

    def _set_rates(self, n_done: int) -> None:
        """Raise the rates for the ``warmup``, then lower them to 0: transformers' "linear"."""
        n_steps = self.sampler_.n_steps * self.max_epochs
        is_count = isinstance(self.warmup, numbers.Integral)
        n_warmup = int(self.warmup) if is_count else round(self.warmup * n_steps)
        share = max(0, n_steps - n_done) / max(1, n_steps - n_warmup)
        if n_done < n_warmup:
            share = n_done / n_warmup
        for group in self.optimizer_.param_groups:
            group["lr"] = group["initial_lr"] * share

    def get_iterator(self, dataset: Any, training: bool = False) -> Any:
        """Return the sampler, whose items are optimiser steps."""
        return dataset

    def partial_fit(
        self, X: StepSampler, y: Any = None, classes: Any = None, **fit_params: Any
    ) -> "TextNet":
        """Train the net for ``max_epochs``; it goes on from the weights that it has.

        With several processes all of them have to call it, with the same weights. It is a
        ValueError if loss or gradient stop being finite; the weights are those before that step.
        """
        if not self.initialized_:
            self.initialize()
        # The pieces that batches are padded with are looked up, too.
        pieces = np.append(X.batcher.dataset.input_ids.values, X.batcher.pad_id)
        self.ranks_ = X.ranks
        try:
            with (
                _ctrl_c_told_apart(),
                compact_embedding(self.module_, pieces),
                own_attention(self.module_),
            ):
                self.notify("on_train_begin", X=X, y=y)
                n_done = len(self.history) - self.n_rows_before_
                # A fit that is ended before its first step makes that one.
                n_left = 0 if self.is_stopped_ and n_done else self.max_epochs - n_done
                try:
                    self.fit_loop(X, y, epochs=n_left, **fit_params)
                except _EndOfFit:
                    pass
                finally:
                    self.notify("on_train_end", X=X, y=y)
        finally:
            self.ranks_ = ALONE
            self.drop_training_state()
        return self

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """Set up what the steps of a run need and nobody after it."""
        self.is_stopped_ = False
        self.n_rows_before_ = len(self.history)  # Those that are added are of this run.
        self.sampler_: Any = X
        self.shift_ = None if X.shift is None else torch.from_numpy(X.shift).to(self.device)
        self.initialize_optimizer()  # Of the parameters as they are now.
        for group in self.optimizer_.param_groups:
            group["initial_lr"] = group["lr"]
        kind = torch.device(self.device).type
        self.scaler_: Any = torch.amp.GradScaler(kind, enabled=self.precision == "fp16")
        self.scaler_.scale(torch.zeros((), device=self.device))  # Sets up its scale.
        looks_at_once = kind != "cuda" or self.scaler_.is_enabled()
        every = 1 if looks_at_once else _STEPS_BETWEEN_LOOKS
        self.guard_: Any = FiniteGuard(self.optimizer_, every)
        memory = self.criterion_.memory
        self.memory_: Any = SumsMemory(0 if isinstance(memory, str) else memory)
        self.graphs_: Any = None
        self.share_: Any = None
        if X.has_few_shapes:
            self.share_ = torch.zeros((), device=self.device)
            self.graphs_ = StepGraphs(self._compute_step, self.device, self._advance_memory)

    def drop_training_state(self) -> None:
        """Drop what only the next step would need, so that a pickle is as large as the weights."""
        self.module_.zero_grad(set_to_none=True)
        self.optimizer_ = self.scaler_ = self.guard_ = self.memory_ = None
        self.sampler_ = self.shift_ = self.graphs_ = self.share_ = None

    def notify(self, method_name: str, **cb_kwargs: Any) -> None:
        """Tell all callbacks; one that raises KeyboardInterrupt, as skorch's do, ends the fit."""
        getattr(self, method_name)(self, **cb_kwargs)
        for _, callback in self.callbacks_:
            try:
                getattr(callback, method_name)(self, **cb_kwargs)
            except _CtrlC:
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
        rows_of_run = history[self.n_rows_before_ :]
        n_done = sum(row.get(f"{prefix}_batch_count", 0) for row in rows_of_run)
        self._set_rates(n_done)
        history.record("lr", groups[0]["lr"])
        history.record("n_texts", iterator.n_texts)
        for step in iterator:
            self.notify("on_batch_begin", batch=step, training=training)
            rates.append(groups[0]["lr"])
            outcome = step_fn(step, **fit_params)
            losses.append(outcome["loss"])
            self._set_rates(n_done + len(losses))
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
        row, n_steps = self.history[-1], self.sampler_.n_steps
        where = f"epoch {row['epoch']}, batch {len(row['batches'])} of {n_steps}"
        if self.graphs_ is not None and len(batch) == 1:
            (part,) = batch
            prepared = pad_prepared(self.module_.prepare(part), self.sampler_.batcher.pad_id)
            loss, norm = self.graphs_(prepared).unbind()
            self.guard_.watch(loss, norm, where)
            self.optimizer_.step()
            return {"loss": loss, "y_pred": None}
        step = [to_device(self.module_.prepare(part), self.device) for part in batch]
        # A graph finds the gradients of the step before in their place.
        self.optimizer_.zero_grad(set_to_none=self.graphs_ is None)
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

    def _compute_step(self, batch: Batch, in_graph: bool) -> Tensor:
        """Leave the clipped gradient of a batch in place; return its loss and the norm before."""
        parameters = [p for p in self.module_.parameters() if p.requires_grad]
        if gradients := [p.grad for p in parameters if p.grad is not None]:
            torch._foreach_zero_(gradients)
        logits, target = self._logits_of_loss(batch), target_of(self.criterion_, batch)
        sums = self.criterion_.sums(logits, target, batch.get("weight"))
        if not self.criterion_.separable:
            # A graph has no counter of steps: the share is a number on the GPU.
            sums = self.memory_(sums, self.share_ if in_graph else None)
        loss = self.criterion_.value(sums)
        loss.backward()
        limit = math.inf if self.clip_norm is None else self.clip_norm
        norm = torch.nn.utils.clip_grad_norm_(parameters, limit)
        return torch.stack([loss.detach(), norm.to(loss)])

    def _advance_memory(self) -> None:
        """Count a step of the memory before its graph is launched."""
        if self.share_ is not None and not self.criterion_.separable and self.memory_.n_steps > 1:
            self.share_.fill_(self.memory_.advance())

    def _logits_of_loss(self, batch: Batch) -> Tensor:
        """Return what the loss is computed of: logits, or the log-probabilities of a chain."""
        with autocast(self.precision, self.device):
            logits: Tensor = self.module_(**batch)
        if self.sampler_.chain is not None:
            logits = self.sampler_.chain.train(logits, batch)
        if self.shift_ is None:
            return logits
        return logits + (self.shift_ if self.shift_.ndim == 1 else self.shift_[batch["item"]])

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
        lengths = batcher.dataset.input_ids.lengths
        windows = np.arange(len(lengths))[self.ranks_.index :: self.ranks_.count]
        device = "cpu" if network is not None else str(self.device)
        # They are copied from a GPU once: each copy waits for it.
        n_items = int(batcher.dataset.item_offsets[-1])
        logits = torch.zeros((n_items, self.module_.n_outputs), device=device)
        is_on_gpu = torch.device(device).type == "cuda"
        batcher = replace(batcher, device=device)
        bar = tqdm(
            total=int(lengths[windows].sum()),
            desc="predict",
            unit="piece",
            unit_scale=True,
            delay=_BAR_SECONDS,
            leave=False,
            disable=HIDES_BARS if verbose and self.ranks_.index == 0 else True,
        )
        attention = own_attention(self.module_) if is_on_gpu else nullcontext()
        precision = autocast(self.predict_precision, self.device)
        with bar, torch.inference_mode(), precision, attention:
            for part, batch in batcher.by_length(windows):
                if network is None:
                    batch = to_device(self.module_.prepare(batch), self.device)
                    logits[batch["item"]] = self.module_(**batch)
                else:
                    logits[batch["item"]] = torch.from_numpy(network(batch))
                bar.update(int(lengths[part].sum()))
        logits = logits.cpu()
        if self.ranks_.count > 1:
            self.ranks_.add_up([logits])
        return logits.numpy()


@dataclass(eq=False, repr=False)
class FiniteGuard:
    """Keeps an optimiser from taking a step that is not finite, and any step after it.

    A fused one skips steps by itself, as it does for a ``GradScaler``; where the optimiser cannot
    skip any, the guard has to look at once, at every step.
    """

    optimizer: Any
    every: int  # how many steps it looks at together
    _seen: list[tuple[str, Tensor]] = field(default_factory=list)
    # Zero as long as all steps are finite, and not a number from then on.
    _fault: Tensor | float = 0.0

    def watch(self, loss: Tensor, norm: Tensor | None, where: str) -> None:
        """Note a step before it is taken; the norm is None if it may be infinite."""
        of_step = torch.stack([loss, loss if norm is None else norm.to(loss)])
        self._seen.append((where, of_step))
        if self.every > 1:
            self._fault = (of_step * 0).sum() + self._fault
            self.optimizer.found_inf = (self._fault != 0).float()
        if len(self._seen) >= self.every:
            self.look()

    def look(self) -> None:
        """Raise a NotFiniteError that names the first step so far that was not finite."""
        if not self._seen:
            return
        where, steps = zip(*self._seen)
        self._seen, seen = [], torch.stack(steps).cpu()
        is_finite = seen.isfinite().all(1)
        if is_finite.all():
            return
        first = int(is_finite.int().argmin())
        loss = seen[first, 0]
        raise NotFiniteError(
            f"The {'gradient' if loss.isfinite() else 'loss'} is not finite in {where[first]} "
            f"(loss {loss.item()}). The weights of the step before are kept. A smaller lr, a "
            f"longer warmup or precision='fp32' helps most of the time."
        )


@contextmanager
def _ctrl_c_told_apart() -> Iterator[None]:
    """Raise :class:`_CtrlC` for Ctrl-C inside the block, as far as Python's own handler is set."""

    def stop(*args: Any) -> None:
        raise _CtrlC

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
