"""The training loop: epochs of optimiser steps, each cut into batches."""

import math
import numbers
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from ..losses import SumsMemory
from ._accumulation import accumulate_gradient, sums_of
from ._batching import Batch, PaddedShape, StepSampler, to_device
from ._callbacks import ctrl_c_told_apart, named_callbacks
from ._chain import TagChain
from ._graphs import StepGraphs, pad_batch, pad_prepared, padded_shape
from ._modules import module_inputs
from ._net import TextNet
from ._progress import FitProgress
from ._runtime import ALONE, LostProcessError, autocast
from ._speedups import compact_embedding, own_attention
from ._training_state import State, restore_state, state_of

# On a GPU, which works while the CPU prepares what is next, asking it for a number makes both wait.
_STEPS_BETWEEN_LOOKS = 32
# A loss above this share of that of the first epoch has not fallen.
_LEARNING = 0.97


class Checkpoint(Protocol):
    """Where the state of a fit is kept."""

    directory: str

    def save(self, state: State) -> None:
        """Replace it."""

    def damaged(self, error: Exception) -> ValueError:
        """Return the error for a state that is of another fit, or of none."""


def train(
    net: TextNet,
    sampler: StepSampler,
    *,
    validate: Callable[[], float] | None = None,
    patience: int | None = None,
    chain: TagChain | None = None,
    shift: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    look_at: int | None = None,
    checkpoint: Checkpoint | None = None,
    state: State | None = None,
) -> None:
    """Train an initialised net; ``net.progress_`` and ``net.history`` say what came of it.

    With several processes all of them have to call it, with the same weights. ``validate`` gives
    the task metric of the validation part, larger is better, after every epoch; with ``patience``,
    so many epochs without improvement end the run and restore the best weights.

    The loss is computed of the log-probabilities of a ``chain``, in place of the logits, and of
    these with a ``shift`` of shape (n_outputs,) or (n_items, n_outputs) added to them. A ``weight``
    of shape (n_items,) or (n_items, n_parts) multiplies that of the items.

    At the end of the epoch ``look_at`` a NotLearningError is raised if the training loss is about
    that of the first epoch.

    A ``checkpoint`` gets the state after every epoch, from the first process alone; ``state`` is
    what it had of a run that this one continues, bit for bit.

    It is a ValueError if loss or gradient stop being finite (the weights are those before that step
    or, with patience, the best ones), or if the state is of another run.
    """
    # The pieces that batches are padded with are looked up, too.
    batcher = sampler.batcher
    pieces = np.append(batcher.dataset.input_ids.values, batcher.pad_id)
    net.ranks_ = sampler.ranks
    try:
        with (
            ctrl_c_told_apart(),
            sampler.ranks.left_on_error(NotFiniteError, NotLearningError),
            compact_embedding(net.module_, pieces),
            own_attention(net.module_),
        ):
            _Run(net, sampler, chain, shift, weight).run(
                validate, patience, look_at, checkpoint, state
            )
    except LostProcessError as lost:
        raise LostProcessError(f"{lost} {_how_to_go_on(net, checkpoint)}") from lost
    finally:
        net.ranks_ = ALONE


