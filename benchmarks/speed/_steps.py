"""What is measured of a training run: the time of its steps and what they were about."""

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor


class StepClock:
    """Times the optimiser steps of a run, all but the first ones; ``watch`` is entered meanwhile.

    ``tokens`` are the real ones of each step: pieces, special ones included and padding left out;
    ``losses`` those of each step, where the contender tells them.
    """

    def __init__(
        self, n_steps: int, n_warmup: int, watch: AbstractContextManager[Any] | None = None
    ) -> None:
        if not 1 <= n_warmup < n_steps:
            raise ValueError(f"n_warmup must be in the range [1, {n_steps}). Got {n_warmup}.")
        self.n_steps = n_steps
        self.n_warmup = n_warmup
        self.tokens: list[int] = []
        self.losses: list[Tensor] = []
        self._n_done = 0
        self._watch = watch or nullcontext()
        self._start = self._end = self._handed_over = 0.0

    def tick(self) -> None:
        """Note that a step is done; the device is waited for where the clock starts and ends."""
        self._n_done += 1
        if self._n_done == self.n_warmup:
            self._start = _now()
            self._watch.__enter__()
        elif self._n_done == self.n_steps:
            self._handed_over = time.perf_counter()
            self._end = _now()
            self._watch.__exit__(None, None, None)

    def measured(self) -> dict[str, Any]:
        """Return the speed of the timed steps, and the tokens of the whole run."""
        if not self._n_done == len(self.tokens) == self.n_steps:
            raise RuntimeError(
                f"A run of {self.n_steps} steps made {self._n_done} of them, with the tokens of "
                f"{len(self.tokens)}."
            )
        seconds = self._end - self._start
        timed = sum(self.tokens[self.n_warmup :])
        return {
            "tokens/s": timed / seconds,
            "seconds": seconds,
            # Until the last step was handed over: what is left is the device alone.
            "host share": (self._handed_over - self._start) / seconds,
            "timed_tokens": timed,
            "tokens": sum(self.tokens),
            "steps": self.n_steps - self.n_warmup,
        }


def _now() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()
