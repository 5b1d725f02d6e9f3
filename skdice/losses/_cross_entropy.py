"""Cross-entropy."""

from torch import Tensor
from torch.nn import functional as F

from ._base import ClassWeight, Items, Loss


class CrossEntropyLoss(Loss):
    """Cross-entropy, ``-log p_gold`` (the paper's Eq. 1).

    Parameters
    ----------
    class_weight : array-like of shape (n_classes,), optional
        Multiplies the loss of every item by the weight of its gold class. Of shape (2,) for
        one binary column, (n_classes, 2) if multi-label.
    ignore_index : int, default=-100
        Items with this target take no part and get exactly zero gradient.
    reduction : {"mean", "none"}, default="mean"
        The mean divides by the number of valid items (with ``sample_weight``: by its sum), not by
        the sum of the class weights as ``torch.nn.CrossEntropyLoss`` does.

    Raises
    ------
    ValueError
        At the first forward, for parameters, shapes or targets that are not allowed.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import CrossEntropyLoss
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    >>> CrossEntropyLoss()(logits, torch.tensor([0, 0]))
    tensor(0.7201)
    """

    def __init__(
        self,
        *,
        class_weight: ClassWeight = None,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.class_weight = class_weight
        self.ignore_index = ignore_index
        self.reduction = reduction

    def _item_losses(self, items: Items) -> Tensor:
        return cross_entropy(items)


def cross_entropy(items: Items) -> Tensor:
    """Return ``-log p_gold``, of the shape of the targets."""
    if items.has_columns:
        target = items.target.to(items.logits.dtype)
        return F.binary_cross_entropy_with_logits(items.logits, target, reduction="none")
    return F.cross_entropy(items.logits, items.target, reduction="none")
