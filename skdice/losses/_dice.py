"""Dice, Tversky and self-adjusting dice (DSC) loss: what a cell adds to each of the two sums."""

from typing import Annotated

from torch import Tensor
from torch.nn.functional import logsigmoid

from .._parameters import flag, number, parametrised
from ._set import SetLoss


@parametrised
class DiceLoss(SetLoss):
    """Dice loss, ``1 - (2 sum(p y) + gamma) / (sum(p^2) + sum(y^2) + gamma)`` (Eq. 7 and 8).

    Parameters
    ----------
    %(parameters)s

    %(raises)s

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import DiceLoss
    >>> DiceLoss()(torch.tensor([2.0, -1.0, 0.0]), torch.tensor([1, 0, 0]))
    tensor(0.1086)
    """

    def cells(self, p: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return 2 * p * y, (p**2 if self.square_denominator else p) + y


@parametrised
class TverskyLoss(SetLoss):
    """Tversky loss, ``1 - (TP + gamma) / (TP + alpha FP + beta FN + gamma)`` (Eq. 10).

    ``TP = sum(p y)``, ``FP = sum(p^2 (1 - y))``, ``FN = sum((1 - p)^2 y)``. With alpha = beta = 0.5
    and smoothing gamma it equals :class:`DiceLoss` with smoothing 2 gamma. The linear form (the
    paper's table) pushes every negative with equal force, and a model may never begin to predict
    rare classes.

    Parameters
    ----------
    alpha
        Weight of false positives.
    beta
        Weight of false negatives; larger than alpha favours recall.

    %(raises)s

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import TverskyLoss
    >>> loss = TverskyLoss(alpha=0.3, beta=0.7)
    >>> loss(torch.tensor([2.0, -1.0, 0.0]), torch.tensor([1, 0, 0]))
    tensor(0.0537)
    """

    alpha: Annotated[float, number(low=0)] = 0.5
    beta: Annotated[float, number(low=0)] = 0.5

    def cells(self, p: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        power = 2 if self.square_denominator else 1
        tp, fp, fn = p * y, p**power * (1 - y), (1 - p) ** power * y
        return tp, tp + self.alpha * fp + self.beta * fn


@parametrised
class SelfAdjustingDiceLoss(DiceLoss):
    """Self-adjusting dice loss: dice on ``f = (1 - p)^alpha p`` instead of p (Eq. 11 and 12).

    Eq. 12 is not monotone: for a positive it is smallest at ``p = 1 / (1 + alpha)``, and a
    confident false positive is pushed further up. At example level with ``alpha=1`` it collapses to
    "all background" on sparse data; ``alpha=0.01`` (default) or ``detach_weight=True`` do not.

    Parameters
    ----------
    alpha
        Exponent of ``1 - p``; 0 is :class:`DiceLoss`.
    detach_weight
        Whether ``(1 - p)^alpha`` is a constant for the gradient, which then always points from
        negatives to positives.

    %(raises)s

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import SelfAdjustingDiceLoss
    >>> SelfAdjustingDiceLoss()(torch.tensor([2.0, -1.0, 0.0]), torch.tensor([1, 0, 0]))
    tensor(0.1102)
    """

    alpha: Annotated[float, number(low=0)] = 0.01
    detach_weight: Annotated[bool, flag()] = False

    def _scores(self, m: Tensor) -> Tensor:
        log_p, log_rest = logsigmoid(m), logsigmoid(-m)
        if self.detach_weight:
            log_rest = log_rest.detach()
        # (1 - p)^alpha p: value and gradient stay exact where p rounds to one.
        return (self.alpha * log_rest + log_p).exp()

    def known_collapse(self) -> str | None:
        if self.level == "example" and self.alpha >= 0.5 and not self.detach_weight:
            return (
                f"level='example' with alpha={self.alpha:g} is known to collapse to predicting the "
                f"background alone: a positive is pulled to p = {1 / (1 + self.alpha):.2f}, not "
                f"to 1. Use level='batch', a small alpha (0.01) or detach_weight=True."
            )
        return None
