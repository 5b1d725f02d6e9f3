"""Self-adjusting dice loss (DSC)."""

from typing import Annotated

from torch import Tensor
from torch.nn.functional import logsigmoid

from .._parameters import flag, number, parametrised
from ._dice import DiceLoss

_DETACH = """
Whether ``(1 - p)^alpha`` is a constant for the gradient, which then always points from negatives to
positives.
"""


@parametrised
class SelfAdjustingDiceLoss(DiceLoss):
    """Self-adjusting dice loss: dice on ``f = (1 - p)^alpha p`` instead of p (Eq. 11 and 12).

    Eq. 12 is not monotone: for a positive it is smallest at ``p = 1 / (1 + alpha)``, and a
    confident false positive is pushed further up. At example level with ``alpha=1`` it collapses to
    "all background" on sparse data; ``alpha=0.01`` (default) or ``detach_weight=True`` do not.

    Parameters
    ----------
    %(parameters)s

    %(raises)s

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import SelfAdjustingDiceLoss
    >>> SelfAdjustingDiceLoss()(torch.tensor([2.0, -1.0, 0.0]), torch.tensor([1, 0, 0]))
    tensor(0.1102)
    """

    alpha: Annotated[float, number("Exponent of ``1 - p``; 0 is :class:`DiceLoss`.", low=0)] = 0.01
    detach_weight: Annotated[bool, flag(_DETACH)] = False

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
