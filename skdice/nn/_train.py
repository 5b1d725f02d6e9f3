"""The training of a network: its callbacks, its scores, its saved state and its progress."""

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from skorch import NeuralNet
from skorch import callbacks as skc
from skorch.history import History
from skorch.utils import noop
from torch import Tensor
from tqdm.auto import tqdm
from tqdm.notebook import tqdm_notebook

from .._digest import digest
from .._files import as_path, check_not_inside_saved, explained, replacing_file
from .._inputs import count_of
from ._batching import StepSampler

# It consists of tensors, numbers, strings, lists and dicts.
State = dict[str, Any]
_STATE_FILE = "state.pt"
# The loss at the beginning is the mean over this many steps.
_FIRST_STEPS = 5
# A loss above this share of the loss at the beginning has not fallen. With 45 % of wrong labels, a
# network that has learned ends at 0.993.
_FALLEN = 0.995
# tqdm takes None as: hidden unless stderr is a terminal. Bars of a notebook are always shown.
HIDES_BARS = False if issubclass(tqdm, tqdm_notebook) else None
# After this time of training, a fit says how long it will take.
_SECONDS_TO_TELL = 5.0
_SCORES = (
    "texts are no arrays that skorch could score. With validation rows a fit has the estimator's "
    "metric of every epoch (history_['valid_score']); for another one, predict in a callback of "
    "your own"
)
_REFUSED = {
    skc.EpochScoring: _SCORES,
    skc.BatchScoring: _SCORES,
    skc.LRScheduler: "the fit sets the learning rate of every step: use lr and warmup",
    skc.InputShapeSetter: "a transformer takes texts of any length: leave it out",
    skc.LoadInitState: "use checkpoint_dir, with which a fit goes on where it stopped",
}


class NotLearningError(ValueError):
    """The training loss has not fallen."""


class DirectoryCheckpoint:
    """The state of one fit, in a directory of its own, which ``fingerprint`` names.

    The file is read as tensors, numbers, strings, lists and dicts only, so that no code in it runs.
    A new state replaces the last one as a whole, or not at all.
    """

    def __init__(self, directory: str | os.PathLike[str], fingerprint: str) -> None:
        self.path = as_path(directory) / fingerprint
        check_not_inside_saved(self.path)

    def load(self) -> dict[str, Any] | None:
        """Return the state that was saved last, None if there is none."""
        if not (self.path / _STATE_FILE).exists():
            return None
        try:
            return dict(torch.load(self.path / _STATE_FILE, map_location="cpu", weights_only=True))
        except Exception as error:  # Each way of damage has errors of its own.
            raise self.damaged(error) from error

    def damaged(self, error: Exception) -> ValueError:
        """Return the error for a state that cannot be read, or is of another fit."""
        return ValueError(
            f"The checkpoint {str(self.path)!r} is damaged ({error!r}). Delete it, and the fit "
            f"starts afresh."
        )

    def save(self, state: dict[str, Any]) -> None:
        """Replace the last state by this one when this one is completely written."""
        with explained(self.path, "The checkpoint"):
            self.path.mkdir(parents=True, exist_ok=True)
            with replacing_file(self.path / _STATE_FILE) as new, new.open("wb") as file:
                torch.save(state, file)


