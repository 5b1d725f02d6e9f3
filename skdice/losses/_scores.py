"""Self-adjusting scores (1 - p)^alpha p of a logit against all others."""

from torch import Tensor
from torch.nn.functional import logsigmoid


def adjusted_sigmoid(logits: Tensor, alpha: float = 0.0, detach_weight: bool = False) -> Tensor:
    """Return ``f = (1 - p)^alpha * p`` with p = sigmoid(logits) (Eq. 12 of the paper).

    Value and gradient stay exact where p rounds to one.

    Parameters
    ----------
    logits : Tensor
    alpha : float
        Exponent of ``1 - p``; 0 gives the probabilities.
    detach_weight : bool
        Whether ``(1 - p)^alpha`` is a constant for the gradient.
    """
    if alpha == 0:
        # Not sigmoid, whose gradient p (1 - p) is 0 from p = 1 in float32 on.
        return logsigmoid(logits).exp()
    log_rest = logsigmoid(-logits)
    if detach_weight:
        log_rest = log_rest.detach()
    return (alpha * log_rest + logsigmoid(logits)).exp()
