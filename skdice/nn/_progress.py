"""What a fit shows while it runs: a progress bar, or a line an epoch."""

import sys
import time
from typing import Any

from skorch.callbacks import Callback


def is_terminal() -> bool:
    """Whether someone is watching."""
    return sys.stderr.isatty()


class FitProgress(Callback):
    """Show epoch, loss and task metric on the standard error stream.

    In a terminal that is one tqdm bar over all optimiser steps. Elsewhere (log files, notebooks,
    which keep it when they are exported) it is a line an epoch.
    """

    def __init__(self, description: str, metric: str) -> None:
        self.description = description
        self.metric = metric

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        from tqdm import tqdm

        # Epochs that an earlier process trained count as done.
        n_done = net.n_steps_ // net.max_epochs * len(net.history)
        self.bar_ = tqdm(
            total=net.n_steps_,
            initial=n_done,
            desc=self.description,
            unit="step",
            disable=not is_terminal(),
        )

    def on_epoch_begin(self, net: Any, **kwargs: Any) -> None:
        self.began_ = time.perf_counter()

    def on_batch_end(self, net: Any, training: bool = True, **kwargs: Any) -> None:
        if training:
            self.bar_.update()

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        row = net.history[-1]
        shown = {"epoch": f"{row['epoch']}/{net.max_epochs}", "loss": f"{row['train_loss']:.4f}"}
        if "valid_score" in row:
            shown[self.metric] = f"{row['valid_score']:.4f}"
        self.bar_.set_postfix(shown)
        if self.bar_.disable:
            facts = ", ".join(f"{name} {value}" for name, value in shown.items())
            seconds = time.perf_counter() - self.began_
            sys.stderr.write(f"{self.description}: {facts} ({seconds:.1f} s)\n")

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        self.bar_.close()
        del self.bar_, self.began_
