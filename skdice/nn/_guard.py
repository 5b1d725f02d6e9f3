"""Steps that are not finite are not taken, and a GPU is seldom asked whether they are."""

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
