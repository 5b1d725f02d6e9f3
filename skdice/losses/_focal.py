"""Focal loss."""

from torch import Tensor
from torch.nn.functional import logsigmoid

from .._parameters import check_number
from ._base import ClassWeight, Items, Loss
from ._softmax import gold_logits


class FocalLoss(Loss):
    """Focal loss, ``-(1 - p_gold)^gamma log p_gold`` (Lin et al. 2017; the paper's Table 2).

    Parameters
    ----------
    gamma : float, default=2.0
        Focusing exponent; 0 is cross-entropy.
    class_weight : array-like of shape (n_classes,), optional
        Weight of each gold class (the ``alpha_i`` of the focal loss paper). Of shape (2,) for
        one binary column, (n_classes, 2) if multi-label.
    ignore_index : int, default=-100
        Items with this target take no part and get exactly zero gradient.
    reduction : {"mean", "none"}, default="mean"
        The mean divides by the number of valid items (with ``sample_weight``: by its sum).

    Raises
    ------
    ValueError
        At the first forward, for parameters, shapes or targets that are not allowed.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import FocalLoss
    >>> FocalLoss(gamma=2.0)(torch.tensor([2.0, -1.0]), torch.tensor([1, 0]))
    tensor(0.0122)
    """

    def __init__(
        self,
        *,
        gamma: float = 2.0,
        class_weight: ClassWeight = None,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.gamma = gamma
        self.class_weight = class_weight
        self.ignore_index = ignore_index
        self.reduction = reduction

    def _check_parameters(self, owner: str) -> None:
        super()._check_parameters(owner)
        check_number(owner, "gamma", self.gamma, low=0)

    def _item_losses(self, items: Items) -> Tensor:
        m = gold_logits(items)
        # (1 - p)^gamma as exp(gamma log(1 - p)): finite gradient for every gamma >= 0.
        return (self.gamma * logsigmoid(-m)).exp() * -logsigmoid(m)
