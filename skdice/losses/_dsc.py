"""Self-adjusting dice loss (DSC)."""

from .._parameters import check_bool, check_number
from ._base import ClassWeight
from ._dice import DiceLoss


class SelfAdjustingDiceLoss(DiceLoss):
    """Self-adjusting dice loss: dice on ``f = (1 - p)^alpha p`` instead of p (Eq. 11 and 12).

    Eq. 12 is not monotone: for a positive it is smallest at ``p = 1 / (1 + alpha)``, and a
    confident false positive is pushed further up. At example level with ``alpha=1`` it collapses to
    "all background" on sparse data; ``alpha=0.01`` (default) or ``detach_weight=True`` do not.

    Parameters
    ----------
    alpha : float, default=0.01
        Exponent of ``1 - p``; 0 is :class:`DiceLoss`.
    gamma : float, default=1.0
        Smoothing. It weighs less in a larger set, so batch size and gamma act as one.
    square_denominator : bool, default=True
        Whether f is squared in the denominator. With the square, easy negatives hardly count:
        their gradient is proportional to p.
    detach_weight : bool, default=False
        Whether ``(1 - p)^alpha`` is a constant for the gradient, which then always points from
        negatives to positives.
    %(set)s

    Raises
    ------
    ValueError
        At the first forward, for parameters, shapes or targets that are not allowed.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import SelfAdjustingDiceLoss
    >>> SelfAdjustingDiceLoss()(torch.tensor([2.0, -1.0, 0.0]), torch.tensor([1, 0, 0]))
    tensor(0.1102)
    """

    def __init__(
        self,
        *,
        alpha: float = 0.01,
        gamma: float = 1.0,
        square_denominator: bool = True,
        detach_weight: bool = False,
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
        super().__init__(
            gamma=gamma,
            square_denominator=square_denominator,
            memory=memory,
            level=level,
            average=average,
            background=background,
            ohem_ratio=ohem_ratio,
            ce_weight=ce_weight,
            class_weight=class_weight,
            ignore_index=ignore_index,
            reduction=reduction,
        )
        self.alpha = alpha
        self.detach_weight = detach_weight

    def known_collapse(self) -> str | None:
        if self.level == "example" and self.alpha >= 0.5 and not self.detach_weight:
            return (
                f"level='example' with alpha={self.alpha:g} is known to collapse to predicting the "
                f"background alone: a positive is pulled to p = {1 / (1 + self.alpha):.2f}, not "
                f"to 1. Use level='batch', a small alpha (0.01) or detach_weight=True."
            )
        return None

    @property
    def _adjustment(self) -> tuple[float, bool]:
        return float(self.alpha), bool(self.detach_weight)

    def _check_parameters(self, owner: str) -> None:
        super()._check_parameters(owner)
        check_number(owner, "alpha", self.alpha, low=0)
        check_bool(owner, "detach_weight", self.detach_weight)
