"""Cross-entropy."""

from typing import ClassVar

from torch import Tensor

from .._parameters import parametrised
from ._base import Items, Loss


@parametrised
class CrossEntropyLoss(Loss):
    """Cross-entropy, ``-log p_gold`` (the paper's Eq. 1).

    Parameters
    ----------
    %(parameters)s

    %(raises)s

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import CrossEntropyLoss
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    >>> CrossEntropyLoss()(logits, torch.tensor([0, 0]))
    tensor(0.7201)
    """

    is_over_positions: ClassVar[bool] = True

    def item_losses(self, items: Items) -> Tensor:
        return items.cross_entropy
