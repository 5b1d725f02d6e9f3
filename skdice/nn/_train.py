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
from ._training_state import Checkpoint, LoadState, SaveState, State, Watchers


def train(
    net: TextNet,
    sampler: StepSampler,
    *,
    validate: Callable[[], float] | None = None,
    patience: int | None = None,
    must_learn: bool = False,
    loss_of_constant: float | None = None,
    checkpoint: Checkpoint | None = None,
    state: State | None = None,
) -> None:
    """Train an initialised net; ``net.best_epoch_`` and ``net.history`` say what came of it.

    ``validate`` gives the task metric of the validation part, larger is better, after every epoch;
    with ``patience``, so many epochs without improvement end the run and restore the best weights.

    If the net ``must_learn``, it is a NotLearningError if it has not when the run comes to its end
    (:class:`LearningCheck`). ``loss_of_constant`` is the least loss of logits that are the same for
    all items, as far as it is known.

    A ``checkpoint`` gets the state after every epoch, from the first process alone; ``state`` is
    what it had of a run that this one continues, bit for bit.

    It is a ValueError if loss or gradient stop being finite (the weights are those before that step
    or, with patience, the best ones), or if the state is of another run.
    """
    check = scoring = stopping = None
    if must_learn:
        check = LearningCheck(loss_of_constant)
    if validate is not None:
        scoring = EpochScoring(
            partial(_score, validate),
            lower_is_better=False,
            on_train=True,
            name="valid_score",
            use_caching=False,
        ).initialize()
        if patience is not None:
            how = {"lower_is_better": False, "threshold": 0, "load_best": True, "sink": noop}
            stopping = EarlyStopping("valid_score", patience, **how)
    watchers = Watchers(check, scoring, stopping)
    before = [(type(part).__name__, part) for part in watchers if part is not None]
    if state is not None:
        assert checkpoint is not None  # The state is from there.
        before.append(("LoadState", LoadState(checkpoint, state, watchers)))
    callbacks = net.callbacks_
    net.callbacks_ = [*before, *callbacks, ("SaveState", SaveState(checkpoint, watchers))]
    try:
        net.partial_fit(sampler)
        losses = net.history[:, "train_loss"]
        has_waited = stopping is not None and stopping.misses_ == patience
        if check is not None and (has_waited or len(losses) == net.max_epochs):
            check.check(losses[-1])
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
