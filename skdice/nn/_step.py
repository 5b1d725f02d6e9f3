"""An optimiser step: its exact gradient, however it is cut, and all that only steps need."""

import json
import math
import numbers
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..losses import CombinedLoss, Loss, SumsMemory
from ._batching import Batch, StepSampler, to_device
from ._graphs import StepGraphs, pad_prepared
from ._modules import TextModule
from ._runtime import ALONE, Ranks, autocast, generators_of

AnyLoss = Loss | CombinedLoss
Forward = Callable[[Batch], Tensor]
# The target and the weights of a batch.
Target = tuple[Any, Tensor | None]
# What the loss of a step reads of a batch: its sums or, if sums of batches do not add up, logits,
# targets and weights of each part of the loss.
Output = list[tuple[Any, ...]]
# A GPU computes while the CPU prepares the next steps. It is asked for numbers this rarely, since
# both wait for each other then.
_STEPS_BETWEEN_LOOKS = 32


class NotFiniteError(ValueError):
    """A loss or a gradient is infinite or not a number."""


@dataclass(eq=False, repr=False, kw_only=True)
class Steps:
    """Takes the optimiser steps of one training; it is made when the training begins.

    The optimizer has the parameters of the module as they are then. Its rates rise for the
    ``warmup``, a share or a number of the ``n_steps`` of the whole training, and fall to 0. If
    these do not fit in before the ``deadline``, ``n_steps`` become those that do.
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
    deadline: float = math.inf  # of the clock time.monotonic
    is_stopped: bool = False  # whether a callback or the deadline has ended the training

    def __post_init__(self) -> None:
        sampler, kind = self.sampler, torch.device(self.device).type
        self.ranks, self.n_planned = sampler.ranks, self.n_steps
        self.began, self.n_taken = time.monotonic(), 0
        for group in self.optimizer.param_groups:
            group["initial_lr"] = group["lr"]
        self._parameters = list(self.module.parameters())
        shift = sampler.shift
        self._shift = None if shift is None else torch.from_numpy(shift).to(self.device)
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
        """Set the learning rates for the next step: the schedule "linear" of transformers.

        The time that steps take is measured after 4 of them, and again after 8, 16, and so on.
        """
        n = self.n_taken
        if self.deadline < math.inf and n >= 4 and not n & (n - 1):
            now = time.monotonic()
            n_left = max(0.0, self.deadline - now) * n / max(now - self.began, 1e-9)
            self.n_steps = min(self.ranks.gather(min(n_done + int(n_left), self.n_planned)))
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
        self.n_taken += 1
        step = [self.module.prepare(batch) for batch in step]
        if self._graphs is not None and len(step) == 1:
            prepared = pad_prepared(step[0], self.sampler.batcher.pad_id)
            loss, norm = self._graphs(prepared).unbind()
            self.guard.watch(loss, norm, where)
            self.optimizer.step()
            return loss
        step = [to_device(batch, self.device) for batch in step]
        self.optimizer.zero_grad(set_to_none=self._graphs is None)
        scale, memory = self._scaler.get_scale(), self._memory
        loss = accumulate_gradient(self.criterion, step, self._logits, memory, scale, self.ranks)
        if self.ranks.count > 1:
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
        # A graph finds the gradients of the step before in their place.
        self.optimizer.zero_grad(set_to_none=False)
        memory, share = self._memory, self._share if in_graph else None
        loss = accumulate_gradient(self.criterion, [batch], self._logits, memory, share=share)
        norm = torch.nn.utils.clip_grad_norm_(self._parameters, self.clip_norm)
        return torch.stack([loss, norm.to(loss)])

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
        states = [generator.get_state() for generator in generators_of(self.device)]
        return {
            "optimizer_": self.optimizer.state_dict(),
            "scaler_": self._scaler.state_dict(),
            "memory_": self._memory.state_dict(),
            "rng": json.dumps(self.sampler.rng.bit_generator.state),
            "torch_rng": [self.ranks.gather(state) for state in states],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state_dict` returned; each process from its own part."""
        self.optimizer.load_state_dict(state["optimizer_"])
        self._scaler.load_state_dict(state["scaler_"])
        self._memory.load_state_dict(state["memory_"])
        self.sampler.rng.bit_generator.state = json.loads(state["rng"])
        for generator, part in zip(generators_of(self.device), state["torch_rng"]):
            generator.set_state(part[self.ranks.index].clone())


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


