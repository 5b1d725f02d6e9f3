"""How far a training run has come, and all it needs to go on from there."""

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from skorch.history import History
from torch import Tensor

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

    @property
    def is_over(self) -> bool:
        """Whether there is no epoch to come."""
        n_worse = self.epoch - self.best_epoch
        has_waited = self.patience is not None and n_worse >= self.patience
        return self.epoch >= self.max_epochs or has_waited

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


def training_state(net: Any, progress: Progress, rng: np.random.Generator) -> State:
    """Return the state of a run between two epochs; at its end, what it came to."""
    state: State = {
        "progress": {
            "epoch": progress.epoch,
            "best_epoch": progress.best_epoch,
            "best_score": float(progress.best_score),
            "best_weights": progress.best_weights,
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
        state["torch_rng"] = [net.ranks_.stack(part) for part in _generators(net.device)]
    return state


def restore_training_state(
    net: Any, progress: Progress, rng: np.random.Generator, state: State
) -> None:
    """Set what :func:`training_state` returned."""
    for name, value in state["progress"].items():
        setattr(progress, name, value)
    net.history_ = History(json.loads(state["history"]))
    net.module_.load_state_dict(state["weights"])
    if not progress.is_over:
        net.optimizer_.load_state_dict(state["optimizer"])
        net.scheduler_.load_state_dict(state["scheduler"])
        net.scaler_.load_state_dict(state["scaler"])
        net.memory_.load_state_dict(state["memory"])
        rng.bit_generator.state = json.loads(state["rng"])
        _set_generators(net.device, [part[net.ranks_.index].clone() for part in state["torch_rng"]])


def _generators(device: Any) -> list[Tensor]:
    states = [torch.get_rng_state()]
    if torch.device(device).type == "cuda":
        states.append(torch.cuda.get_rng_state(device))
    return states


def _set_generators(device: Any, states: list[Tensor]) -> None:
    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state(states[1], device)
