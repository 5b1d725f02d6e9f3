"""Dice, Tversky and self-adjusting dice (DSC): ratios of two sums over a set of items."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid
from torch.utils.checkpoint import checkpoint

from .._parameters import check_parameters, flag, not_allowed, number, option, parametrised
from ._base import Items, Loss, accumulator, against_rest

# Cells in one block. With several blocks, only the logits are kept for the gradient.
_CELLS = 2**18


@parametrised
class SetLoss(Loss):
    """Base of the losses of the form ``1 - (N + gamma) / (D + gamma)``.

    N and D are sums over the cells (item, class) of a set. The set is the whole batch
    (``level="batch"``, Eq. 8) or one item (``level="example"``; Eq. 7, 10, 12). A subclass says in
    ``cells`` what a cell adds to N and to D.

    With a softmax, the gold cell of an item is that of its class; else every cell with a 1 is gold.

    Parameters
    ----------
    gamma
        Smoothing. It weighs less in a larger set, so tune it together with the batch size.
    square_denominator
        Whether scores are squared in the denominator. With the square, easy negatives hardly count:
        their gradient is proportional to p. The linear form pushes all with equal force.
    memory
        About how many optimiser steps the sums are taken over when an estimator trains, see
        :class:`SumsMemory`; 0 uses each step alone. "auto" takes enough steps for about 40
        positives, but at most a quarter of an epoch. Memory has no effect at example level, nor if
        you call the loss on a batch yourself.
    level
        Compute one loss from the sums over the batch, or one loss per item and take the mean.
    average
        Pool over the classes too, or take the mean / the sum of the losses of the classes.
    background
        Class left out of the sums; None keeps all. With "auto" an estimator leaves out "O" or the
        negative class; if you call the loss yourself, "auto" keeps all.
    ohem_ratio
        For each positive cell, keep this many of the hardest negative cells; 0 keeps all. All
        positive cells are kept. Batch level only.
    ce_weight
        ``ce_weight * cross-entropy + (1 - ce_weight) * this loss``. Cross-entropy is the mean over
        all items, so where positives are rare a small weight has little effect.
    """

    gamma: Annotated[float, number(low=0)] = 1.0
    square_denominator: Annotated[bool, flag()] = True
    memory: Annotated[float | str, number(low=0, words=("auto",))] = "auto"
    level: Annotated[Literal["batch", "example"], option()] = "batch"
    average: Annotated[Literal["micro", "macro", "sum"], option()] = "micro"
    background: Annotated[
        int | str | None, number(low=0, integer=True, optional=True, words=("auto",))
    ] = "auto"
    ohem_ratio: Annotated[float, number(low=0)] = 0.0
    ce_weight: Annotated[float, number(low=0, high=1, closed="both")] = 0.0

    def cells(self, p: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return what cells add to N and to D.

        Parameters
        ----------
        p, y : Tensors of shape (n_items, n_classes)
            Their scores; 1 for gold cells, 0 for all others.
        """
        raise NotImplementedError

    def _scores(self, m: Tensor) -> Tensor:
        """Return the scores of cells, here p, from their logits against all other classes."""
        # Not sigmoid, whose gradient p (1 - p) is 0 from p = 1 in float32 on.
        return logsigmoid(m).exp()

    @property
    def additive(self) -> bool:
        return not self.ohem_ratio

    def value(self, sums: Tensor) -> Tensor:
        if self.separable:
            return super().value(sums)
        n_set = len(sums) - 2 if self.ce_weight else len(sums)
        numerator, denominator = sums[:n_set].view(2, -1)
        keep = self._kept_classes(len(numerator), sums.device)
        loss = self._ratio(numerator[None], denominator[None], keep).squeeze(0)
        if self.ce_weight:
            loss = self.ce_weight * super().value(sums[n_set:]) + (1 - self.ce_weight) * loss
        return loss

    def _sums(self, items: Items) -> Tensor:
        if self.separable:
            return super()._sums(items)
        # Weights of cells, or of items if all cells of an item have the same weight.
        if self.ohem_ratio:
            keep = self._kept_classes(items.logits.shape[1], items.logits.device)
            weight = _mined(items, keep, self.ohem_ratio, self.average)
            if self.class_weight is not None:
                gold = self._gold_weight(items.logits, items.target)
                weight = weight * (gold if items.has_columns else gold.unsqueeze(1))
        else:
            weight = items.weight if items.has_columns else items.weight.unsqueeze(1)

        def sums_of_cells(block: Items, weight: Tensor) -> Tensor:
            # In float32 the sums over many items would cost digits.
            parts = [accumulator(weight * part).sum(0) for part in self._numbers(block)]
            return torch.stack(parts)

        parts = _in_blocks(sums_of_cells, items, weight)
        sums = [torch.stack(parts).sum(0).to(items.logits.dtype).flatten()]
        if self.ce_weight:
            losses = (items.cross_entropy * items.weight).sum()
            sums.append(torch.stack([losses, items.sample_weight.sum()]))
        return torch.cat(sums)

    def _numbers(self, items: Items) -> tuple[Tensor, Tensor]:
        """Return what the cells of items add to N and to D, each (n_items, n_classes)."""
        y = items.is_gold
        logits = items.logits if items.has_columns else against_rest(items.logits)
        numerator, denominator = self.cells(self._scores(logits), y.to(items.logits))
        # Where D is tiny the gradient of N may overflow: 0 times that must not reach other cells.
        return numerator.masked_fill(~y, 0.0), denominator

    def item_losses(self, items: Items) -> Tensor:
        keep = self._kept_classes(items.logits.shape[1], items.logits.device)

        def ratios_of_items(block: Items, valid: Tensor) -> Tensor:
            return self._ratio(*self._numbers(block), keep & valid)

        # Items without weight do not count anyway.
        valid = items.sample_weight > 0 if items.has_columns else items.weight.new_ones(1, 1).bool()
        ratios = torch.cat(_in_blocks(ratios_of_items, items, valid))
        if not self.ce_weight:
            return ratios
        losses = items.cross_entropy
        losses = _mean(losses, valid) if items.has_columns else losses
        return self.ce_weight * losses + (1 - self.ce_weight) * ratios

    def _unit_weight(self, weight: Tensor, counts: Tensor) -> Tensor:
        # The valid columns of an item differ in class weight only; its units are of example level.
        return weight if weight.ndim == 1 else _mean(weight, counts > 0)

    def _ratio(self, numerator: Tensor, denominator: Tensor, keep: Tensor) -> Tensor:
        """Return the losses of sets, (n_sets,), from their sums per class, (n_sets, n_classes).

        ``keep`` says which classes count, for all sets alike or, with two dimensions, for each.
        """
        if self.average == "micro":
            numerator = numerator.masked_fill(~keep, 0.0).sum(1)
            denominator = denominator.masked_fill(~keep, 0.0).sum(1)
        numerator = numerator + self.gamma
        denominator = denominator + self.gamma
        # An empty set without smoothing is 0 / 0: nothing is wrong in it, its loss is 0.
        empty = denominator < torch.finfo(denominator.dtype).tiny
        losses = 1 - numerator / denominator.masked_fill(empty, 1.0)
        losses = losses.masked_fill(empty, 0.0)
        # Rounding may put N one unit above D: the value stays in range, the gradient as it is.
        losses = losses - losses.detach().clamp_max(0)
        if self.average == "micro":
            return losses
        total = losses.masked_fill(~keep, 0.0).sum(1)
        return total / keep.sum(-1).clamp_min(1) if self.average == "macro" else total

    def _kept_classes(self, n_classes: int, device: torch.device) -> Tensor:
        """Return a bool mask, (n_classes,), that is False for the background."""
        left_out = self.background
        # A binary column has no cell of class 0.
        if left_out is None or isinstance(left_out, str) or (n_classes == 1 and left_out == 0):
            return torch.ones(n_classes, dtype=torch.bool, device=device)
        if n_classes == 1 or not 0 <= left_out < n_classes:
            of_column = "0 for one binary column, which scores class 1 alone"
            allowed = of_column if n_classes == 1 else f"a class index in 0..{n_classes - 1}"
            allowed = f"None, 'auto' or {allowed}"
            raise not_allowed(type(self).__name__, "background", allowed, left_out)
        return torch.arange(n_classes, device=device) != left_out

    def check_parameters(self) -> None:
        check_parameters(self)
        owner = type(self).__name__
        if self.level == "batch" and self.reduction == "none":
            raise ValueError(
                f"The 'reduction' parameter of {owner} must be 'mean' with level='batch': a batch "
                f"has one loss. Got 'none' instead; level='example' has one loss per item."
            )
        if self.level == "example" and self.ohem_ratio:
            allowed = "0 with level='example': hard examples are chosen within a batch"
            raise not_allowed(owner, "ohem_ratio", allowed, self.ohem_ratio)


