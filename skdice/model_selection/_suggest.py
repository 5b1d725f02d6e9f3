"""The parameters that belong to a loss: which there are, reset, and suggested by Optuna."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._inputs import describe
from ..losses import loss_parameters

if TYPE_CHECKING:
    from optuna.trial import BaseTrial

# Tversky's loss takes all that any named loss takes; K is for class weights.
LOSS_PARAMETERS = (*loss_parameters("tversky"), "K")
SEARCHED_LOSSES = ("ce", "wce", "focal", "dice", "tversky", "dsc")


def switch_loss(parameters: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a loss and its parameters; None for each loss parameter that is not among them.

    What an estimator was given for one loss means another thing to the next one.
    """
    return dict.fromkeys(f"{prefix}{name}" for name in LOSS_PARAMETERS) | dict(parameters)


def suggest_loss(
    trial: BaseTrial,
    losses: Sequence[str] = SEARCHED_LOSSES,
    *,
    free_beta: bool = False,
    prefix: str = "",
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
        Its parameters have the name of the loss in them (``"dsc_alpha"``, ``"tversky_alpha"``), for
        their ranges differ.
    losses : sequence of str, default=("ce", "wce", "focal", "dice", "tversky", "dsc")
        Names to choose from. A preset, such as ``"dsc-paper"``, is taken as it was published:
        nothing of it is searched.
    free_beta : bool, default=False
        Whether Tversky's beta is searched in 0.1..0.9 as well, instead of ``beta = 1 - alpha``.
    prefix : str, default=""
        Put before every name, ``"tagger__"`` for a step of a pipeline.

    Returns
    -------
    dict
        To be given to ``set_params``: ``loss``, ``alpha``, ``beta``, ``gamma``, ``memory``,
        ``ce_weight`` and ``K``, each with the prefix. None where the loss does not take the
        parameter, so that what another loss had is reset.

    Raises
    ------
    TypeError
        If ``trial`` is no trial.
    ValueError
        If a name is unknown, or none is given.

    See Also
    --------
    DiceSearchCV : Searches this space by default.

    Notes
    -----
    gamma is the focusing exponent of "focal" and the smoothing of the set losses. A memory of 1
    uses each step alone. K is at least 1, because then the weights of
    ``skdice.losses.log_class_weight`` are never negative, whatever the counts.

    Examples
    --------
    >>> from optuna.trial import FixedTrial
    >>> from skdice.model_selection import suggest_loss
    >>> trial = FixedTrial({"loss": "focal", "focal_gamma": 1.5})
    >>> suggest_loss(trial, ("ce", "focal"))
    {'loss': 'focal', 'alpha': None, 'beta': None, 'gamma': 1.5, 'memory': None,
     'ce_weight': None, 'K': None}
    """
    if not hasattr(trial, "suggest_categorical"):
        raise TypeError(
            f"suggest_loss takes an Optuna trial, as an objective is given it, not labels; got "
            f"{describe(trial)}. DiceSearchCV searches the losses without an objective."
        )
    names = [losses] if isinstance(losses, str) else list(losses)
    if not names:
        raise ValueError("suggest_loss needs at least one loss to choose from; got none.")
    for name in names:
        loss_parameters(name)
    loss = trial.suggest_categorical(f"{prefix}loss", names)
    parameters = dict.fromkeys(("loss", *LOSS_PARAMETERS)) | {"loss": loss}
    parameters |= _suggest_parameters(trial, str(loss), f"{prefix}{loss}_", free_beta)
    return {f"{prefix}{name}": value for name, value in parameters.items()}


def _suggest_parameters(
    trial: BaseTrial, loss: str, prefix: str, free_beta: bool
) -> dict[str, float]:
    """Return values of the parameters that the loss takes, unless it is a preset."""

    def draw(name: str, low: float, high: float, log: bool = False) -> float:
        return trial.suggest_float(f"{prefix}{name}", low, high, log=log)

    if loss == "wce":
        return {"K": draw("K", 1.0, 10.0, log=True)}
    if loss == "focal":
        return {"gamma": draw("gamma", 0.5, 5.0)}
    if loss not in ("dice", "tversky", "dsc"):
        return {}
    parameters = {}
    if loss == "dsc":
        parameters["alpha"] = draw("alpha", 0.001, 1.0, log=True)
    elif loss == "tversky":
        alpha = parameters["alpha"] = draw("alpha", 0.1, 0.9)
        parameters["beta"] = draw("beta", 0.1, 0.9) if free_beta else 1 - alpha
    parameters["gamma"] = draw("gamma", 0.01, 10.0, log=True)
    parameters["memory"] = draw("memory", 1.0, 100.0, log=True)
    parameters["ce_weight"] = draw("ce_weight", 0.0, 0.5)
    return parameters
