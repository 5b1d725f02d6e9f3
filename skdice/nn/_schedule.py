"""The learning rate from step to step."""

import math
from functools import partial

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR


def make_schedule(optimizer: Optimizer, schedule: str, n_warmup: int, n_steps: int) -> LambdaLR:
    """Return a scheduler that raises the learning rates from 0, and then does as its name says.

    The rates are those of ``transformers.get_scheduler``, which imports the Trainer's libraries.

    Parameters
    ----------
    optimizer : Optimizer
    schedule : {"linear", "cosine", "constant"}
        Down to 0 on a line or along half a cosine, or not at all.
    n_warmup : int
        Steps in which the rates rise.
    n_steps : int
    """
    return LambdaLR(optimizer, partial(_factor, schedule, n_warmup, n_steps))


def _factor(schedule: str, n_warmup: int, n_steps: int, step: int) -> float:
    if step < n_warmup:
        return step / n_warmup
    if schedule == "constant":
        return 1.0
    to_go = max(0, n_steps - step) / max(1, n_steps - n_warmup)
    return to_go if schedule == "linear" else (1 - math.cos(math.pi * to_go)) / 2
