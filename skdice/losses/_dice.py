"""Dice loss."""

from torch import Tensor

from ._base import ClassWeight
from ._set import SetLoss


class DiceLoss(SetLoss):
    """Dice loss, ``1 - (2 sum(p y) + gamma) / (sum(p^2) + sum(y^2) + gamma)`` (Eq. 7 and 8).

    Parameters
    ----------
    gamma : float, default=1.0
        Smoothing. It weighs less in a larger set, so batch size and gamma act as one.
    square_denominator : bool, default=True
        Whether p is squared in the denominator. With the square, easy negatives hardly count:
        their gradient is proportional to p.
    %(set)s

    Raises
    ------
    ValueError
        At the first forward, for parameters, shapes or targets that are not allowed.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import DiceLoss
    >>> DiceLoss()(torch.tensor([2.0, -1.0, 0.0]), torch.tensor([1, 0, 0]))
    tensor(0.1086)
    """

    def __init__(
        self,
        *,
        gamma: float = 1.0,
        square_denominator: bool = True,
        memory: float | str = "auto",
        level: str = "batch",
        average: str = "micro",
        background: int | str | None = "auto",
        ohem_ratio: float = 0.0,
        ce_weight: float = 0.0,
        class_weight: ClassWeight = None,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.gamma = gamma
        self.square_denominator = square_denominator
        self.memory = memory
        self.level = level
        self.average = average
        self.background = background
        self.ohem_ratio = ohem_ratio
        self.ce_weight = ce_weight
        self.class_weight = class_weight
        self.ignore_index = ignore_index
        self.reduction = reduction

    def _gold_cell(self, f: Tensor) -> tuple[Tensor, Tensor]:
        return 2 * f, self._power(f) + 1
