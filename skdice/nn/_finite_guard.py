"""Stopping a run whose loss or gradient is not finite, without waiting for the device."""

from typing import Any

import torch
from torch import Tensor

# On a GPU, which works while the CPU prepares what is next, asking it for a number makes both wait.
_STEPS_BETWEEN_LOOKS = 32


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
        self._is_bad: Tensor | None = None

    def watch(self, loss: Tensor, norm: Tensor | None, where: str) -> None:
        """Note a step before it is taken; raise an error if it or one before it is not finite.

        ``norm`` is that of the gradient, None if it may be infinite; ``where`` is for the error.
        """
        is_finite = loss.isfinite() if norm is None else loss.isfinite() & norm.isfinite()
        self._where.append(where)
        self._seen.append(torch.stack([loss, is_finite.to(loss)]))
        if self._every > 1:
            is_bad = ~is_finite
            self._is_bad = is_bad if self._is_bad is None else self._is_bad | is_bad
            self._optimizer.found_inf = self._is_bad.float()
        if len(self._seen) >= self._every:
            self.look()

    def look(self) -> None:
        """Raise a NotFiniteError that names the first step so far that was not finite."""
        if not self._seen:
            return
        losses, is_finite = torch.stack(self._seen).cpu().unbind(1)
        where, self._where, self._seen = self._where, [], []
        if is_finite.all():
            return
        first = int(is_finite.argmin())
        loss = losses[first]
        raise NotFiniteError(
            f"The {'gradient' if loss.isfinite() else 'loss'} is not finite in {where[first]} "
            f"(loss {loss.item()}). The weights of the step before are kept. A smaller lr, a "
            f"longer warmup or precision='fp32' helps most of the time."
        )
