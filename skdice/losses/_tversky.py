"""Tversky loss."""

from torch import Tensor

from .._parameters import check_number
from ._base import ClassWeight
from ._set import SetLoss


class TverskyLoss(SetLoss):
    """Tversky loss, ``1 - (TP + gamma) / (TP + alpha FP + beta FN + gamma)`` (Eq. 10).

    ``TP = sum(p y)``, ``FP = sum(p^2 (1 - y))``, ``FN = sum((1 - p)^2 y)``. With alpha = beta = 0.5
    and smoothing gamma it equals :class:`DiceLoss` with smoothing 2 gamma.

    Parameters
    ----------
    alpha : float, default=0.5
        Weight of false positives.
    beta : float, default=0.5
        Weight of false negatives; larger than alpha favours recall.
    gamma : float, default=1.0
        Smoothing. It weighs less in a larger set, so batch size and gamma act as one.
    square_denominator : bool, default=True
        Whether p in FP and 1 - p in FN are squared. The linear form (the paper's table) pushes
        every negative with equal force, and a model may never begin to predict rare classes.
    %(set)s

    Raises
    ------
    ValueError
        At the first forward, for parameters, shapes or targets that are not allowed.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import TverskyLoss
    >>> loss = TverskyLoss(alpha=0.3, beta=0.7)
    >>> loss(torch.tensor([2.0, -1.0, 0.0]), torch.tensor([1, 0, 0]))
    tensor(0.0537)
    """

    def __init__(
        self,
        *,
        alpha: float = 0.5,
        beta: float = 0.5,
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
        self.alpha = alpha
        self.beta = beta
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
        return f, f + self.beta * self._power(1 - f)

    @property
    def _other_scale(self) -> float:
        return float(self.alpha)

    def _check_parameters(self, owner: str) -> None:
        super()._check_parameters(owner)
        check_number(owner, "alpha", self.alpha, low=0)
        check_number(owner, "beta", self.beta, low=0)
