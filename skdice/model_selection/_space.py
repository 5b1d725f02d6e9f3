"""From what a search space gives to parameters that an estimator can be set to."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from .._pipeline import final_step, with_parameters
from ..estimators._open_parameters import choose_pace
from ..losses import loss_parameters
from ..nn._loading import hidden_size
from ._suggest import LOSS_PARAMETERS, SEARCHED_LOSSES, suggest_loss, switch_loss

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

Space: TypeAlias = "Callable[[BaseTrial], Mapping[str, Any]]"


# The default space has learning rates from this part of that of the estimator to as many times it.
_LR_REACH = 4.0


def default_space(estimator: Any) -> tuple[Space, dict[str, Any]]:
    """Return loss and learning rate as a space, and its first trial: cross-entropy as it is.

    They are those of the estimator, or of the last step of a pipeline.

    Raises
    ------
    ValueError
        If that has no loss parameters.
    """
    prefix, final = final_step(estimator)
    known = final.get_params(deep=False) if hasattr(final, "get_params") else {}
    missing = [name for name in ("loss", "lr", *LOSS_PARAMETERS) if name not in known]
    if missing:
        raise ValueError(
            f"space=None searches the loss of an estimator of skdice; {type(final).__name__} has "
            f"no parameter {missing[0]!r}. Give a space: a callable that takes an Optuna trial and "
            f"returns a dict of parameters."
        )
    losses: tuple[str, ...] = SEARCHED_LOSSES
    if known.get("class_weight") not in (None, "log"):
        # With weights of its own, "wce" is "ce", and K an error.
        losses = tuple(name for name in losses if name != "wce")
    lr, head = known["lr"], None
    if lr == "auto":
        pace = choose_pace(final, 1, 1, hidden_size(os.fspath(known["model"])))
        lr = pace.lr
        # A number for lr would be that of the head, too.
        head = pace.head_lr / lr if known["head_lr"] is None else None
    space = partial(_suggest_loss_and_lr, losses=losses, prefix=prefix, lr=float(lr), head=head)
    return space, {f"{prefix}loss": "ce", f"{prefix}lr": float(lr)}


def _suggest_loss_and_lr(
    trial: BaseTrial, losses: Sequence[str], prefix: str, lr: float, head: float | None
) -> dict[str, Any]:
    """Suggest a loss and a learning rate; ``head`` times it is that of the head."""
    drawn = trial.suggest_float(f"{prefix}lr", lr / _LR_REACH, lr * _LR_REACH, log=True)
    rates = {f"{prefix}lr": drawn}
    if head is not None:
        rates[f"{prefix}head_lr"] = head * drawn
    return suggest_loss(trial, losses, prefix=prefix) | rates


def draw_parameters(space: Space, trial: BaseTrial, estimator: Any) -> dict[str, Any]:
    """Return the parameters that a trial is to set on the estimator.

    Where the space switches a loss, the loss parameters that it does not give are reset to None. A
    None that changes nothing is left out.

    Raises
    ------
    TypeError
        If the space does not return a dict with names for keys.
    ValueError
        If a parameter is unknown to the estimator.
    """
    drawn = space(trial)
    if not isinstance(drawn, Mapping) or not all(isinstance(name, str) for name in drawn):
        raise TypeError(
            f"The 'space' of DiceSearchCV must return a dict of parameter names and values. Got "
            f"{drawn!r} instead."
        )
    known = estimator.get_params()
    parameters = {
        name: value
        for name, value in {**_resets(drawn, known), **drawn}.items()
        if value is not None
        or name.rpartition("__")[2] not in LOSS_PARAMETERS
        or known.get(name, 0) is not None
    }
    try:
        with_parameters(estimator, parameters)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"The space of DiceSearchCV gives a parameter that {type(estimator).__name__} cannot "
            f"be set to: {error}"
        ) from error
    return parameters


def _resets(drawn: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, None]:
    """Return None for what the estimator was given for a loss that the space switches."""
    resets: dict[str, None] = {}
    for name, loss in drawn.items():
        if name != "loss" and not name.endswith("__loss"):
            continue
        new = switch_loss({}, name.removesuffix("loss"))
        if not new.keys() <= known.keys():
            continue  # The loss of another kind of estimator.
        if isinstance(loss, str):
            loss_parameters(loss)  # An unknown name is refused before anything is fitted.
        if loss != known[name]:
            resets |= new
    return resets
