"""The optimiser steps of a training, and all that only they need."""

import json
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..losses import SumsMemory
from ._accumulation import AnyLoss, accumulate_gradient
from ._batching import Batch, StepSampler, to_device
from ._graphs import StepGraphs, pad_prepared
from ._modules import TextModule
from ._runtime import autocast, generator_states, set_generator_states

# A GPU computes while the CPU prepares the next steps. It is asked for numbers this rarely, since
# both wait for each other then.
_STEPS_BETWEEN_LOOKS = 32


class NotFiniteError(ValueError):
    """A loss or a gradient is infinite or not a number."""


@dataclass(eq=False, repr=False, kw_only=True)
class Steps:
    """Takes the optimiser steps of one training; it is made when the training begins.

    The optimizer has the parameters of the module as they are then. Its rates rise for the
    ``warmup``, a share or a number of the ``n_steps`` of the whole training, and fall to 0.
    """

    module: TextModule
    criterion: AnyLoss
    optimizer: torch.optim.Optimizer
    sampler: StepSampler
    device: str
    precision: str
    clip_norm: float
    warmup: float
    n_steps: int
    n_rows_before: int  # rows that the history had before this training
    is_stopped: bool = False  # whether a callback has ended the training

    def __post_init__(self) -> None:
        sampler, kind = self.sampler, torch.device(self.device).type
        self.ranks = sampler.ranks
        for group in self.optimizer.param_groups:
            group["initial_lr"] = group["lr"]
        self._parameters = list(self.module.parameters())
        self._shift = None if sampler.shift is None else torch.from_numpy(sampler.shift)
        if self._shift is not None:
            self._shift = self._shift.to(self.device)
        self._scaler = torch.amp.GradScaler(kind, enabled=self.precision == "fp16")
        self._scaler.scale(torch.zeros((), device=self.device))  # Sets up its scale.
        looks_at_once = kind != "cuda" or self._scaler.is_enabled()
        self.guard = FiniteGuard(self.optimizer, 1 if looks_at_once else _STEPS_BETWEEN_LOOKS)
        memory = self.criterion.memory
        self._memory = SumsMemory(0 if isinstance(memory, str) else memory)
        self._graphs: StepGraphs | None = None
        if sampler.has_few_shapes:
            # A graph cannot count steps: by how much the memory moves is a number on the GPU.
            self._share = torch.zeros((), device=self.device)
            self._graphs = StepGraphs(self._compute, self.device, self._advance_memory)

    def set_rates(self, n_done: int) -> None:
        """Set the learning rates for the next step: the schedule "linear" of transformers."""
        is_count = isinstance(self.warmup, numbers.Integral)
        n_warmup = int(self.warmup) if is_count else round(self.warmup * self.n_steps)
        share = max(0, self.n_steps - n_done) / max(1, self.n_steps - n_warmup)
        if n_done < n_warmup:
            share = n_done / n_warmup
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"] * share

    def take(self, step: list[Batch], where: str, tell: Callable[..., None]) -> Tensor:
        """Take a step, given as a list of batches; return its loss.

        An error says ``where`` it happened. ``tell`` is called when the gradient is complete, with
        the batches on the device as ``batch``, unless the step is a CUDA graph.
        """
        step = [self.module.prepare(batch) for batch in step]
        if self._graphs is not None and len(step) == 1:
            prepared = pad_prepared(step[0], self.sampler.batcher.pad_id)
            loss, norm = self._graphs(prepared).unbind()
            self.guard.watch(loss, norm, where)
            self.optimizer.step()
            return loss
        step = [to_device(batch, self.device) for batch in step]
        loss = self._accumulate(step)
        self.ranks.add_up(p.grad for p in self._parameters if p.grad is not None)
        self._scaler.unscale_(self.optimizer)
        tell(batch=step)
        norm = torch.nn.utils.clip_grad_norm_(self._parameters, self.clip_norm)
        # With a scaler, a gradient that overflows is no error: the step is skipped.
        self.guard.watch(loss, None if self._scaler.is_enabled() else norm, where)
        self._scaler.step(self.optimizer)
        self._scaler.update()
        return loss

    def _compute(self, batch: Batch, in_graph: bool) -> Tensor:
        """Compute the clipped gradient of a batch; return its loss and the norm before."""
        loss = self._accumulate([batch], self._share if in_graph else None)
        norm = torch.nn.utils.clip_grad_norm_(self._parameters, self.clip_norm)
        return torch.stack([loss, norm.to(loss)])

    def _accumulate(self, step: list[Batch], share: Tensor | None = None) -> Tensor:
        """Compute the gradient of a step, times the scale of half precision; return the loss."""
        # A graph finds the gradients of the step before in their place.
        self.optimizer.zero_grad(set_to_none=self._graphs is None)
        scale = self._scaler.get_scale()
        return accumulate_gradient(
            self.criterion, step, self._logits, scale, self.ranks, self._memory, share
        )

    def _logits(self, batch: Batch) -> Tensor:
        """Return the logits that the loss is computed from, or log-probabilities of a chain."""
        with autocast(self.precision, self.device):
            logits: Tensor = self.module(**batch)
        if self.sampler.chain is not None:
            logits = self.sampler.chain.train(logits, batch)
        if self._shift is None:
            return logits
        return logits + (self._shift if self._shift.ndim == 1 else self._shift[batch["item"]])

    def _advance_memory(self) -> None:
        """Count a step of the memory before its graph is launched."""
        if not self.criterion.separable and self._memory.n_steps > 1:
            self._share.fill_(self._memory.advance())

    def state_dict(self) -> dict[str, Any]:
        """Return what the next step depends on, besides weights and history, in all processes."""
        return {
            "optimizer_": self.optimizer.state_dict(),
            "scaler_": self._scaler.state_dict(),
            "memory_": self._memory.state_dict(),
            "rng": json.dumps(self.sampler.rng.bit_generator.state),
            "torch_rng": [self.ranks.gather(part) for part in generator_states(self.device)],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state_dict` returned; each process from its own part."""
        self.optimizer.load_state_dict(state["optimizer_"])
        self._scaler.load_state_dict(state["scaler_"])
        self._memory.load_state_dict(state["memory_"])
        self.sampler.rng.bit_generator.state = json.loads(state["rng"])
        own = [part[self.ranks.index].clone() for part in state["torch_rng"]]
        set_generator_states(self.device, own)


@dataclass(eq=False, repr=False)
class FiniteGuard:
    """Keeps an optimiser from taking a step that is not finite, and any step after it.

    Fused optimisers skip such steps by themselves, as they do for a ``GradScaler``, so that it is
    enough to look at the losses now and then. For any other one the guard looks at every step.
    """

    optimizer: torch.optim.Optimizer
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
            self.optimizer.found_inf = (self._fault != 0).float()  # type: ignore[attr-defined]
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
