"""How far a training run has come, and all it needs to go on from there."""

import json
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from skorch.history import History
from torch import Tensor

from ._runtime import generator_states, set_generator_states

# Made of tensors, numbers, str, lists and dicts.
State = dict[str, Any]


@dataclass
class Progress:
    """How far a training run has come.

    Parameters
    ----------
    max_epochs : int
    patience : int or None
        Epochs without improvement that end the run; None trains to the last epoch.
    """

    max_epochs: int
    patience: int | None
    epoch: int = 0
    best_epoch: int = 0
    best_score: float = -math.inf
    best_weights: dict[str, Tensor] | None = None
    best_predicted: list[bool] = field(default_factory=list)
    is_stopped: bool = False

    @property
    def is_over(self) -> bool:
        """Whether there is no epoch to come."""
        n_worse = self.epoch - self.best_epoch
        has_waited = self.patience is not None and n_worse >= self.patience
        return self.is_stopped or self.epoch >= self.max_epochs or has_waited

    def end_epoch(
        self, score: float | None, module: torch.nn.Module, predicted: list[bool]
    ) -> None:
        """Count an epoch with its validation score, and what was predicted in it."""
        self.epoch += 1
        if self.patience is None or score is None:
            self.best_epoch, self.best_predicted = self.epoch, predicted
        elif score > self.best_score or self.best_weights is None:
            self.best_epoch, self.best_score, self.best_predicted = self.epoch, score, predicted
            self.best_weights = {
                name: tensor.detach().clone() for name, tensor in module.state_dict().items()
            }

    def keep_best(self, module: torch.nn.Module) -> None:
        """Put the best weights back, if later ones were not kept."""
        if self.best_weights is not None:
            module.load_state_dict(self.best_weights)
            self.best_weights = None


def training_state(net: Any, progress: Progress, rng: np.random.Generator) -> State:
    """Return the state of a run between two epochs; at its end, what it came to."""
    state: State = {
        "progress": {
            "epoch": progress.epoch,
            "best_epoch": progress.best_epoch,
            "best_score": float(progress.best_score),
            "best_weights": progress.best_weights,
            "best_predicted": progress.best_predicted,
            "is_stopped": progress.is_stopped,
        },
        "history": json.dumps(list(net.history), default=float),
        "weights": net.module_.state_dict(),
    }
    if not progress.is_over:
        state["optimizer"] = net.optimizer_.state_dict()
        state["scheduler"] = net.scheduler_.state_dict()
        state["scaler"] = net.scaler_.state_dict()
        state["memory"] = net.memory_.state_dict()
        state["rng"] = json.dumps(rng.bit_generator.state)
        state["torch_rng"] = [net.ranks_.stack(part) for part in generator_states(net.device)]
    return state


class UnfitStateError(ValueError):
    """A saved state is none of the run that was to go on from it."""


def restore_training_state(
    net: Any, progress: Progress, rng: np.random.Generator, state: State
) -> None:
    """Set what :func:`training_state` returned.

    Raises
    ------
    UnfitStateError
        If it is of another run, or of none.
    """
    try:
        _restore(net, progress, rng, state)
    except Exception as error:  # Each part has errors of its own.
        raise UnfitStateError(repr(error)) from error


def _restore(net: Any, progress: Progress, rng: np.random.Generator, state: State) -> None:
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
        net.optimizer_.load_state_dict(state["optimizer"])
        net.scheduler_.load_state_dict(state["scheduler"])
        net.scaler_.load_state_dict(state["scaler"])
        net.memory_.load_state_dict(state["memory"])
        rng.bit_generator.state = json.loads(state["rng"])
        own = [part[net.ranks_.index].clone() for part in state["torch_rng"]]
        set_generator_states(net.device, own)


def _restore_progress(progress: Progress, saved: dict[str, Any]) -> None:
    kinds = {"epoch": int, "best_epoch": int, "best_score": float}
    for name, kind in {**kinds, "best_predicted": list, "is_stopped": bool}.items():
        if type(saved[name]) is not kind:
            raise TypeError(f"{name} is {saved[name]!r}, no {kind.__name__}")
        setattr(progress, name, saved[name])
    progress.best_weights = saved["best_weights"]
    if not 1 <= progress.best_epoch <= progress.epoch <= progress.max_epochs:
        raise ValueError(f"epoch {progress.best_epoch} is the best of {progress.epoch}")
