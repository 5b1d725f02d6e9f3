"""How far a training run has come, and all it needs to go on from there."""

import json
import math
from dataclasses import dataclass
from typing import Any

import torch
from skorch.history import History
from torch import Tensor

from ._runtime import generator_states, set_generator_states

# The parts of a run that have a state.
_PARTS = ("optimizer", "scheduler", "scaler", "memory")
# Made of tensors, numbers, str, lists and dicts.
State = dict[str, Any]

_KINDS = {
    "epoch": int,
    "best_epoch": int,
    "best_score": float,
    "is_stopped": bool,
}


@dataclass
class Progress:
    """How far a training run has come, and which of its weights are the best.

    With ``patience``, so many epochs without improvement end it. Of the epochs, ``epoch`` is the
    last one that was finished, and ``best_epoch`` that of the weights that are kept (0 if there is
    none). ``best_weights`` are kept while later ones may turn out to be worse; ``is_stopped`` says
    that a callback asked to end the run.
    """

    max_epochs: int = 0
    patience: int | None = None
    epoch: int = 0
    best_epoch: int = 0
    best_score: float = -math.inf
    best_weights: dict[str, Tensor] | None = None
    is_stopped: bool = False

    @property
    def is_over(self) -> bool:
        """Whether there is no epoch to come."""
        n_worse = self.epoch - self.best_epoch
        has_waited = self.patience is not None and n_worse >= self.patience
        # One that is stopped before its first step makes that one.
        return (self.is_stopped and self.epoch > 0) or self.epoch >= self.max_epochs or has_waited

    def end_epoch(self, score: float | None, module: torch.nn.Module) -> None:
        """Count an epoch with its validation score."""
        self.epoch += 1
        if self.patience is None or score is None:
            self.best_epoch = self.epoch
        elif score > self.best_score or self.best_weights is None:
            self.best_epoch, self.best_score = self.epoch, score
            self.best_weights = {
                name: tensor.detach().clone() for name, tensor in module.state_dict().items()
            }

    def keep_best(self, module: torch.nn.Module) -> None:
        """Put the best weights back, if later ones were not kept."""
        if self.best_weights is not None:
            module.load_state_dict(self.best_weights)
            self.best_weights = None


def state_of(run: Any) -> State:
    """Return the state of a training run between two epochs; at its end, what it came to."""
    net, progress = run.net, run.net.progress_
    state: State = {
        "progress": {name: getattr(progress, name) for name in (*_KINDS, "best_weights")},
        "history": json.dumps(list(net.history), default=float),
        "weights": net.module_.state_dict(),
    }
    state["progress"]["best_score"] = float(progress.best_score)
    if not progress.is_over:
        state |= {name: getattr(run, name).state_dict() for name in _PARTS}
        state["rng"] = json.dumps(run.sampler.rng.bit_generator.state)
        # Of all processes.
        state["torch_rng"] = [run.ranks.stack(part) for part in generator_states(net.device)]
    return state


def restore_state(run: Any, state: State) -> None:
    """Set what :func:`state_of` returned; an error of some kind if it is of another run."""
    net, progress = run.net, run.net.progress_
    _restore_progress(progress, state["progress"])
    history = json.loads(state["history"])
    if [row["epoch"] for row in history] != list(range(1, progress.epoch + 1)):
        raise ValueError(f"the history has no row for each of {progress.epoch} epochs")
    net.history_ = History(history)
    names = net.module_.state_dict().keys()
    if progress.best_weights is not None and progress.best_weights.keys() != names:
        raise ValueError("the best weights are those of another network")
    net.module_.load_state_dict(state["weights"])
    if not progress.is_over:
        for name in _PARTS:
            getattr(run, name).load_state_dict(state[name])
        run.sampler.rng.bit_generator.state = json.loads(state["rng"])
        own = [part[run.ranks.index].clone() for part in state["torch_rng"]]
        set_generator_states(net.device, own)


def _restore_progress(progress: Progress, saved: dict[str, Any]) -> None:
    for name, kind in _KINDS.items():
        if type(saved[name]) is not kind:
            raise TypeError(f"{name} is {saved[name]!r}, no {kind.__name__}")
        setattr(progress, name, saved[name])
    progress.best_weights = saved["best_weights"]
    if not 1 <= progress.best_epoch <= progress.epoch <= progress.max_epochs:
        raise ValueError(f"epoch {progress.best_epoch} is the best of {progress.epoch}")
