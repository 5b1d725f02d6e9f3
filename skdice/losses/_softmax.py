"""The softmax kernels: the gold logit of an item, and sums over the cells of its other classes.

A cell is an item and a class. All that a loss asks of gold cells is a function of the logit of "the
gold class against all others", ``m = z_gold - logsumexp(other z)``: p_gold is sigmoid(m), and
cross-entropy softplus(-m), so value and gradient stay exact however large m is. These are numbers
per item, left to autograd. What all other cells add is summed up here, with the gradient in closed
form: besides it there is one array of the size of the logits, and scratch for a block of rows.

Only the top class of a row can saturate. For it 1 - p comes from the log-sum-exp of the *other*
logits; autograd through ``(1 - p) ** alpha * p`` loses the value where p rounds to one, and gives
NaN gradients there.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ._base import Items, accumulator

# Cells of a block: on a CPU what its cache holds; elsewhere few launches are worth more.
_CELLS_ON_CPU = 2**18
_CELLS_ON_DEVICE = 2**24


class OtherCells(NamedTuple):
    """What the cells of the classes that are not gold add up to.

    A cell adds ``d = scale * f^power`` with ``f = (1 - p)^alpha * p``; or, with ``gamma``, the loss
    of a cell that is a set of its own, ``d / (d + gamma)``.

    Attributes
    ----------
    over : {"items", "classes"}
        What the sums are taken over.
    alpha : float
    detach_weight : bool
        Whether ``(1 - p)^alpha`` is a constant for the gradient.
    power : {1, 2}
    scale : float
    gamma : float or None
    """

    over: str
    alpha: float
    detach_weight: bool
    power: int
    scale: float
    gamma: float | None = None


def gold_logits(items: Items) -> Tensor:
    """Return the logit of "the gold class against all others", of the shape of the targets."""
    if items.has_columns:
        return torch.where(items.target == 1, items.logits, -items.logits)
    m: Tensor = _GoldLogits.apply(items.logits, items.target)  # type: ignore[no-untyped-call]
    return m


def gold_logits_and_sums(items: Items, others: OtherCells, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gold logits and the sums over the other cells.

    Parameters
    ----------
    items : Items
        With one softmax over the classes of an item.
    others : OtherCells
    weight : Tensor that broadcasts to (n_items, n_classes)
        By which the cells are multiplied.

    Returns
    -------
    gold_logits : Tensor of shape (n_items,)
    sums : Tensor of shape (n_classes,) if over the items, (n_items,) if over the classes
    """
    weight = weight.expand_as(items.logits)
    found: tuple[Tensor, Tensor] = _GoldLogitsAndSums.apply(  # type: ignore[no-untyped-call]
        items.logits, items.target, weight, others
    )
    return found


class _GoldLogits(torch.autograd.Function):
    """m, with dm/dz_gold = 1 and dm/dz_j = -o_j, the softmax over the other classes."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor) -> Tensor:
        gold = target.unsqueeze(1)
        o = logits.clone()
        m = logits.gather(1, gold) - _softmax_without_(o, gold)
        ctx.save_for_backward(o, gold)
        return m.squeeze(1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        o, gold = ctx.saved_tensors
        grad = grad.unsqueeze(1)
        return (o * -grad).scatter_(1, gold, grad), None


class _GoldLogitsAndSums(torch.autograd.Function):
    """The gold logits m, and the sums of :class:`OtherCells`.

    Notation: t is the top class of a row, q = 1 - p_t, and o the softmax over the classes other
    than t, so p_j = o_j q. s_j = dL/dlog f_j of a cell that is not gold is power d_j dL/dd_j, and
    with gamma, where x_j = d_j / (d_j + gamma) is summed, power x_j (1 - x_j) dL/dx_j. For j other
    than t, v_j = dL/dlog p_j is s_j (1 + alpha - alpha / (1 - p_j)), for the gold cell
    dL/dm / (1 - p_gold). For the top class u = s_t ((1 + alpha) q - alpha), or dL/dm where it is
    gold. Then dL/dz_j = v_j - o_j (u + q sum(v)) and dL/dz_t = u - p_t sum(v).
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, target: Tensor, weight: Tensor, others: OtherCells
    ) -> tuple[Tensor, Tensor]:
        gold = target.unsqueeze(1)
        top = torch.empty_like(gold)
        o, d = torch.empty_like(logits), torch.empty_like(logits)
        rest, m = logits.new_empty(2, len(logits), 1)  # rest: the logit of "not the top class"
        over_items = others.over == "items"
        sums = accumulator(logits.new_zeros(logits.shape[1])) if over_items else torch.empty_like(m)
        for rows, scratch in _blocks(logits):
            z, y = logits[rows], gold[rows]
            z_top, t = z.max(1, keepdim=True)
            r = _split_top(z, z_top, t, out=o[rows])
            log_p = z.gather(1, y) - z_top + logsigmoid(-r)
            m[rows] = torch.where(y == t, -r, log_p - torch.log1p(-log_p.exp()))
            top[rows], rest[rows] = t, r
            _cells(o[rows], r, t, y, others, scratch, out=d[rows])
            terms = torch.mul(d[rows], weight[rows], out=scratch)
            if over_items:
                sums += terms.sum(0)
            else:
                sums[rows] = terms.sum(1, keepdim=True)
        ctx.save_for_backward(o, rest, top, gold, weight)
        ctx.others, ctx.cells = others, None if torch.compiler.is_compiling() else d
        return m.squeeze(1), sums.to(logits.dtype) if over_items else sums.squeeze(1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any, grad_m: Tensor, grad_sums: Tensor
    ) -> tuple[Tensor, None, Tensor | None, None]:
        o, rest, top, gold, weight = ctx.saved_tensors
        others: OtherCells = ctx.others
        grad_m = grad_m.unsqueeze(1)
        if others.over == "classes":
            grad_sums = grad_sums.unsqueeze(1)
        alpha = 0.0 if others.detach_weight else others.alpha
        # Without smoothing the loss of a cell does not change.
        slope = (1 + alpha) * (0 if others.gamma == 0 else others.power)
        grad_sums, grad_slopes = grad_sums.expand_as(o), (slope * grad_sums).expand_as(o)
        # The gradient takes the place of the cells, which a second pass computes anew.
        cells, ctx.cells = ctx.cells, None
        grad = torch.empty_like(o) if cells is None else cells
        grad_weight = torch.empty_like(o) if ctx.needs_input_grad[2] else None
        for rows, scratch in _blocks(o):
            o_rows, r, t, y = o[rows], rest[rows], top[rows], gold[rows]
            v = grad[rows]
            if cells is None:
                _cells(o_rows, r, t, y, others, scratch, out=v)
            if grad_weight is not None:
                torch.mul(v, grad_sums[rows], out=grad_weight[rows])
            if others.gamma is not None:
                v.addcmul_(v, v, value=-1)
            v.mul_(weight[rows]).mul_(grad_slopes[rows])
            q, p_top, pull = r.sigmoid(), (-r).sigmoid(), alpha / (1 + alpha)
            u = torch.where(y == t, grad_m[rows], v.gather(1, t) * (q - pull))
            if alpha:
                rest_of_p = torch.addcmul(q.new_ones(()), o_rows, q, value=-1, out=scratch)
                v.addcdiv_(v, rest_of_p, value=-pull)
            v.scatter_(1, y, grad_m[rows] / (1 - o_rows.gather(1, y) * q))
            _fill_(v, t, 0.0)
            total = v.sum(1, keepdim=True)
            v.addcmul_(o_rows, torch.addcmul(u, q, total), value=-1)
            v.scatter_(1, t, torch.addcmul(u, p_top, total, value=-1))
        return grad, None, grad_weight, None


