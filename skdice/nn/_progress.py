"""What fits and predictions show while they run: a bar or, where none can be redrawn, lines."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from skorch.callbacks import Callback
from tqdm import tqdm

from ._batching import Batch

# Before the bar of a prediction.
_BAR_SECONDS = 5.0


class FitProgress(Callback):
    """Show epoch, loss and task metric on the standard error stream.

    In a terminal that is one tqdm bar over all optimiser steps. Elsewhere (log files, notebooks,
    which keep it when they are exported) it is a line an epoch.
    """

    def __init__(self, description: str, metric: str) -> None:
        self.description = description
        self.metric = metric

    def on_train_begin(self, net: Any, X: Any = None, **kwargs: Any) -> None:
        self.bar_ = tqdm(
            total=len(X) * net.max_epochs,
            # Epochs that an earlier process trained count as done.
            initial=len(X) * len(net.rows_of_run),
            desc=self.description,
            unit="step",
            disable=not sys.stderr.isatty(),
        )

    def on_batch_end(self, net: Any, **kwargs: Any) -> None:
        self.bar_.update()

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        row = net.history[-1]
        shown = {"epoch": f"{row['epoch']}/{net.max_epochs}", "loss": f"{row['train_loss']:.4f}"}
        if "valid_score" in row:
            shown[self.metric] = f"{row['valid_score']:.4f}"
        self.bar_.set_postfix(shown)
        if self.bar_.disable:
            facts = ", ".join(f"{name} {value}" for name, value in shown.items())
            sys.stderr.write(f"{self.description}: {facts} ({row['dur']:.1f} s)\n")
            sys.stderr.flush()

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        self.bar_.close()
        del self.bar_


def with_progress(
    batches: Iterable[tuple[np.ndarray, Batch]], lengths: np.ndarray, windows: np.ndarray
) -> Iterator[tuple[np.ndarray, Batch]]:
    """Yield some windows and their batch; in a terminal a bar shows the share of all pieces."""
    with tqdm(
        total=int(lengths[windows].sum()),
        desc="predict",
        unit="piece",
        unit_scale=True,
        delay=_BAR_SECONDS,
        leave=False,
        disable=not sys.stderr.isatty(),
    ) as bar:
        for part, batch in batches:
            yield part, batch
            bar.update(int(lengths[part].sum()))
