"""Search spaces: the parameters of a loss as Optuna suggests them, and as they are set."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from sklearn.base import BaseEstimator

from .._pipeline import final_step, with_parameters
from ..fitting import open_rates
from ..losses import LOSS_PARAMETERS, loss_parameters
from ..nn import describe_encoder

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

Space: TypeAlias = "Callable[[BaseTrial], Mapping[str, Any]]"

# The parameters of estimators that are set anew with their loss, since a value that was set for one
# loss has another meaning for the next one; K is for class weights.
SWITCHED = (*LOSS_PARAMETERS, "K")
SEARCHED_LOSSES = ("ce", "wce", "focal", "dice", "tversky", "dsc")
# The range of each parameter that is drawn with a loss, and whether its logarithm is uniform.
_OF_SETS = {
    "gamma": (0.01, 10.0, True),
    "memory": (1.0, 100.0, True),
    "ce_weight": (0.0, 0.5, False),
}
_RANGES = {
    "wce": {"K": (1.0, 10.0, True)},
    "focal": {"gamma": (0.5, 5.0, False)},
    "dice": _OF_SETS,
    "tversky": {"alpha": (0.1, 0.9, False), **_OF_SETS},
    "dsc": {"alpha": (0.001, 1.0, True), **_OF_SETS},
}
# The default space has rates from the estimator's divided by this to the estimator's times this.
_LR_REACH = 4.0


def suggest_loss(
    trial: BaseTrial, losses: Sequence[str] = SEARCHED_LOSSES, *, prefix: str = ""
) -> dict[str, Any]:
    """Let an Optuna trial choose a loss and those parameters that the loss has.

    ========= ============= ========= ============= =========== ========= ==========
    loss      alpha         beta      gamma         memory      ce_weight K
    ========= ============= ========= ============= =========== ========= ==========
    "ce"      --            --        --            --          --        --
    "wce"     --            --        --            --          --        1..10, log
    "focal"   --            --        0.5..5        --          --        --
    "dice"    --            --        0.01..10, log 1..100, log 0..0.5    --
    "tversky" 0.1..0.9      1 - alpha 0.01..10, log 1..100, log 0..0.5    --
    "dsc"     0.001..1, log --        0.01..10, log 1..100, log 0..0.5    --
    ========= ============= ========= ============= =========== ========= ==========

    Parameters
    ----------
    trial : optuna.trial.Trial or FixedTrial
        Its parameters have the name of the loss in them (``"dsc_alpha"``, ``"tversky_alpha"``).
    losses : sequence of str, default=("ce", "wce", "focal", "dice", "tversky", "dsc")
        Names to choose from. Presets, such as ``"dsc-paper"``, have no parameters to search.
    prefix : str, default=""
        Put before every name, ``"tagger__"`` for a step of a pipeline.

    Returns
    -------
    dict
        For ``set_params``: the loss and all parameters of losses, each with the prefix; None where
        the loss does not take one, so that what another loss had is reset.

    Raises
    ------
    ValueError
        If a name is unknown, or none is given.

    See Also
    --------
    DiceSearchCV : Searches this space by default.

    Notes
    -----
    K is at least 1, because then the weights of ``skdice.losses.log_class_weight`` are never
    negative for any counts.

    Examples
    --------
    >>> from optuna.trial import FixedTrial
    >>> from skdice.model_selection import suggest_loss
    >>> trial = FixedTrial({"loss": "focal", "focal_gamma": 1.5})
    >>> suggest_loss(trial, ("ce", "focal"))
    {'loss': 'focal', 'alpha': None, 'beta': None, 'gamma': 1.5, 'memory': None,
     'ce_weight': None, 'K': None}
    """
    names = [losses] if isinstance(losses, str) else list(losses)
    if not names:
        raise ValueError("suggest_loss needs at least one loss to choose from; got none.")
    for name in names:
        loss_parameters(name)
    loss = trial.suggest_categorical(f"{prefix}loss", names)
    parameters: dict[str, Any] = dict.fromkeys(("loss", *SWITCHED)) | {"loss": loss}
    for name, (low, high, is_log) in _RANGES.get(str(loss), {}).items():
        full_name = f"{prefix}{loss}_{name}"
        parameters[name] = trial.suggest_float(full_name, low, high, log=is_log)
    if loss == "tversky":
        parameters["beta"] = 1 - parameters["alpha"]
    return {f"{prefix}{name}": value for name, value in parameters.items()}


def default_space(estimator: BaseEstimator) -> tuple[Space, dict[str, Any]]:
    """Return the space of loss and rate of the last step, and a first trial with cross-entropy."""
    prefix, final = final_step(estimator)
    known = final.get_params(deep=False) if hasattr(final, "get_params") else {}
    missing = [name for name in ("loss", "lr", *SWITCHED) if name not in known]
    if missing:
        raise ValueError(
            f"space=None searches the loss of an estimator of skdice; {type(final).__name__} has "
            f"no parameter {missing[0]!r}. Give a space."
        )
    # With weights of its own, "wce" is "ce", and K an error.
    has_weights = known.get("class_weight") not in (None, "log")
    losses = [name for name in SEARCHED_LOSSES if not (has_weights and name == "wce")]
    lr, head = known["lr"], None
    if lr == "auto":
        # Rates do not depend on what the encoder sees.
        encoder = describe_encoder(os.fspath(known["model"]), sees_case=False)
        lr, head_lr = open_rates(encoder, has_adapters=known["peft_config"] is not None)
        # A number for lr would be that of the head, too.
        head = head_lr / lr if known["head_lr"] is None else None
    lr = float(lr)

    def space(trial: BaseTrial) -> dict[str, Any]:
        drawn = trial.suggest_float(f"{prefix}lr", lr / _LR_REACH, lr * _LR_REACH, log=True)
        rates = {f"{prefix}lr": drawn}
        if head is not None:
            rates[f"{prefix}head_lr"] = head * drawn
        return suggest_loss(trial, losses, prefix=prefix) | rates

    return space, {f"{prefix}loss": "ce", f"{prefix}lr": lr}


def draw_parameters(space: Space, trial: BaseTrial, estimator: BaseEstimator) -> dict[str, Any]:
    """Return the parameters that a trial is to set on the estimator, checked.

    Where the space switches a loss, the loss parameters that it does not give are reset to None. A
    None that changes nothing is left out.
    """
    drawn = space(trial)
    if not isinstance(drawn, Mapping) or not all(isinstance(name, str) for name in drawn):
        raise TypeError(
            f"The 'space' of DiceSearchCV must return a dict of parameters. Got {drawn!r} instead."
        )
    known, parameters = estimator.get_params(), dict(drawn)
    for name, loss in drawn.items():
        resets = dict.fromkeys(name.removesuffix("loss") + other for other in SWITCHED)
        if name.rpartition("__")[2] == "loss" and resets.keys() <= known.keys():
            if isinstance(loss, str):
                loss_parameters(loss)  # An unknown name is refused before anything is fitted.
            if loss != known[name]:
                parameters = resets | parameters
    parameters = {
        name: value
        for name, value in parameters.items()
        if value is not None
        or name.rpartition("__")[2] not in SWITCHED
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
