"""Callbacks: which of skorch's a fit takes, which may change it, and our own that shows it."""

import sys
from collections.abc import Sequence
from typing import Any

from skorch.callbacks import (
    BatchScoring,
    Callback,
    EpochScoring,
    InputShapeSetter,
    LoadInitState,
    LRScheduler,
    PassthroughScoring,
    TrainEndCheckpoint,
    WandbLogger,
)
from tqdm import tqdm

from .._digest import digest

_SCORES = (
    "texts are no arrays that skorch could score. With validation rows a fit has the estimator's "
    "metric of every epoch (history_['valid_score']); for another one, predict in a callback of "
    "your own"
)
_REFUSED = {
    EpochScoring: _SCORES,
    BatchScoring: _SCORES,
    LRScheduler: "the fit sets the learning rate of every step: use lr and warmup",
    InputShapeSetter: "a transformer takes texts of any length: leave it out",
    LoadInitState: "use checkpoint_dir, with which a fit goes on where it stopped",
}


def check_callbacks(callbacks: Sequence[Any] | None, validates: bool) -> None:
    """Raise a ValueError for a callback that could not do its work here."""
    if callbacks is not None and not isinstance(callbacks, list | tuple):
        raise ValueError(
            f"callbacks must be None or a list of callbacks. Got {callbacks!r} instead."
        )
    for _, callback in named_callbacks(callbacks):
        if not isinstance(callback, Callback):
            raise ValueError(
                f"callbacks takes objects of skorch's Callback, each by itself or as (name, "
                f"object). Got {callback!r} instead."
            )
        if objection := _objection(callback, validates):
            raise ValueError(f"callbacks cannot have {type(callback).__name__}{objection}.")


def _objection(callback: Callback, validates: bool) -> str | None:
    """Return why a callback could not do its work, and what to do."""
    for kind, reason in _REFUSED.items():
        if isinstance(callback, kind):
            return f": {reason}"
    if isinstance(callback, WandbLogger) and callback.save_model:
        return (
            " with save_model=True, which looks for a validation loss: use save_model=False, and "
            "save_pretrained after the fit"
        )
    if isinstance(callback, PassthroughScoring) and not callback.on_train:
        return (
            " with on_train=False, as the batches that a fit records are those of training: use "
            "on_train=True"
        )
    monitor = getattr(callback, "monitor", None)
    needs_rows = monitor in ("valid_score", "valid_score_best") and not validates
    if needs_rows or monitor in ("valid_loss", "valid_loss_best"):
        return (
            f" with monitor={monitor!r}: a fit records train_loss and, with validation rows, "
            f"valid_score (larger is better), and whether they are the best so far "
            f"(train_loss_best, valid_score_best). This one has {'' if validates else 'no '}"
            f"validation rows"
        )
    return None


def named_callbacks(callbacks: Any) -> list[tuple[str, Any]]:
    """Return callbacks with their names, by default those of their classes; none of no list."""
    given = callbacks if isinstance(callbacks, list | tuple) else ()
    return [
        part
        if isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], str)
        else (type(part).__name__, part)
        for part in given
    ]


def digests_of_trainers(callbacks: Any) -> list[str]:
    """Return digests of the callbacks that may change what is learned.

    All may but skorch's loggers and those whose class says ``only_watches = True``. A state that
    means nothing in another process is a ValueError.
    """
    digests = []
    for name, callback in named_callbacks(callbacks):
        kind = type(callback)  # A class that is derived from a logger may change something.
        is_logger = kind.__module__ == "skorch.callbacks.logging" or kind is TrainEndCheckpoint
        if is_logger or getattr(callback, "only_watches", False):
            continue
        try:
            digests.append(digest(callback))
        except ValueError as error:
            raise ValueError(
                f"A fit with the callback {name} cannot be found again in checkpoint_dir, a cache "
                f"or a study. {error} If the callback changes nothing of a fit, have its class say "
                f"so: only_watches = True. Else name that attribute with a final '_'."
            ) from error
    return digests


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
