"""Learning rates against those of transformers."""

import pytest
import torch
from transformers import get_scheduler

from skdice.nn._schedule import make_schedule

NAMES = {"linear": "linear", "cosine": "cosine", "constant": "constant_with_warmup"}


@pytest.mark.parametrize("schedule", NAMES)
@pytest.mark.parametrize("n_warmup, n_steps", [(0, 7), (3, 10), (1, 1), (5, 5), (8, 5)])
def test_rates(schedule, n_warmup, n_steps):
    optimizers = [torch.optim.SGD([torch.zeros(1)], lr=0.3) for _ in range(2)]
    ours = make_schedule(optimizers[0], schedule, n_warmup, n_steps)
    theirs = get_scheduler(NAMES[schedule], optimizers[1], n_warmup, n_steps)
    for _ in range(n_steps):
        assert ours.get_last_lr() == pytest.approx(theirs.get_last_lr(), abs=1e-12)
        for optimizer, scheduler in zip(optimizers, (ours, theirs)):
            optimizer.step()
            scheduler.step()
