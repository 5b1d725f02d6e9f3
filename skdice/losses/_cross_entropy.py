"""Cross-entropy, focal loss, weighted cross-entropy and the paper's class weights."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn.functional import logsigmoid

from .._inputs import list_some
from .._parameters import Parameter, check_number, number, parametrised
from ._base import ClassWeight, Items, Loss

# The K of the paper's class weights if none is given.
_DEFAULT_K = 3.0


@parametrised
class CrossEntropyLoss(Loss, graphable=True):
    """Cross-entropy, ``-log p_gold`` (the paper's Eq. 1).

    Parameters
    ----------
    %(parameters)s

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import CrossEntropyLoss
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    >>> CrossEntropyLoss()(logits, torch.tensor([0, 0]))
    tensor(0.7201)
    """

    def item_losses(self, items: Items) -> Tensor:
        return items.cross_entropy


@parametrised
class FocalLoss(Loss, graphable=True):
    """Focal loss, ``-(1 - p_gold)^gamma log p_gold`` (Lin et al. 2017; the paper's Table 2).

    ``class_weight`` is the ``alpha_i`` of the focal loss paper.

    Parameters
    ----------
    gamma
        Focusing exponent; 0 is cross-entropy.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import FocalLoss
    >>> FocalLoss(gamma=2.0)(torch.tensor([2.0, -1.0]), torch.tensor([1, 0]))
    tensor(0.0122)
    """

    gamma: Annotated[float, number(low=0)] = 2.0

    def item_losses(self, items: Items) -> Tensor:
        m = items.gold_logits
        log_p, log_rest = logsigmoid(m), logsigmoid(-m)
        # (1 - p)^gamma as exp(gamma log(1 - p)): a finite gradient for every gamma >= 0.
        return -(self.gamma * log_rest).exp() * log_p


@parametrised
class WeightedCrossEntropyLoss(CrossEntropyLoss, graphable=True):
    """Weighted cross-entropy, ``-w_gold log p_gold`` (the paper's Eq. 2).

    Parameters
    ----------
    class_weight
        Weight of each class, of shape (n_classes,), for instance :func:`log_class_weight`; (2,) for
        one binary column, (n_classes, 2) if multi-label.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import WeightedCrossEntropyLoss, log_class_weight
    >>> loss = WeightedCrossEntropyLoss(class_weight=log_class_weight([900, 100], K=3))
    >>> loss(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1]))
    tensor(0.2003)
    """

    class_weight: Annotated[ClassWeight, Parameter("array-like")] = field()

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.class_weight is None:
            raise ValueError(
                "The 'class_weight' parameter of WeightedCrossEntropyLoss must be an array of "
                "shape (n_classes,). Got None instead; see skdice.losses.log_class_weight."
            )


def log_class_weight(
    counts: ArrayLike | Mapping[Hashable, float], K: float = 3.0
) -> NDArray[np.float64]:
    """Compute the paper's class weights, ``log10((n - n_t) / n_t + K)`` (section 3.1).

    Parameters
    ----------
    counts : array-like of shape (n_classes,) or mapping of label to count
        Number of items of each class.
    K : float, default=3.0
        Constant added to the imbalance ratio; the larger, the more alike the weights.

    Returns
    -------
    ndarray of shape (n_classes,), float64

    Raises
    ------
    ValueError
        Where a weight is negative or undefined; it names the class.

    Examples
    --------
    >>> from skdice.losses import log_class_weight
    >>> log_class_weight([900, 80, 15, 5], K=3)
    array([0.49291552, 1.161368  , 1.83674597, 2.30535137])
    """
    check_number("log_class_weight", "K", K)
    labels: Sequence[Hashable]
    if isinstance(counts, Mapping):
        labels, counts = list(counts), list(counts.values())
    else:
        labels = range(np.size(counts))
    n_t = np.asarray(counts, dtype=np.float64)
    if n_t.ndim != 1 or len(n_t) < 2:
        raise ValueError(
            f"log_class_weight takes the counts of at least two classes; got shape {n_t.shape}."
        )
    for label, count in zip(labels, n_t):
        if not np.isfinite(count) or count <= 0:
            raise ValueError(
                f"The weight of class {label!r} is undefined: its count is {count:g}, and must be "
                f"greater than 0."
            )
    ratio = (n_t.sum() - n_t) / n_t
    largest = int(ratio.argmin())
    if ratio[largest] + K < 1:
        state = "undefined" if ratio[largest] + K <= 0 else "negative"
        raise ValueError(
            f"The weight log10((n - n_t) / n_t + K) of class {labels[largest]!r} is {state} for "
            f"K={K!r}: it has {n_t[largest]:g} of {n_t.sum():g} items. Allowed is K >= "
            f"{1 - ratio[largest]:.6g} here; K=1 always works."
        )
    weights: NDArray[np.float64] = np.log10(ratio + K)
    return weights


def class_weights(
    kind: str | Mapping[Any, float], K: float | None, labels: Sequence[Any], counts: np.ndarray
) -> np.ndarray:
    """Return the weight of each class from its count; 1 for a class without training items.

    ``kind`` is "balanced", "log" (with ``K``) or a weight for some labels. The counts have the
    shape (n_classes,). With several labels they have the shape (n_labels, 2): the rows without and
    with each label.
    """
    weights = np.ones(counts.shape)
    if isinstance(kind, Mapping):
        # A fold may lack a rare label, so it is a mistake only if y has none of the labels.
        if kind and not any(label in labels for label in kind):
            raise ValueError(
                f"class_weight has no label of y: it has {list_some(list(kind))}; y has "
                f"{list_some(labels)}."
            )
        for label, value in kind.items():
            if label in labels:
                weights[labels.index(label)] = [1, value] if counts.ndim == 2 else value
        if not weights[counts > 0].any():
            raise ValueError(
                f"class_weight must have a weight above zero; it is zero for all labels of y, "
                f"{list_some(labels)}."
            )
        return weights
    if counts.ndim == 2:
        names = [(f"without {label!r}", f"with {label!r}") for label in labels]
        return np.stack([class_weights(kind, K, *row) for row in zip(names, counts)])
    present = counts > 0
    if kind == "balanced":
        weights[present] = counts.sum() / (present.sum() * counts[present])
    elif present.sum() > 1:
        by_label = {labels[i]: float(counts[i]) for i in np.flatnonzero(present).tolist()}
        weights[present] = log_class_weight(by_label, _DEFAULT_K if K is None else K)
    return weights