@dataclass(eq=False, repr=False)
class Training(skc.Callback):
    """One training of a network: what it is scored by, and the state from which it goes on.

    ``validate`` is called after every epoch; it returns the task metric of the validation rows,
    larger is better. After ``patience`` epochs without improvement the training ends, with the
    weights of the best epoch. After every epoch the first process saves the state to the
    ``checkpoint``. A saved ``state`` is continued bit for bit; one that does not fit the network
    raises a ValueError. Steps that do not fit in before the ``deadline`` (of the clock
    ``time.monotonic``) are left out of the schedule.
    """

    validate: Callable[[], float] | None = None
    patience: int | None = None
    checkpoint: DirectoryCheckpoint | None = None
    state: State | None = None
    deadline: float = math.inf

    def __post_init__(self) -> None:
        self.first_losses: list[Tensor] = []
        self.saved: State | None = None  # the last one, in the process that saves
        self.scoring: skc.EpochScoring | None = None
        self.stopping: skc.EarlyStopping | None = None
        if (validate := self.validate) is None:
            return
        how: dict[str, Any] = {"lower_is_better": False, "use_caching": False, "on_train": True}
        self.scoring = skc.EpochScoring(lambda *_: validate(), name="valid_score", **how)
        self.scoring.initialize()
        if self.patience is not None:
            how = {"lower_is_better": False, "threshold": 0, "load_best": True, "sink": noop}
            self.stopping = skc.EarlyStopping("valid_score", self.patience, **how)

    @contextmanager
    def watching(self, net: NeuralNet, limit: float | None = None) -> Iterator[None]:
        """Watch over the training of an initialised net inside the block.

        Afterwards ``net.best_epoch_`` is the epoch of the net's weights, and ``net.best_score_``
        the score of that epoch, NaN without one. With a ``limit``, which may be infinite, a
        NotLearningError is raised unless the loss of the last epoch is below both this limit and
        the loss of the first steps. A fit that a callback has ended is not judged. The first steps
        tell more than the first epoch: if many labels are wrong, the loss falls early, and by
        little.
        """
        callbacks = net.callbacks_
        before = {"scoring": self.scoring, "stopping": self.stopping, "training": self}
        net.callbacks_ = [
            *((name, callback) for name, callback in before.items() if callback is not None),
            *callbacks,
            ("end", _EndOfEpoch(self)),
        ]
        try:
            yield
            if self.checkpoint is not None and self.saved is not None:
                # A callback may have changed the weights when the training ended.
                self.checkpoint.save(self.saved | {"weights": net.module_.state_dict()})
            losses = net.history[:, "train_loss"]
            has_waited = self.stopping is not None and self.stopping.misses_ == self.patience
            if limit is not None and (has_waited or len(losses) == net.max_epochs):
                first, last = torch.stack(self.first_losses).mean().item(), losses[-1]
                limit = min(_FALLEN * first, limit)
                if last > limit:
                    raise NotLearningError(
                        f"The training loss is {last:.4f} in the last epoch; it was {first:.4f} in "
                        f"the first steps, and a fit that learned something ends below {limit:.4f}."
                    )
        finally:
            net.callbacks_ = callbacks
            finished = sum("dur" in row for row in net.history)
            net.best_epoch_ = best = getattr(self.stopping, "best_epoch_", finished)
            scores = {row["epoch"]: row.get("valid_score", math.nan) for row in net.history}
            net.best_score_ = float(scores.get(best, math.nan))

    def on_train_begin(self, net: NeuralNet, X: StepSampler, y: None = None, **kwargs: Any) -> None:
        state, net.steps_.deadline = self.state, self.deadline
        if state is None or self.checkpoint is None:
            return
        try:
            history = json.loads(state["history"])
            if [row["epoch"] for row in history] != [*range(1, len(history) + 1)] or not history:
                raise ValueError("the history has no row for each epoch")
            net.history_ = History(history)
            self.first_losses = [loss.to(net.device) for loss in state["first_losses"]]
            if self.stopping is not None:
                best = state["stopping"].pop("best_model_weights_")
                if best is not None and best.keys() != net.module_.state_dict().keys():
                    raise ValueError("the best weights are those of another network")
                vars(self.stopping).update(state["stopping"], best_model_weights_=best)
            net.module_.load_state_dict(state["weights"])
            net.steps_.is_stopped = state["is_over"]
            if not state["is_over"]:
                net.steps_.load_state_dict(state)
        except Exception as error:  # Each part has errors of its own.
            raise self.checkpoint.damaged(error) from error
        if self.scoring is not None:  # It reads the best score so far from the history.
            self.scoring.on_train_begin(net, X=X, y=y)

    def on_batch_end(self, net: NeuralNet, loss: Tensor, **kwargs: Any) -> None:
        if len(self.first_losses) < _FIRST_STEPS:
            self.first_losses.append(loss)

    def state_of(self, net: NeuralNet) -> State:
        """Return all that the training needs to go on from here, in all processes."""
        is_over = net.steps_.is_stopped or len(net.history) >= net.max_epochs
        state: State = {
            "history": json.dumps(list(net.history), default=float),
            "is_over": is_over,
            "weights": net.module_.state_dict(),
            "first_losses": self.first_losses,
        }
        if self.stopping is not None:
            names = ("misses_", "dynamic_threshold_", "best_epoch_", "best_model_weights_")
            state["stopping"] = {name: getattr(self.stopping, name) for name in names}
            state["stopping"]["dynamic_threshold_"] = float(self.stopping.dynamic_threshold_)
            if is_over:  # The net ends with the best weights.
                state["weights"] = state["stopping"]["best_model_weights_"]
                state["stopping"]["best_model_weights_"] = None
        if not is_over:
            state |= net.steps_.state_dict()
        return state


@dataclass(eq=False, repr=False)
class _EndOfEpoch(skc.Callback):
    """Lets the processes agree whether an epoch is the last one, and saves the state after it."""

    training: Training

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        steps = net.steps_
        steps.is_stopped = any(steps.ranks.gather(steps.is_stopped))
        if self.training.checkpoint is not None:
            state = self.training.state_of(net)
            if steps.ranks.index == 0:
                self.training.checkpoint.save(state)
                self.training.saved = state


def time_shown(seconds: float) -> str:
    """Return a time in minutes, or in seconds if it is short."""
    return f"{seconds / 60:.0f} min" if seconds > 99 else f"{seconds:.0f} s"


