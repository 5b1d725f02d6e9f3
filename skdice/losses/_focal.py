"""Focal loss."""

from typing import Annotated

from torch import Tensor
from torch.nn.functional import logsigmoid

from .._parameters import number, parametrised
from ._base import Items, Loss


@parametrised
class FocalLoss(Loss):
    """Focal loss, ``-(1 - p_gold)^gamma log p_gold`` (Lin et al. 2017; the paper's Table 2).

    ``class_weight`` is the ``alpha_i`` of the focal loss paper.

    Parameters
    ----------
    %(parameters)s

    %(raises)s

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import FocalLoss
    >>> FocalLoss(gamma=2.0)(torch.tensor([2.0, -1.0]), torch.tensor([1, 0]))
    tensor(0.0122)
    """

    gamma: Annotated[float, number("Focusing exponent; 0 is cross-entropy.", low=0)] = 2.0

    def item_losses(self, items: Items) -> Tensor:
        m = items.gold_logits
        log_p, log_rest = logsigmoid(m), logsigmoid(-m)
        # (1 - p)^gamma as exp(gamma log(1 - p)): a finite gradient for every gamma >= 0.
        return -(self.gamma * log_rest).exp() * log_p
