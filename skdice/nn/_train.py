"""A run of training: the callbacks of skorch, and ours, that a fit has."""

from collections.abc import Callable
from functools import partial
from typing import Any

from skorch.callbacks import EarlyStopping, EpochScoring
from skorch.utils import noop

from ._batching import StepSampler
from ._callbacks import CtrlC
from ._learning import LearningCheck
from ._net import TextNet
from ._runtime import LostProcessError
from ._training_state import Checkpoint, LoadState, SaveState, State


def train(
    net: TextNet,
    sampler: StepSampler,
    *,
    validate: Callable[[], float] | None = None,
    patience: int | None = None,
    look_at: int | None = None,
    checkpoint: Checkpoint | None = None,
    state: State | None = None,
) -> None:
    """Train an initialised net; ``net.best_epoch_`` and ``net.history`` say what came of it.

    ``validate`` gives the task metric of the validation part, larger is better, after every epoch;
    with ``patience``, so many epochs without improvement end the run and restore the best weights.

    At the end of the epoch ``look_at`` a NotLearningError is raised if the training loss is about
    that of the first epoch.

    A ``checkpoint`` gets the state after every epoch, from the first process alone; ``state`` is
    what it had of a run that this one continues, bit for bit.

    It is a ValueError if loss or gradient stop being finite (the weights are those before that step
    or, with patience, the best ones), or if the state is of another run.
    """
    scoring = stopping = None
    own: list[Any] = []
    if look_at is not None:
        own.append(LearningCheck(look_at))
    if validate is not None:
        scoring = EpochScoring(
            partial(_score, validate),
            lower_is_better=False,
            on_train=True,
            name="valid_score",
            use_caching=False,
        ).initialize()
        own.append(scoring)
    if validate is not None and patience is not None:
        how = {"lower_is_better": False, "threshold": 0, "load_best": True, "sink": noop}
        stopping = EarlyStopping("valid_score", patience, **how)
        own.append(stopping)
    if state is not None:
        assert checkpoint is not None  # The state is from there.
        own.append(LoadState(checkpoint, state, scoring, stopping))
    callbacks = net.callbacks_
    before = [(type(callback).__name__, callback) for callback in own]
    net.callbacks_ = [*before, *callbacks, ("SaveState", SaveState(checkpoint, stopping))]
    try:
        net.partial_fit(sampler)
    except LostProcessError as lost:
        raise LostProcessError(f"{lost} {_how_to_go_on(net, checkpoint)}") from lost
    finally:
        net.callbacks_ = callbacks
        finished = sum("dur" in row for row in net.history)
        net.best_epoch_ = finished if stopping is None else stopping.best_epoch_


def _score(validate: Callable[[], float], *args: Any) -> float:
    """Return the score of an epoch; an interrupt is no callback's that ends the fit."""
    try:
        return validate()
    except KeyboardInterrupt as error:
        raise CtrlC from error


def _how_to_go_on(net: TextNet, checkpoint: Checkpoint | None) -> str:
    if checkpoint is None:
        return "With checkpoint_dir=... it would go on from the last finished epoch."
    epoch = 1 + sum("dur" in row for row in net.history)
    return f"checkpoint_dir={checkpoint.directory!r} goes on from epoch {epoch}."
