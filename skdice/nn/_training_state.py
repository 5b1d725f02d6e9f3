"""All that a training run needs to go on from where it was, kept after every epoch.

How far it has come, the history says.
"""

import json
from typing import Any, NamedTuple, Protocol

import torch
from skorch.callbacks import Callback, EarlyStopping, EpochScoring
from skorch.history import History

from ._learning import LearningCheck
from ._runtime import generator_states, set_generator_states

# Made of tensors, numbers, str, lists and dicts.
State = dict[str, Any]
# The parts of a net in training that have a state.
_PARTS = ("optimizer_", "scaler_", "memory_")


class Checkpoint(Protocol):
    """Where the state of a fit is kept."""

    directory: str

    def save(self, state: State) -> None:
        """Replace it."""

    def damaged(self, error: Exception) -> ValueError:
        """Return the error for a state that is of another fit, or of none."""


class Watchers(NamedTuple):
    """Callbacks that a run may have, and which look at epochs before the last one."""

    check: LearningCheck | None
    scoring: EpochScoring | None
    stopping: EarlyStopping | None


class LoadState(Callback):
    """Goes on from a state; an error of the checkpoint if it is of another run."""

    def __init__(self, checkpoint: Checkpoint, state: State, watchers: Watchers) -> None:
        self.checkpoint, self.state, self.watchers = checkpoint, state, watchers

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        try:
            self._restore(net, self.state)
        except Exception as error:  # Each part has errors of its own.
            raise self.checkpoint.damaged(error) from error
        if self.watchers.scoring is not None:  # It finds the best score in the history.
            self.watchers.scoring.on_train_begin(net, X=X, y=y)

    def _restore(self, net: Any, state: State) -> None:
        check, _, stopping = self.watchers
        history = json.loads(state["history"])
        if [row["epoch"] for row in history] != [*range(1, len(history) + 1)] or not history:
            raise ValueError("the history has no row for each epoch")
        net.history_ = History(history)
        if check is not None:
            check.first_losses_ = state["first_losses"]
        if stopping is not None:
            best = state["stopping"].pop("best_model_weights_")
            if best is not None and best.keys() != net.module_.state_dict().keys():
                raise ValueError("the best weights are those of another network")
            vars(stopping).update(state["stopping"], best_model_weights_=best)
        net.module_.load_state_dict(state["weights"])
        net.is_stopped_ = state["is_over"]
        if not state["is_over"]:
            for name in _PARTS:
                getattr(net, name).load_state_dict(state[name])
            net.sampler_.rng.bit_generator.state = json.loads(state["rng"])
            own = [part[net.ranks_.index].clone() for part in state["torch_rng"]]
            set_generator_states(net.device, own)


class SaveState(Callback):
    """Keeps the state after every epoch, when the processes have agreed whether it is the last."""

    def __init__(self, checkpoint: Checkpoint | None, watchers: Watchers) -> None:
        self.checkpoint, self.watchers = checkpoint, watchers

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        stops = torch.tensor(net.is_stopped_, dtype=torch.long)
        net.is_stopped_ = bool(net.ranks_.sum(stops))
        if self.checkpoint is not None:
            state = self._state_of(net)
            if net.ranks_.is_first:
                self.checkpoint.save(state)

    def _state_of(self, net: Any) -> State:
        check, _, stopping = self.watchers
        is_over = net.is_stopped_ or len(net.history) >= net.max_epochs
        state: State = {
            "history": json.dumps(list(net.history), default=float),
            "is_over": is_over,
            "weights": net.module_.state_dict(),
        }
        if check is not None:
            state["first_losses"] = check.first_losses_
        if stopping is not None:
            names = ("misses_", "dynamic_threshold_", "best_epoch_", "best_model_weights_")
            state["stopping"] = {name: getattr(stopping, name) for name in names}
            state["stopping"]["dynamic_threshold_"] = float(stopping.dynamic_threshold_)
            if is_over:  # The best ones are those that stay.
                state["weights"] = state["stopping"]["best_model_weights_"]
                state["stopping"]["best_model_weights_"] = None
        if not is_over:
            state |= {name: getattr(net, name).state_dict() for name in _PARTS}
            state["rng"] = json.dumps(net.sampler_.rng.bit_generator.state)
            # Of all processes.
            state["torch_rng"] = [net.ranks_.stack(part) for part in generator_states(net.device)]
        return state
