"""Tversky loss."""

from typing import Annotated

from torch import Tensor

from .._parameters import number, parametrised
from ._set import SetLoss

_BETA = "Weight of false negatives; larger than alpha favours recall."


@parametrised
class TverskyLoss(SetLoss):
    """Tversky loss, ``1 - (TP + gamma) / (TP + alpha FP + beta FN + gamma)`` (Eq. 10).

    ``TP = sum(p y)``, ``FP = sum(p^2 (1 - y))``, ``FN = sum((1 - p)^2 y)``. With alpha = beta = 0.5
    and smoothing gamma it equals :class:`DiceLoss` with smoothing 2 gamma. The linear form (the
    paper's table) pushes every negative with equal force, and a model may never begin to predict
    rare classes.

    Parameters
    ----------
    %(parameters)s

    %(raises)s

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import TverskyLoss
    >>> loss = TverskyLoss(alpha=0.3, beta=0.7)
    >>> loss(torch.tensor([2.0, -1.0, 0.0]), torch.tensor([1, 0, 0]))
    tensor(0.0537)
    """

    alpha: Annotated[float, number("Weight of false positives.", low=0)] = 0.5
    beta: Annotated[float, number(_BETA, low=0)] = 0.5

    def cells(self, p: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        tp = p * y
        fp = self._power(p) * (1 - y)
        fn = self._power(1 - p) * y
        return tp, tp + self.alpha * fp + self.beta * fn
