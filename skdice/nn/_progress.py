"""What fits and predictions show while they run: a bar or, where none can be redrawn, lines."""

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from skorch.callbacks import Callback
from tqdm import TqdmWarning

from ._batching import Batch

with warnings.catch_warnings():
    # A notebook without ipywidgets gets bars of text. Whoever imports this first is warned.
    warnings.simplefilter("ignore", TqdmWarning)
    from tqdm.auto import tqdm

# Between two lines, and before the bar of a prediction.
_LINE_SECONDS, _BAR_SECONDS = 30.0, 5.0


def is_terminal() -> bool:
    """Whether someone is watching."""
    return sys.stderr.isatty()


class Lines:
    """Writes how far something is, and the time left, after every half minute without a line."""

    def __init__(self, description: str, total: int, n: int = 0) -> None:
        self.description, self.total, self.n, self._n_before = description, total, n, n
        self._began = self._wrote = time.perf_counter()

    def update(self, n: int, facts: Callable[[], str]) -> None:
        """Count what is done; ``facts`` say how far it is, and are asked only for a line."""
        self.n += n
        now = time.perf_counter()
        if now - self._wrote >= _LINE_SECONDS:
            left = (now - self._began) / (self.n - self._n_before) * (self.total - self.n)
            self.write(f"{facts()}, {tqdm.format_interval(left)} left")

    def write(self, facts: str) -> None:
        self._wrote = time.perf_counter()
        sys.stderr.write(f"{self.description}: {facts}\n")
        sys.stderr.flush()


class FitProgress(Callback):
    """Show epoch, loss and task metric on the standard error stream.

    In a terminal that is one tqdm bar over all optimiser steps. Elsewhere (log files, notebooks,
    which keep it when they are exported) it is a line an epoch, and every half minute of one.
    """

    def __init__(self, description: str, metric: str) -> None:
        self.description = description
        self.metric = metric

    def on_train_begin(self, net: Any, X: Any = None, **kwargs: Any) -> None:
        # Epochs that an earlier process trained count as done.
        n_steps, n_done = len(X) * net.max_epochs, len(X) * len(net.rows_of_run)
        self.lines_ = Lines(self.description, n_steps, n_done)
        self.bar_ = tqdm(
            total=n_steps,
            initial=n_done,
            desc=self.description,
            unit="step",
            disable=not is_terminal(),
        )

    def on_epoch_begin(self, net: Any, **kwargs: Any) -> None:
        self.began_ = time.perf_counter()

    def on_batch_end(
        self, net: Any, training: bool = True, loss: Any = None, **kwargs: Any
    ) -> None:
        if not training:
            return
        self.bar_.update()
        if self.bar_.disable:
            lines = self.lines_
            # A GPU is waited for when the loss is read.
            lines.update(1, lambda: f"step {lines.n}/{lines.total}, loss {loss.item():.4f}")

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        row = net.history[-1]
        shown = {"epoch": f"{row['epoch']}/{net.max_epochs}", "loss": f"{row['train_loss']:.4f}"}
        if "valid_score" in row:
            shown[self.metric] = f"{row['valid_score']:.4f}"
        self.bar_.set_postfix(shown)
        if self.bar_.disable:
            facts = ", ".join(f"{name} {value}" for name, value in shown.items())
            self.lines_.write(f"{facts} ({time.perf_counter() - self.began_:.1f} s)")

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        self.bar_.close()
        del self.bar_, self.lines_, self.began_


def with_progress(
    batches: Iterable[tuple[np.ndarray, Batch]], lengths: np.ndarray, windows: np.ndarray
) -> Iterator[tuple[np.ndarray, Batch]]:
    """Yield some windows and their batch, and show the share of the pieces of all that is done."""
    n_pieces = int(lengths[windows].sum())
    lines = Lines("predict", n_pieces)
    with tqdm(
        total=n_pieces,
        desc=lines.description,
        unit="piece",
        unit_scale=True,
        delay=_BAR_SECONDS,
        leave=False,
        disable=not is_terminal(),
    ) as bar:
        for part, batch in batches:
            yield part, batch
            n_done = int(lengths[part].sum())
            bar.update(n_done)
            if bar.disable:
                lines.update(n_done, lambda: f"{lines.n / n_pieces:.0%} done")