def _softmax_without_(z: Tensor, index: Tensor) -> Tensor:
    """Replace logits by the softmax over all classes but one, (n_items, 1); return log-sum-exp."""
    _fill_(z, index, -torch.inf)
    # The clamps keep rows whose other logits are all -inf from giving inf - inf.
    top = z.amax(1, keepdim=True).clamp_min(torch.finfo(z.dtype).min)
    total = z.sub_(top).exp_().sum(1, keepdim=True).clamp_min(1)
    z.div_(total)
    return total.log_().add_(top)


def _split_top(z: Tensor, z_top: Tensor, top: Tensor, out: Tensor) -> Tensor:
    """Write the softmax over the other classes into out; return the logit of "not the top class".

    Where no other class underflows against the top one, exp(z - z_top) serves for both.
    """
    if z.device.type == "cpu" and not torch.compiler.is_compiling():
        total = _fill_(torch.sub(z, z_top, out=out).exp_(), top, 0.0).sum(1, keepdim=True)
        info = torch.finfo(z.dtype)
        if (total > info.tiny / info.eps).all():  # Elsewhere that would wait for the device.
            out.div_(total)
            return total.log_()
    return _softmax_without_(out.copy_(z), top) - z_top


def _cells(
    o: Tensor,
    rest: Tensor,
    top: Tensor,
    gold: Tensor,
    others: OtherCells,
    scratch: Tensor,
    out: Tensor,
) -> None:
    """Write what the cells add into out, 0 for gold ones."""
    torch.mul(o, rest.sigmoid(), out=out)
    f_top = (-rest).sigmoid()
    if others.alpha:
        rest_of_p = torch.sub(out.new_ones(()), out, out=scratch)
        out.mul_(_power_(rest_of_p, others.alpha))
        f_top = f_top * (others.alpha * logsigmoid(rest)).exp()
    out.scatter_(1, top, f_top)
    if others.power == 2:
        out.square_()
    if others.scale != 1:
        out.mul_(others.scale)
    _fill_(out, gold, 0.0)
    if others.gamma is not None:
        # An empty set without smoothing is 0 / 0: nothing is wrong in it, its loss is 0.
        out.div_(torch.add(out, max(others.gamma, torch.finfo(out.dtype).tiny), out=scratch))


def _power_(x: Tensor, exponent: float) -> Tensor:
    # For other exponents pow is slower than what it stands for.
    return x.pow_(exponent) if exponent in (0.5, 1, 2) else x.log_().mul_(exponent).exp_()


def _fill_(z: Tensor, index: Tensor, value: float) -> Tensor:
    # On a CPU, scatter of a number is slower than of a tensor.
    return z.scatter_(1, index, z.new_full((1, 1), value).expand_as(index))


def _blocks(logits: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Cut the rows in blocks; yield each with scratch of its shape."""
    n_items, n_classes = logits.shape
    size = max(1, n_items)
    if not torch.compiler.is_compiling():  # A compiler cuts by itself.
        n_cells = _CELLS_ON_CPU if logits.device.type == "cpu" else _CELLS_ON_DEVICE
        size = min(size, max(1, n_cells // max(1, n_classes)))
    scratch = logits.new_empty(size, n_classes)
    for start in range(0, n_items, size):
        rows = slice(start, min(start + size, n_items))
        yield rows, scratch[: rows.stop - start]
