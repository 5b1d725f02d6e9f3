"""The losses and presets by name."""

from collections.abc import Mapping
from typing import Any, Literal

import torch
from sklearn.base import clone

from .._inputs import list_some
from .._parameters import check_number, parameters_of
from ._base import IGNORE_INDEX, Loss
from ._cross_entropy import CrossEntropyLoss, FocalLoss, WeightedCrossEntropyLoss
from ._dice import DiceLoss, SelfAdjustingDiceLoss, TverskyLoss

_CLASSES: dict[str, type[Loss]] = {
    "ce": CrossEntropyLoss,
    "wce": WeightedCrossEntropyLoss,
    "focal": FocalLoss,
    "dice": DiceLoss,
    "tversky": TverskyLoss,
    "dsc": SelfAdjustingDiceLoss,
    "dsc-paper": SelfAdjustingDiceLoss,
    "dsc-official": SelfAdjustingDiceLoss,
}
LOSS_NAMES = tuple(_CLASSES)
# The same, for type checkers.
LossName = Literal["ce", "wce", "focal", "dice", "tversky", "dsc", "dsc-paper", "dsc-official"]
# These names are no single loss: an estimator chooses one from its training rows.
_OF_ESTIMATORS = ("auto", "cv")
# Published settings, independent of our defaults.
_PUBLISHED: dict[str, Any] = {"gamma": 1.0, "memory": 0.0, "level": "example", "background": None}
_PRESETS: dict[str, dict[str, Any]] = {
    "dsc-paper": {**_PUBLISHED, "alpha": 1.0, "average": "macro", "square_denominator": False},
    "dsc-official": {**_PUBLISHED, "alpha": 0.01, "average": "sum", "square_denominator": True},
}
# How "dsc-official" differs where there is one class to find.
_OFFICIAL_OF_ONE = {"level": "batch", "average": "micro", "background": "auto"}
# The parameters of losses that are parameters of estimators as well.
LOSS_PARAMETERS = ("alpha", "beta", "gamma", "memory", "ce_weight")


def loss_parameters(name: str) -> tuple[str, ...]:
    """Return those of alpha, beta, gamma, memory and ce_weight that the named loss has.

    "auto" and "cv", which are for estimators, have none.

    Raises
    ------
    ValueError
        If there is no loss of that name; it lists the names.

    Examples
    --------
    >>> from skdice.losses import loss_parameters
    >>> loss_parameters("tversky")
    ('alpha', 'beta', 'gamma', 'memory', 'ce_weight')
    """
    allowed = (*_OF_ESTIMATORS, *LOSS_NAMES)
    if not isinstance(name, str) or name not in allowed:
        raise ValueError(
            f"The 'loss' parameter must be one of {{{', '.join(map(repr, allowed))}}} or a "
            f"skdice.losses.Loss object. Got {name!r} instead."
        )
    if name in _OF_ESTIMATORS:
        return ()
    # The published settings have no memory.
    left_out = {"memory"} if "-" in name else set()
    known = parameters_of(_CLASSES[name])
    return tuple(taken for taken in LOSS_PARAMETERS if taken in known and taken not in left_out)


def check_loss(
    loss: Any, given: Mapping[str, Any], owner: str, *, class_weight: Any, K: float | None
) -> None:
    """Raise a ValueError unless an estimator can train with a loss and the parameters beside it.

    ``given`` has the parameters for a named loss that are not None. ``class_weight`` and ``K`` are
    the estimator's, and ``owner`` is the name of its class.
    """
    if isinstance(loss, Loss):
        others = {**given, **({} if K is None else {"K": K})}
        for name, value in others.items():
            raise ValueError(
                f"{name!r} must be None with a loss object, got {value!r}: set it on the object, "
                f"for instance loss={type(loss).__name__}(...), or with set_params(loss__...=...)."
            )
        _check_object(loss, class_weight)
        return
    usable = loss_parameters(loss)
    for name, value in given.items():
        if name not in usable:
            takers = [known for known in LOSS_NAMES if name in loss_parameters(known)]
            hint = f"Set loss={takers[0]!r}, or another one that has {name}. "
            first = hint if loss in _OF_ESTIMATORS else ""
            raise ValueError(
                f"{first}{name}={value!r} cannot be used with loss={loss!r}; it is a parameter of "
                f"{list_some(takers)}. To search over several losses, give each its own grid: "
                f"[{{'loss': [{loss!r}]}}, {{'loss': [{takers[0]!r}], {name!r}: [{value!r}]}}]."
            )
        if (check := parameters_of(_CLASSES[loss])[name].check) is not None:
            check(owner, name, value)
    if K is not None and class_weight not in (None, "log"):
        raise ValueError(
            f"K={K!r} means class_weight='log'; got class_weight={class_weight!r}. Drop one."
        )


def _check_object(loss: Loss, class_weight: Any) -> None:
    if loss.reduction != "mean":
        raise ValueError(
            f"A loss to train with must have reduction='mean', got {loss.reduction!r}."
        )
    owner, ignored = type(loss).__name__, loss.ignore_index
    check_number(owner, "ignore_index", ignored, integer=True)
    if ignored >= 0:
        raise ValueError(
            f"A loss to train with must have a negative ignore_index, for classes are numbered 0, "
            f"1, ...; got ignore_index={ignored!r}. Leave it at {IGNORE_INDEX}: {owner}()."
        )
    if class_weight is not None and loss.class_weight is not None:
        raise ValueError(
            "class_weight is given on the estimator and on the loss object; set one of them to "
            "None."
        )
    if class_weight is not None:
        loss = clone(loss).set_params(class_weight=1.0)
    loss.check_parameters()


def check_loss_classes(loss: Any, n_classes: int, *, is_multilabel: bool = False) -> None:
    """Raise a ValueError if a loss object has class weights for another number of classes."""
    if not isinstance(loss, Loss) or loss.class_weight is None:
        return
    target = torch.zeros((1, n_classes) if is_multilabel else 1, dtype=torch.int64)
    loss(torch.zeros(1, n_classes), target)


def make_loss(name: str, *, binary: bool = False, **parameters: Any) -> Loss:
    """Make a loss from its name.

    Parameters
    ----------
    name : str
        ``"ce"``, ``"wce"``, ``"focal"``, ``"dice"``, ``"tversky"``, ``"dsc"``, or a preset:
        ``"dsc-paper"`` (Eq. 12 as printed: example level, macro, alpha 1, linear, all classes) or
        ``"dsc-official"`` (the authors' released setting: squared, alpha 0.01, gamma 1; binary
        pooled over the batch, otherwise one-vs-rest per example, summed over the classes).
    binary : bool, default=False
        Whether there is one class to find against the rest; only ``"dsc-official"`` depends on it.
    **parameters
        Parameters of the loss class; they override those of a preset.

    Returns
    -------
    Loss

    Raises
    ------
    ValueError
        If there is no loss of that name.
    TypeError
        If the loss has no such parameter.

    Examples
    --------
    >>> from skdice.losses import make_loss
    >>> make_loss("dsc-paper")
    SelfAdjustingDiceLoss(alpha=1.0, average='macro', background=None,
                          level='example', memory=0.0, square_denominator=False)
    """
    if name in _OF_ESTIMATORS:
        raise ValueError(f"loss={name!r} is for estimators, and no loss by itself.")
    loss_parameters(name)
    of_one = _OFFICIAL_OF_ONE if binary and name == "dsc-official" else {}
    return _CLASSES[name](**{**_PRESETS.get(name, {}), **of_one, **parameters})