class _Run:
    """One training run: what its steps need and nobody after it."""

    def __init__(
        self,
        net: TextNet,
        sampler: StepSampler,
        chain: TagChain | None,
        shift: np.ndarray | None,
        weight: np.ndarray | None,
    ) -> None:
        self.net = net
        self.sampler = sampler
        self.ranks = sampler.ranks
        self.chain = chain
        self.weight = None if weight is None else torch.from_numpy(weight)
        self.shift = None if shift is None else torch.from_numpy(shift).to(net.device)
        net.initialize_optimizer()
        self.optimizer = net.optimizer_
        net.n_steps_ = len(sampler) * net.max_epochs
        is_count = isinstance(net.warmup, numbers.Integral)
        n_warmup = int(net.warmup) if is_count else round(net.warmup * net.n_steps_)
        self.scheduler = make_schedule(self.optimizer, n_warmup, net.n_steps_)
        kind = torch.device(net.device).type
        self.scaler = torch.amp.GradScaler(kind, enabled=net.precision == "fp16")
        self.scaler.scale(torch.zeros((), device=net.device))  # Sets up its scale.
        self.guard = FiniteGuard(self.optimizer, kind != "cuda" or self.scaler.is_enabled())
        memory = net.criterion_.memory
        self.memory = SumsMemory(0 if isinstance(memory, str) else memory)
        self.graphs = None
        if net.uses_graphs:
            self.share = torch.zeros((), device=net.device)
            self.graphs = StepGraphs(self._compute, net.device, self._advance)
            self.longest = int(sampler.batcher.lengths.max())

    def run(
        self,
        validate: Callable[[], float] | None,
        patience: int | None,
        look_at: int | None,
        checkpoint: Checkpoint | None,
        state: State | None,
    ) -> None:
        """Run all epochs that are left; leave the best weights."""
        net, sampler, progress = self.net, self.sampler, self.net.progress_
        progress.max_epochs, progress.patience = net.max_epochs, patience
        if state is not None:
            assert checkpoint is not None  # The state is from there.
            try:
                restore_state(self, state)
            except Exception as error:  # Each part has errors of its own.
                raise checkpoint.damaged(error) from error
        try:
            net.notify("on_train_begin", X=sampler, y=None)
            while not progress.is_over:
                net.notify("on_epoch_begin", dataset_train=sampler, dataset_valid=None)
                self._run_epoch()
                if progress.epoch + 1 == look_at:
                    self._check_learning()
                score = None if validate is None else validate()
                if score is not None:
                    self._record_score("valid_score", score, max)
                net.notify("on_epoch_end", dataset_train=sampler, dataset_valid=None)
                progress.end_epoch(score, net.module_)
                stops = torch.tensor(progress.is_stopped, dtype=torch.long)
                progress.is_stopped = bool(self.ranks.sum(stops))
                if progress.is_over:
                    progress.keep_best(net.module_)
                if checkpoint is not None:
                    saved = state_of(self)
                    if self.ranks.is_first:
                        checkpoint.save(saved)
        finally:
            progress.keep_best(net.module_)
            net.notify("on_train_end", X=sampler, y=None)
            net.drop_training_state()

    def _run_epoch(self) -> None:
        net, progress = self.net, self.net.progress_
        net._set_training(True)
        losses, rates = [], []
        callbacks = [callback for _, callback in named_callbacks(net.callbacks)]
        reads_losses = not all(isinstance(callback, FitProgress) for callback in callbacks)
        net.history.record("lr", self.scheduler.get_last_lr()[0])
        net.history.record("n_texts", self.sampler.n_texts)
        for number, step in enumerate(self.sampler, start=1):
            where = f"epoch {progress.epoch + 1}, batch {number} of {len(self.sampler)}"
            step = [self._sent(batch) for batch in step]
            net.notify("on_batch_begin", batch=step, training=True)
            rates.append(self.scheduler.get_last_lr()[0])
            losses.append(self._step(step, where))
            if reads_losses:  # A GPU is waited for.
                net.history.record_batch("train_loss", losses[-1].item())
                net.history.record_batch("train_batch_size", 1)
            net.notify("on_batch_end", batch=step, training=True, loss=losses[-1])
            if progress.is_stopped and self.ranks.count == 1:
                break
        self.guard.look()
        net.history.record("lr", sum(rates) / len(rates))
        self._record_score("train_loss", torch.stack(losses).mean().item(), min)

    def _check_learning(self) -> None:
        first, *_, last = (row["train_loss"] for row in self.net.history)
        if last > _LEARNING * first:
            raise NotLearningError(f"The training loss fell from {first:.4f} to {last:.4f} only.")

    def _record_score(self, name: str, score: float, best: Callable[..., float]) -> None:
        """Record a score of this epoch, and whether it is better than all before."""
        history = self.net.history
        before = [row[name] for row in history[:-1]]
        history.record(name, score)
        is_best = not before or (score not in before and best(score, *before) == score)
        history.record(f"{name}_best", is_best)

    def _sent(self, batch: Batch) -> Batch:
        """Return a batch with all that a step needs, on the device or padded for a graph."""
        if self.graphs is None:
            return self.net.send(self._prepared(batch))
        shape, pad_id = padded_shape(batch, self.longest), self.sampler.batcher.pad_id
        batch = self.net.module_.prepare(pad_batch(self._prepared(batch, shape), shape, pad_id))
        return pad_prepared(batch, pad_id)

    def _compute(self, batch: Batch) -> Tensor:
        """Leave the clipped gradient of a batch in place; return the loss and the norm before."""
        net = self.net
        parameters = [p for p in net.module_.parameters() if p.requires_grad]
        if grads := [p.grad for p in parameters if p.grad is not None]:
            torch._foreach_zero_(grads)
        is_capturing = torch.cuda.is_current_stream_capturing()
        sums = sums_of(net.criterion_, self._logits(batch), batch)
        if not net.criterion_.separable:
            sums = self.memory(sums, self.share if is_capturing else None)
        loss = net.criterion_.value(sums)
        loss.backward()
        limit = math.inf if net.clip_norm is None else net.clip_norm
        norm = torch.nn.utils.clip_grad_norm_(parameters, limit)
        return torch.stack([loss.detach(), norm.to(loss)])

    def _advance(self) -> None:
        """Count a step of the memory, before the graph that has no counter is launched."""
        if not self.net.criterion_.separable and self.memory.n_steps > 1:
            self.share.fill_(self.memory.advance())

    def _step(self, step: list[Batch], where: str) -> Tensor:
        net = self.net
        if self.graphs is not None and len(step) == 1:
            loss, norm = self.graphs(step[0]).unbind()
            self.guard.watch(loss, norm, where)
            self.optimizer.step()
            self.scheduler.step()
            return loss
        if self.graphs is not None:  # A long text is cut into several batches.
            step = [to_device(batch, net.device) for batch in step]
        # A graph finds gradients where they were.
        self.optimizer.zero_grad(set_to_none=self.graphs is None)
        scale = self.scaler.get_scale()
        loss = accumulate_gradient(
            net.criterion_, step, self._logits, scale, self.ranks, self.memory
        )
        parameters = [p for p in net.module_.parameters() if p.grad is not None]
        self.ranks.add_up(p.grad for p in parameters)
        self.scaler.unscale_(self.optimizer)
        net.notify("on_grad_computed", named_parameters=net.get_all_learnable_params(), batch=step)
        limit = math.inf if net.clip_norm is None else net.clip_norm
        norm = torch.nn.utils.clip_grad_norm_(parameters, limit)
        # With a scaler, a gradient that overflows is no error: the step is skipped.
        self.guard.watch(loss, None if self.scaler.is_enabled() else norm, where)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.scheduler.step()
        return loss

    def _prepared(self, batch: Batch, padded: PaddedShape | None = None) -> Batch:
        if self.weight is not None:
            weight = self.weight[batch["item"]]
            if "weight" in batch:
                given = batch["weight"]
                weight = weight * (given if weight.ndim == 1 else given[:, None])
            batch = batch | {"weight": weight}
        return batch if self.chain is None else self.chain.with_geometry(batch, padded)

    def _logits(self, batch: Batch) -> Tensor:
        with autocast(self.net.precision, self.net.device):
            logits: Tensor = self.net.module_(**module_inputs(batch))
        if self.chain is not None:
            logits = self.chain.train(logits, batch)
        if self.shift is None:
            return logits
        return logits + (self.shift if self.shift.ndim == 1 else self.shift[batch["item"]])


