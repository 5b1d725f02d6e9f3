"""skdice itself, timed by a callback of the estimator."""

from contextlib import AbstractContextManager
from typing import Any

from skorch.callbacks import Callback

from .._steps import StepClock
from .._tasks import CLIP_NORM, DEFAULT, LR, MAX_LENGTH, WARMUP, WEIGHT_DECAY, Batch, Setup, Task


class _Watch(Callback):
    """Notes the time, the loss and the batches of every step."""

    def __init__(self, clock: StepClock) -> None:
        self.clock = clock
        self.steps: list[list[Batch]] = []

    def on_batch_end(self, net: Any, batch: Any = None, loss: Any = None, **kwargs: Any) -> None:
        self.clock.tick()
        self.clock.losses.append(loss)
        self.steps.append(batch)

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        for step in self.steps:
            self.clock.tokens.append(sum(int(batch["attention_mask"].sum()) for batch in step))


def train(
    task: Task,
    X: Any,
    y: Any,
    n_warmup: int,
    *,
    precision: str,
    loss: str = "ce",
    setup: Setup = DEFAULT,
    watch: AbstractContextManager[Any] | None = None,
) -> tuple[StepClock, list[list[Batch]]]:
    """Fit for an epoch; return what was measured, and the batches of every step."""
    timer = _Watch(StepClock(-(-len(y) // setup.batch_size), n_warmup, watch))
    estimator = task.estimator(
        setup.model,
        loss=loss,
        max_epochs=1,
        batch_size=setup.batch_size,
        lr=LR,
        weight_decay=WEIGHT_DECAY,
        warmup=WARMUP,
        clip_norm=CLIP_NORM,
        max_length=MAX_LENGTH,
        precision=precision,
        device=setup.device,
        random_state=0,
        verbose=0,
        callbacks=[timer],
    )
    estimator.fit(X, y)
    return timer.clock, timer.steps