@parametrised
class DiceLoss(SetLoss, graphable=True):
    """Dice loss, ``1 - (2 sum(p y) + gamma) / (sum(p^2) + sum(y^2) + gamma)`` (Eq. 7 and 8).

    Parameters
    ----------
    %(parameters)s

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import DiceLoss
    >>> DiceLoss()(torch.tensor([2.0, -1.0, 0.0]), torch.tensor([1, 0, 0]))
    tensor(0.1086)
    """

    def cells(self, p: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return 2 * p * y, (p**2 if self.square_denominator else p) + y


@parametrised
class TverskyLoss(SetLoss, graphable=True):
    """Tversky loss, ``1 - (TP + gamma) / (TP + alpha FP + beta FN + gamma)`` (Eq. 10).

    ``TP = sum(p y)``, ``FP = sum(p^2 (1 - y))``, ``FN = sum((1 - p)^2 y)``. With alpha = beta = 0.5
    and smoothing gamma it equals :class:`DiceLoss` with smoothing 2 gamma. The linear form (the
    paper's table) pushes every negative with equal force, and a model may never begin to predict
    rare classes.

    Parameters
    ----------
    alpha
        Weight of false positives.
    beta
        Weight of false negatives; larger than alpha favours recall.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import TverskyLoss
    >>> loss = TverskyLoss(alpha=0.3, beta=0.7)
    >>> loss(torch.tensor([2.0, -1.0, 0.0]), torch.tensor([1, 0, 0]))
    tensor(0.0537)
    """

    alpha: Annotated[float, number(low=0)] = 0.5
    beta: Annotated[float, number(low=0)] = 0.5

    def cells(self, p: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        power = 2 if self.square_denominator else 1
        tp, fp, fn = p * y, p**power * (1 - y), (1 - p) ** power * y
        return tp, tp + self.alpha * fp + self.beta * fn


@parametrised
class SelfAdjustingDiceLoss(DiceLoss, graphable=True):
    """Self-adjusting dice loss: dice on ``f = (1 - p)^alpha p`` instead of p (Eq. 11 and 12).

    Eq. 12 is not monotone: for a positive it is smallest at ``p = 1 / (1 + alpha)``, and a
    confident false positive is pushed further up. At example level with ``alpha=1`` it collapses to
    "all background" on sparse data; ``alpha=0.01`` (default) or ``detach_weight=True`` do not.

    Parameters
    ----------
    alpha
        Exponent of ``1 - p``; 0 is :class:`DiceLoss`.
    detach_weight
        Whether ``(1 - p)^alpha`` is a constant for the gradient, which then always points from
        negatives to positives.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import SelfAdjustingDiceLoss
    >>> SelfAdjustingDiceLoss()(torch.tensor([2.0, -1.0, 0.0]), torch.tensor([1, 0, 0]))
    tensor(0.1102)
    """

    alpha: Annotated[float, number(low=0)] = 0.01
    detach_weight: Annotated[bool, flag()] = False

    def _scores(self, m: Tensor) -> Tensor:
        log_p, log_rest = logsigmoid(m), logsigmoid(-m)
        if self.detach_weight:
            log_rest = log_rest.detach()
        # (1 - p)^alpha p: value and gradient stay exact where p rounds to one.
        return (self.alpha * log_rest + log_p).exp()

    def known_collapse(self) -> str | None:
        """Say why these settings are known to collapse in training, or return None."""
        if self.level == "example" and self.alpha >= 0.5 and not self.detach_weight:
            return (
                f"level='example' with alpha={self.alpha:g} is known to collapse to predicting the "
                f"background alone: a positive is pulled to p = {1 / (1 + self.alpha):.2f}, not "
                f"to 1. Use level='batch', a small alpha (0.01) or detach_weight=True."
            )
        return None


def _in_blocks(
    function: Callable[[Items, Tensor], Tensor], items: Items, of_cells: Tensor
) -> list[Tensor]:
    """Call a function for blocks of items, and return its results.

    The gradient of a block computes the function again, so no array but the logits and their
    gradient is as large as all cells.
    """
    n_items, n_classes = items.logits.shape
    size = max(1, _CELLS // max(1, n_classes))
    if n_items <= size or torch.compiler.is_compiling():  # A compiler cuts by itself.
        return [function(items, of_cells)]
    of_cells = of_cells.expand(n_items, -1)
    blocks = zip(*(torch.split(part, size) for part in (*items, of_cells)))
    return [
        checkpoint(function, Items(*parts), cells, use_reentrant=False, preserve_rng_state=False)
        for *parts, cells in blocks
    ]


def _mean(values: Tensor, valid: Tensor) -> Tensor:
    """Return the mean of the valid values of each row; 0 for rows without any."""
    return values.masked_fill(~valid, 0.0).sum(1) / valid.sum(1).clamp_min(1)


def _mined(items: Items, keep: Tensor, ratio: float, average: str) -> Tensor:
    """Return the weights of the cells, (n_items, n_classes), after mining of hard negatives.

    All positive cells are kept, and the k negative ones with the highest p, ``k = min(max(1,
    round(ratio * n_pos)), n_neg)``; ties go by index. ``average="micro"`` ranks the cells of all
    classes together, otherwise each class by itself. Sample weights count as repetitions, so a cell
    of weight 2 may be kept once or twice. Cells of the background have weight 0; ``keep`` is False
    for that class.
    """
    weight = items.sample_weight if items.has_columns else items.sample_weight.unsqueeze(1)
    # Repetitions are counted, so their sums must be exact.
    weight = accumulator(weight) * keep
    positive = weight * items.is_gold
    negative = weight - positive
    logits = items.logits.detach()
    p = logits.sigmoid() if items.has_columns else logits.softmax(1)
    p = p.masked_fill(negative == 0, -1)
    n_lists = 1 if average == "micro" else len(keep)
    n_pos, n_neg = (cells.view(-1, n_lists).sum(0) for cells in (positive, negative))
    k = torch.minimum((ratio * n_pos).round().clamp_min(1), n_neg)
    order = p.view(-1, n_lists).argsort(dim=0, stable=True, descending=True)
    in_order = negative.view(-1, n_lists).gather(0, order)
    before = in_order.cumsum(0) - in_order
    kept = torch.minimum((k - before).clamp_min(0), in_order)
    hard = torch.zeros_like(kept).scatter(0, order, kept).view_as(positive)
    return (positive + hard).to(items.weight.dtype)


@dataclass(eq=False, repr=False)
class SumsMemory:
    """Computes a set loss from the sums of several optimiser steps.

    F1 is a ratio of sums over a corpus. The mean of such ratios over many small steps is not the
    same, and where positives are rare, most steps have none at all. So a running mean u of the sums
    takes the place of the sums of one step: ``loss.value(memory(loss.sums(logits, target)))`` is
    the loss of the remembered steps. Its gradient is taken with respect to the sums of this step,
    at the point u.

    Parameters
    ----------
    n_steps : float
        About how many steps are remembered: the mean of all of them at first, then u moves by
        ``1 / n_steps`` of the way to the sums of each step. Values up to 1 use each step alone.

    Attributes
    ----------
    count : int
        Steps so far.
    mean : Tensor of shape (n_sums,) or None
        u; on the scale of one step, as is the smoothing gamma.

    Notes
    -----
    This is the compositional gradient of Wang, Fang & Liu (2017, "Stochastic compositional gradient
    descent"), which Qi et al. (2021) use for average precision. The gradients of the steps of an
    epoch, all taken at the weights at its start, add up to that of the whole corpus. Without memory
    they do not.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import DiceLoss, SumsMemory
    >>> loss, memory = DiceLoss(), SumsMemory(10)
    >>> step = torch.tensor([2.0, -1.0, 0.0]), torch.tensor([1, 0, 0])
    >>> loss.value(memory(loss.sums(*step)))
    tensor(0.1086)
    >>> without_positives = torch.tensor([0.5, -1.0, 0.0]), torch.tensor([0, 0, 0])
    >>> loss.value(memory(loss.sums(*without_positives)))
    tensor(0.2176)
    """

    n_steps: float
    count: int = field(default=0, init=False)
    mean: Tensor | None = field(default=None, init=False)

    def __call__(self, sums: Tensor, share: Tensor | None = None) -> Tensor:
        """Remember the sums of a whole step; return u, through which the gradient goes to them.

        If :meth:`advance` has counted the step already, ``share`` is what it returned.
        """
        if self.n_steps <= 1:
            return sums
        now = sums.detach()
        moved = self.advance() if share is None else share
        # In place: a CUDA graph finds u where it was.
        self.mean = now.clone() if self.mean is None else self.mean.to(now).lerp_(now, moved)
        return self.mean + (sums - now)

    def advance(self) -> float:
        """Count a step, and return the share of the way that u moves to the sums of the step."""
        self.count += 1
        return max(1 / self.count, 1 / self.n_steps)

    def state_dict(self) -> dict[str, Any]:
        """Return the state, so that a training can be resumed."""
        return {"count": self.count, "mean": self.mean}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that :meth:`state_dict` returned."""
        self.count, self.mean = state["count"], state["mean"]
