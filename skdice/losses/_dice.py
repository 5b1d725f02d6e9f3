"""Dice loss."""

from torch import Tensor

from .._parameters import parametrised
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
        return 2 * p * y, self._power(p) + y
