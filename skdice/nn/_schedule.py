"""The learning rate of each step."""

import numbers
from functools import partial
from typing import Any

from skorch.callbacks import LRScheduler
from torch.optim.lr_scheduler import LambdaLR


class LinearSchedule(LRScheduler):
    """Raises the rates of a net step by step for its ``warmup``, and lowers them to 0 at its end.

    That is ``transformers.get_scheduler("linear")``, without the libraries that it imports. How
    many steps there are is known when the training begins, and how many are done is in the history.
    """

    def __init__(self) -> None:
        super().__init__(LambdaLR, event_name=None, step_every="batch")

    def on_train_begin(self, net: Any, X: Any = None, **kwargs: Any) -> None:
        n_steps = len(X) * net.max_epochs
        is_count = isinstance(net.warmup, numbers.Integral)
        n_warmup = int(net.warmup) if is_count else round(net.warmup * n_steps)
        rate = partial(_rate, n_warmup, n_steps)
        for group in net.optimizer_.param_groups:
            group.setdefault("initial_lr", group["lr"])
        n_done = sum(row["train_batch_count"] for row in net.rows_of_run)
        self.lr_scheduler_: Any = LambdaLR(net.optimizer_, rate, last_epoch=n_done - 1)

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        self.lr_scheduler_ = None  # It holds the optimizer.


def _rate(n_warmup: int, n_steps: int, step: int) -> float:
    if step < n_warmup:
        return step / n_warmup
    return max(0, n_steps - step) / max(1, n_steps - n_warmup)