def accumulate_gradient(
    loss: AnyLoss,
    batches: Sequence[Batch],
    forward: Forward,
    memory: SumsMemory,
    scale: float = 1.0,
    ranks: Ranks = ALONE,
    share: Tensor | None = None,
) -> Tensor:
    """Add the gradient of the loss over all batches to the network's; return the loss.

    The result equals that of one large batch. A mean is divided by the weight of the whole step.
    The sums of a set loss are added up first; then every batch runs again, under the random state
    it had before, with the gradient of the loss by its sums. A loss whose sums are not additive
    (OHEM) gets the logits of the whole step instead.

    ``scale`` multiplies the gradient (not the returned loss), for half precision. If several
    processes have batches of the step, the loss covers all of these, and the gradient is a part:
    the gradients of all processes add up to that of the step. ``memory`` has the sums of the steps
    before; a loss that is a mean does not need it. ``share`` is by how much the memory moves if it
    has counted this step already, which must be a single batch then.
    """
    targets: list[Target] = [
        (loss.target(b) if isinstance(loss, CombinedLoss) else b["target"], b.get("weight"))
        for b in batches
    ]
    if len(batches) == ranks.count == 1:
        sums = loss.sums(forward(batches[0]), *targets[0])
        value = loss.value(sums if loss.separable else memory(sums, share))
        (value if scale == 1 else value * scale).backward()
        return value.detach()
    if loss.separable:
        return _weighted_mean(loss, [*zip(batches, targets)], forward, scale, ranks)
    # The graph of a single batch fits into memory, so the batch need not run twice.
    is_kept = len(batches) == 1
    states, outputs = [], []
    generators = generators_of(batches[0]["input_ids"].device)
    with torch.set_grad_enabled(is_kept):
        for batch, target in zip(batches, targets):
            states.append([generator.get_state() for generator in generators])
            outputs.append(_output(loss, forward(batch), *target))
    of_step = _of_sums if loss.additive else _of_logits
    value, gradients = of_step(loss, outputs, scale, ranks, memory)
    for i, (batch, output, gradient) in enumerate(zip(batches, outputs, gradients)):
        if not is_kept:
            for generator, state in zip(generators, states[i]):
                generator.set_state(state)
            output = _output(loss, forward(batch), *targets[i])
        torch.autograd.backward([part[0] for part in output], gradient)
    return value


def _weighted_mean(
    loss: AnyLoss, parts: list[tuple[Batch, Target]], forward: Forward, scale: float, ranks: Ranks
) -> Tensor:
    """Take one pass: targets and weights tell beforehand by what the mean is divided."""
    total = ranks.sum(torch.stack([loss.total_weight(*target) for _, target in parts]).sum())
    shares = []
    for batch, target in parts:
        numerator = loss.sums(forward(batch), *target)[0]
        share = loss.value(torch.stack([numerator, total.to(numerator)]))
        (share * scale).backward()
        shares.append(share.detach())
    return ranks.sum(torch.stack(shares).sum())


def _of_sums(
    loss: AnyLoss, outputs: Sequence[Output], scale: float, ranks: Ranks, memory: SumsMemory
) -> tuple[Tensor, list[list[Tensor]]]:
    """Return the loss of the step and, for each batch, its scaled gradient by the sums."""
    sums = torch.stack([sums.detach() for ((sums,),) in outputs])
    total = ranks.sum(sums.sum(0)).requires_grad_()
    value = loss.value(memory(total))
    (value * scale).backward()
    assert total.grad is not None
    return value.detach(), [[total.grad]] * len(outputs)


def _of_logits(
    loss: AnyLoss, outputs: Sequence[Output], scale: float, ranks: Ranks, memory: SumsMemory
) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
    """Return the loss of the step and, for each batch, its scaled gradient by logits of parts."""
    single = loss.loss if isinstance(loss, CombinedLoss) else loss
    sums, wholes, places = [], [], []
    for batches in zip(*outputs):  # One part of the loss.
        logits, targets, weights = zip(*batches)
        lengths = [len(part) for part in logits]
        start = sum(ranks.gather(sum(lengths))[: ranks.index])
        whole = ranks.join(torch.cat(logits).detach()).requires_grad_()
        weight = None if weights[0] is None else ranks.join(torch.cat(weights))
        sums.append(single.sums(whole, ranks.join(torch.cat(targets)), weight))
        wholes.append(whole)
        places.append((start, lengths))
    value = loss.value(memory(torch.cat(sums)))
    (value * scale).backward()
    gradients: list[Any] = [whole.grad for whole in wholes]
    # The loss may draw random numbers, which differ between processes.
    found = value.detach()
    ranks.copy_first([found, *gradients, *([] if memory.mean is None else [memory.mean])])
    own = [
        gradient[start : start + sum(lengths)].split(lengths)
        for gradient, (start, lengths) in zip(gradients, places)
    ]
    return found, list(zip(*own))


def _output(loss: AnyLoss, logits: Tensor, target: Any, weight: Tensor | None) -> Output:
    of_items = logits, target, weight
    if loss.additive:
        return [(loss.sums(*of_items),)]
    return [*loss.parts(*of_items)] if isinstance(loss, CombinedLoss) else [of_items]
