"""skdice itself, timed where its optimiser ends a step."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from skorch.callbacks import Callback
from torch.optim.optimizer import register_optimizer_step_post_hook

from skdice import DiceTokenTagger

from .._steps import StepClock
from .._tasks import (
    CLIP_NORM,
    DEFAULT,
    LR,
    MAX_LENGTH,
    WARMUP,
    WEIGHT_DECAY,
    Batch,
    Setup,
    Step,
    Task,
)


class _Watch(Callback):
    """Notes the loss and the batches of every step."""

    def __init__(self, clock: StepClock) -> None:
        self.clock = clock
        self.steps: list[list[Batch]] = []

    def on_batch_end(self, net: Any, batch: Any = None, loss: Any = None, **kwargs: Any) -> None:
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
    steps: Sequence[Step] | None = None,
    setup: Setup = DEFAULT,
    watch: AbstractContextManager[Any] | None = None,
    **parameters: Any,
) -> tuple[StepClock, list[list[Batch]]]:
    """Fit for an epoch; return what was measured, and the batches of every step.

    If the ``steps`` are known, the fit has no callback, so that a GPU never waits for the loss of
    a step; then no batches are returned. The ``parameters`` of the estimator are by default those
    for the work of the bare loop.
    """
    clock = StepClock(-(-len(y) // setup.batch_size), n_warmup, watch)
    clock.tokens += [step.n_tokens for step in steps or ()]
    watcher = _Watch(clock)
    plain: dict[str, Any] = {"loss": "ce", "negative_ratio": None}
    if task.estimator is DiceTokenTagger:
        plain |= {"crf": False, "word_shapes": False}
    estimator = task.estimator(
        setup.model,
        max_epochs=1,
        batch_size=setup.batch_size,
        lr=LR,
        weight_decay=WEIGHT_DECAY,
        warmup=WARMUP,
        clip_norm=CLIP_NORM,
        max_length=MAX_LENGTH,
        device=setup.device,
        random_state=0,
        verbose=0,
        callbacks=None if steps else [watcher],
        **{**plain, **parameters},
    )
    hook = register_optimizer_step_post_hook(lambda *_: clock.tick())
    try:
        estimator.fit(X, y)
    finally:
        hook.remove()
    return clock, watcher.steps
