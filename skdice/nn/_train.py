"""Training: from a network and the steps of a fit to what came of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
from torch import Tensor

from .._digest import digest
from ._batching import StepSampler
from ._chain import TagChain
from ._finite_guard import NotFiniteError
from ._net import TextNet
from ._ranks import LostProcessError, Ranks
from ._runtime import (
    denormals_flushed,
    generator_states,
    seed_generators,
    seeded,
    set_generator_states,
)
from ._training_state import State, UnfitStateError

_SAVED_STATE = "saved state (checkpoint_dir must be one directory that all see)"
_HISTORY = ("epoch", "train_loss", "valid_score", "lr", "dur")


class Checkpoint(Protocol):
    """Where the state of a fit is kept."""

    directory: str

    def load(self) -> State | None:
        """Return what was saved last."""

    def save(self, state: State) -> None:
        """Replace it."""

    def damaged(self, error: Exception) -> ValueError:
        """Return the error for a state that is of another fit, or of none."""


@dataclass(frozen=True)
class Start:
    """A network before its first step, or before the next one of a fit that goes on.

    Attributes
    ----------
    net : TextNet
        Initialised.
    ranks : Ranks
        The processes that train it together.
    seed : int
    generators : list of Tensor
        States of torch's generators after the new weights were drawn.
    checkpoint : Checkpoint or None
    state : State or None
        To go on from.
    """

    net: TextNet
    ranks: Ranks
    seed: int
    generators: list[Tensor]
    checkpoint: Checkpoint | None
    state: State | None


@dataclass(frozen=True)
class Training:
    """What came of a training run, also of one that was stopped.

    Attributes
    ----------
    history : DataFrame
        A row per epoch: training loss, validation score, learning rate, seconds.
    best_epoch : int
        That of the weights that are kept; 0 if none was finished.
    predicted : ndarray, bool
        What ``predicted`` had for a batch of that epoch; empty if there is none.
    error : BaseException or None
        That ended it.
    """

    history: pd.DataFrame
    best_epoch: int
    predicted: np.ndarray
    error: BaseException | None

    def check(self) -> None:
        """Raise the error that ended the run, if one did."""
        if self.error is not None:
            raise self.error


def initialized(net: TextNet, seed: int, other: int | None = None) -> list[Tensor]:
    """Draw new weights from a seed; return the states of torch's generators after that.

    With another seed, return its states.
    """
    with seeded(seed, net.device), denormals_flushed():
        net.initialize()
        states = generator_states(net.device)
    if other is None:
        return states
    with seeded(other, net.device):
        return generator_states(net.device)


def start(
    net: TextNet,
    ranks: Ranks,
    seed: int,
    generators: list[Tensor],
    checkpoint: Checkpoint | None,
    digests: Mapping[str, str],
) -> Start:
    """Find where a fit starts, the same in all processes.

    Parameters
    ----------
    net, ranks, seed, generators, checkpoint
        As in :class:`Start`.
    digests : mapping of str to str
        Of what the fit depends on, which is compared among the processes.

    Raises
    ------
    ValueError
        If the state is damaged, or processes differ.
    """
    state = None if checkpoint is None else checkpoint.load()
    history = None if state is None else state.get("history")
    ranks.compare({**digests, _SAVED_STATE: digest(history)})
    return Start(net, ranks, seed, generators, checkpoint, state)


def train(
    start: Start,
    sampler: StepSampler,
    *,
    validate: Callable[[], float] | None = None,
    patience: int | None = None,
    predicted: Callable[[Tensor, Tensor], Tensor] | None = None,
    chain: TagChain | None = None,
) -> Training:
    """Train a network; with several processes all of them have to call it.

    Parameters
    ----------
    start : Start
    sampler : StepSampler
        Its batches have the loss's targets; the net has loss and settings.
    validate : callable, optional
        Gives the task metric of the validation part, larger is better; called every epoch.
    patience : int, optional
        Stop after this many epochs without improvement and restore the best weights.
    predicted : callable, optional
        From the logits and targets of a batch to what is predicted of it, a bool Tensor.
    chain : TagChain, optional
        Whose log-probabilities the loss is computed of, in place of the logits.

    Returns
    -------
    Training
        Errors are in it, also Ctrl-C, so that the caller can keep what was learned.
    """
    net, ranks = start.net, start.ranks
    error: BaseException | None = None
    with seeded(start.seed, net.device), denormals_flushed():
        set_generator_states(net.device, start.generators)
        try:
            if ranks.count > 1:
                ranks.copy_first(net.module_.state_dict().values())
                seed_generators(ranks.seed(start.seed), net.device)
            with ranks.left_on_error(NotFiniteError):
                net.train(
                    sampler,
                    validate=validate,
                    patience=patience,
                    predicted=predicted,
                    chain=chain,
                    resume_from=start.state,
                    save_state=None if start.checkpoint is None else start.checkpoint.save,
                )
        except UnfitStateError as unfit:
            assert start.checkpoint is not None  # The state is from there.
            error = start.checkpoint.damaged(unfit)
            error.__cause__ = unfit
        except LostProcessError as lost:
            error = LostProcessError(f"{lost} {_how_to_go_on(start)}")
            error.__cause__ = lost
        except BaseException as other:
            error = other
    seen = np.array(net.best_predicted_, dtype=bool)
    return Training(_history(net), int(net.best_epoch_), seen, error)


def _how_to_go_on(start: Start) -> str:
    if start.checkpoint is None:
        return "With checkpoint_dir=... it would go on from the last finished epoch."
    epoch = 1 + sum("dur" in row for row in start.net.history)
    return f"checkpoint_dir={start.checkpoint.directory!r} goes on from epoch {epoch}."


def _history(net: Any) -> pd.DataFrame:
    rows = [{name: row[name] for name in _HISTORY if name in row} for row in net.history]
    return pd.DataFrame(rows).set_index("epoch") if rows else pd.DataFrame()