def check_callbacks(callbacks: object, validates: bool) -> None:
    """Raise a ValueError for a callback that could not do its work here."""
    is_list = callbacks is None or isinstance(callbacks, list | tuple)
    for _, callback in named_callbacks(callbacks if is_list else [callbacks]):
        if not is_list or not isinstance(callback, skc.Callback):
            raise ValueError(
                f"callbacks must be None or a list of objects of skorch's Callback, each by itself "
                f"or as (name, object). Got {callback!r} instead."
            )
        refused = f"callbacks cannot have {type(callback).__name__}"
        for kind, reason in _REFUSED.items():
            if isinstance(callback, kind):
                raise ValueError(f"{refused}: {reason}.")
        if getattr(callback, "load_best", False):
            raise ValueError(f"{refused} with load_best=True: use patience, which does it, too.")
        monitor = getattr(callback, "monitor", None)
        needs_rows = monitor in ("valid_score", "valid_score_best") and not validates
        if needs_rows or monitor in ("valid_loss", "valid_loss_best"):
            raise ValueError(
                f"{refused} with monitor={monitor!r}: a fit records train_loss and, with "
                f"validation rows, valid_score (larger is better), and whether they are the best "
                f"so far (train_loss_best, valid_score_best). This one has "
                f"{'' if validates else 'no '}validation rows."
            )


def named_callbacks(callbacks: object) -> list[tuple[str, Any]]:
    """Return the callbacks of a list, each with its name, by default that of its class."""
    given = callbacks if isinstance(callbacks, list | tuple) else ()
    return [
        part
        if isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], str)
        else (type(part).__name__, part)
        for part in given
    ]


def digests_of_trainers(callbacks: object) -> list[str]:
    """Return digests of the callbacks that may change what is learned.

    These are all but skorch's loggers and callbacks whose class says ``only_watches = True``. A
    callback whose state cannot be compared between processes raises a ValueError.
    """
    digests = []
    for name, callback in named_callbacks(callbacks):
        kind = type(callback)  # A class that is derived from a logger may change something.
        is_logger = kind.__module__ == "skorch.callbacks.logging" or kind is skc.TrainEndCheckpoint
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


@dataclass(eq=False, repr=False)
class FitProgress(skc.Callback):
    """Show how long a fit is, and epoch, loss and task metric, on the standard error stream.

    In a terminal that is one tqdm bar over all optimiser steps. Elsewhere (log files, notebooks,
    which keep it when they are exported) it is a line an epoch. If no bar shows the time that is
    left, one line tells it: after five seconds or, if other networks follow, at the end at latest.

    ``later`` is about how many optimiser steps other networks of the same fit make after this one:
    further members, folds, a student. It is None for these, so that the time is told once.
    """

    description: str
    metric: str
    later: float | None = 0

    def on_train_begin(self, net: NeuralNet, X: StepSampler, **kwargs: Any) -> None:
        # Epochs that an earlier process trained count as done.
        steps, n_done = net.steps_, len(net.history)
        self.n_done_, self.begin_, self.n_timed_ = X.n_steps * n_done, 0.0, 0
        if not steps.is_stopped:
            epochs = count_of(net.max_epochs - n_done, "epoch")
            shown = f"{steps.n_steps - self.n_done_:,} steps in {epochs}"
            told = f"{self.description}: {shown}, lr {net.lr:g}, on {net.device}"
            tqdm.write(told, file=sys.stderr)
        how = {"desc": self.description, "unit": "step", "disable": HIDES_BARS}
        self.bar_ = tqdm(total=steps.n_steps, initial=self.n_done_, **how)

    def on_batch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        steps, now = net.steps_, time.monotonic()
        self.n_done_ += 1
        self.bar_.total = steps.n_steps
        self.bar_.update()
        if not self.begin_:  # The first step is slower than others.
            self.begin_ = now
            return
        self.n_timed_ += 1
        seconds, later, n_left = now - self.begin_, self.later, steps.n_steps - self.n_done_
        if later is None or not (later or (self.bar_.disable and n_left)):
            return
        each, allowed = seconds / self.n_timed_, steps.deadline - now
        left = min(each * (n_left + later), allowed * (1 + later / steps.n_planned))
        if seconds >= _SECONDS_TO_TELL or (not n_left and left >= _SECONDS_TO_TELL):
            self.begin_ = math.inf  # It is told once.
            told = f"{self.description}: {each:.2g} s a step, so training takes about"
            tqdm.write(f"{told} {time_shown(left)} more", file=sys.stderr)

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        row = net.history[-1]
        shown = {"epoch": f"{row['epoch']}/{net.max_epochs}", "loss": f"{row['train_loss']:.4f}"}
        if "valid_score" in row:
            shown[self.metric] = f"{row['valid_score']:.4f}"
        self.bar_.set_postfix(shown)
        if not sys.stderr.isatty():
            facts = ", ".join(f"{name} {value}" for name, value in shown.items())
            told = f"{self.description}: {facts} ({row['dur']:.1f} s)"
            tqdm.write(told, file=sys.stderr)

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        self.bar_.close()
        del self.bar_


def history_of(nets: Sequence[NeuralNet]) -> pd.DataFrame:
    """Return a row per network and epoch: loss, validation score, learning rate, texts, seconds."""
    columns = ("epoch", "train_loss", "valid_score", "lr", "n_texts", "dur")
    rows = [
        {"run": run, **{name: row[name] for name in columns if name in row}}
        for run, net in enumerate(nets, 1)
        for row in net.history
    ]
    return pd.DataFrame(rows).set_index("epoch") if rows else pd.DataFrame()
