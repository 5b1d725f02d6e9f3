"""Class probabilities p and self-adjusted scores (1 - p)^alpha p of logits, value and gradient.

Autograd through ``(1 - p) ** alpha * p`` loses the value where p rounds to one and gives NaN
gradients there. Both are computed here from "this class against the rest": only the top class of a
row can saturate, and for it ``log(1 - p)`` comes from the log-sum-exp of the *other* logits.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


def adjusted_scores(
    logits: Tensor, alpha: float = 0.0, detach_weight: bool = False, *, has_columns: bool
) -> Tensor:
    """Return ``f = (1 - p)^alpha * p`` for every item and class (Eq. 12 of the paper).

    Parameters
    ----------
    logits : Tensor of shape (n_items, n_classes)
    alpha : float
        Exponent of ``1 - p``; 0 gives the probabilities.
    detach_weight : bool
        Whether ``(1 - p)^alpha`` is a constant for the gradient.
    has_columns : bool
        Whether p is the sigmoid of each column, not the softmax over the classes.
    """
    if has_columns:
        if alpha == 0:
            # Not sigmoid, whose gradient p (1 - p) is 0 from p = 1 in float32 on.
            return logsigmoid(logits).exp()
        log_rest = logsigmoid(-logits)
        if detach_weight:
            log_rest = log_rest.detach()
        return (alpha * log_rest + logsigmoid(logits)).exp()
    if alpha == 0:
        return _Softmax.apply(logits)
    return _AdjustedSoftmax.apply(logits, alpha, detach_weight)


class _Softmax(torch.autograd.Function):
    """Softmax whose gradient keeps its relative precision in saturated rows."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        p = logits.softmax(1)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (p,) = ctx.saved_tensors
        weighted = grad * p
        out = torch.addcmul(weighted, p, weighted.sum(1, keepdim=True), value=-1)
        # A row of the gradient sums to zero; the top class gets it without cancellation.
        top = p.argmax(1, keepdim=True)
        out.scatter_(1, top, 0)
        return out.scatter_(1, top, -out.sum(1, keepdim=True))


class _AdjustedSoftmax(torch.autograd.Function):
    """``(1 - p)^alpha * p`` of a softmax, alpha > 0.

    Notation: t is the top class of a row, q = 1 - p, o = softmax over the classes other than t, so
    that p_j = o_j q_t. With u_c = g_c df_c/dp_c p_c q_c and v_c = u_c / q_c,
    dL/dz_j = v_j - o_j (u_t + q_t sum_{c != t} v_c) and dL/dz_t = u_t - p_t sum_{c != t} v_c.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, alpha: float, detach_weight: bool) -> Tensor:
        top_logit, top = logits.max(1, keepdim=True)
        others = logits.scatter(1, top, -torch.inf)
        log_sum = others.logsumexp(1, keepdim=True)
        rest = log_sum - top_logit  # logit of "not the top class"
        # The clamp keeps rows whose other logits are all -inf from giving inf - inf.
        o = others.sub_(log_sum.clamp_min(torch.finfo(logits.dtype).min)).exp_()
        p = o * rest.sigmoid()
        f = (1 - p).pow_(alpha).mul_(p)
        f.scatter_(1, top, (alpha * logsigmoid(rest) + logsigmoid(-rest)).exp())
        ctx.save_for_backward(o, f, rest, top)
        ctx.alpha, ctx.detach_weight = alpha, detach_weight
        return f

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        o, f, rest, top = ctx.saved_tensors
        alpha = 0.0 if ctx.detach_weight else ctx.alpha
        p_top, q_top = (-rest).sigmoid(), rest.sigmoid()
        v = grad * f
        u_top = v.gather(1, top) * (q_top - alpha * p_top)
        if alpha:
            p = o * q_top
            v = torch.addcmul(v, v, p.div_(1 - p), value=-alpha)
        v.scatter_(1, top, 0)
        v_sum = v.sum(1, keepdim=True)
        out = torch.addcmul(v, o, torch.addcmul(u_top, q_top, v_sum), value=-1)
        return out.scatter_(1, top, torch.addcmul(u_top, p_top, v_sum, value=-1)), None, None