class NotLearningError(ValueError):
    """The training loss has not fallen."""


class NotFiniteError(ValueError):
    """A loss or a gradient is infinite or not a number."""


class FiniteGuard:
    """Keeps an optimiser from taking a step that is not finite, and any step after it.

    A fused one skips steps by itself, as it does for a ``GradScaler``; where the optimiser cannot
    skip any, the guard has to look at once, at every step.
    """

    def __init__(self, optimizer: Any, looks_at_once: bool) -> None:
        self._optimizer = optimizer
        self._every = 1 if looks_at_once else _STEPS_BETWEEN_LOOKS
        self._where: list[str] = []
        self._seen: list[Tensor] = []
        # Zero as long as all steps are finite, and not a number from then on.
        self._fault: Tensor | float = 0.0

    def watch(self, loss: Tensor, norm: Tensor | None, where: str) -> None:
        """Note a step before it is taken; the norm is None if it may be infinite."""
        of_step = torch.stack([loss, loss if norm is None else norm.to(loss)])
        self._where.append(where)
        self._seen.append(of_step)
        if self._every > 1:
            self._fault = (of_step * 0).sum() + self._fault
            self._optimizer.found_inf = (self._fault != 0).float()
        if len(self._seen) >= self._every:
            self.look()

    def look(self) -> None:
        """Raise a NotFiniteError that names the first step so far that was not finite."""
        if not self._seen:
            return
        seen = torch.stack(self._seen).cpu()
        is_finite = seen.isfinite().all(1)
        where, self._where, self._seen = self._where, [], []
        if is_finite.all():
            return
        first = int(is_finite.int().argmin())
        loss = seen[first, 0]
        raise NotFiniteError(
            f"The {'gradient' if loss.isfinite() else 'loss'} is not finite in {where[first]} "
            f"(loss {loss.item()}). The weights of the step before are kept. A smaller lr, a "
            f"longer warmup or precision='fp32' helps most of the time."
        )


def make_schedule(optimizer: Optimizer, n_warmup: int, n_steps: int) -> LambdaLR:
    """Return ``transformers.get_scheduler("linear")``, without the libraries that it imports."""
    return LambdaLR(optimizer, partial(_rate, n_warmup, n_steps))


def _rate(n_warmup: int, n_steps: int, step: int) -> float:
    if step < n_warmup:
        return step / n_warmup
    return max(0, n_steps - step) / max(1, n_steps - n_warmup)


def _how_to_go_on(net: TextNet, checkpoint: Checkpoint | None) -> str:
    if checkpoint is None:
        return "With checkpoint_dir=... it would go on from the last finished epoch."
    epoch = 1 + sum("dur" in row for row in net.history)
    return f"checkpoint_dir={checkpoint.directory!r} goes on from epoch {epoch}."
