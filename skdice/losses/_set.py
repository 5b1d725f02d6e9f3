"""What dice, Tversky and DSC share: a ratio of two sums over a set of items."""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from .._docstrings import fill_docstring
from .._parameters import check_bool, check_number, check_option
from ._base import Items, Loss, accumulator
from ._cross_entropy import cross_entropy
from ._ohem import mined
from ._scores import adjusted_sigmoid
from ._softmax import OtherCells, gold_logits_and_sums

_PARAMETERS = """\
    memory : float or "auto", default="auto"
        About how many optimiser steps the sums are taken over when an estimator trains, see
        :class:`SumsMemory`; 0 uses each step alone. "auto" takes as many steps as have about 40
        positives, at most 10 or a quarter of an epoch. Memory has no effect at example level, nor
        if you call the loss on a batch yourself.
    level : {"batch", "example"}, default="batch"
        Compute one loss from the sums over the batch, or one loss per item and take the mean.
    average : {"micro", "macro", "sum"}, default="micro"
        Pool over the classes too, or take the mean / the sum of the losses of the classes.
    background : int, None or "auto", default="auto"
        Class left out of the sums; None keeps all. With "auto" an estimator leaves out "O" or the
        negative class; if you call the loss yourself, "auto" keeps all.
    ohem_ratio : float, default=0.0
        Keep all positive cells and this many times as many of the hardest negative ones; 0 keeps
        all. Batch level only.
    ce_weight : float in [0, 1], default=0.0
        ``ce_weight * cross-entropy + (1 - ce_weight) * this loss``.
        Cross-entropy is the mean over all items, so where positives are rare a small weight has
        little effect.
    class_weight : array-like of shape (n_classes,), optional
        Weight of the items of each gold class. Of shape (2,) for one binary column,
        (n_classes, 2) if multi-label.
    ignore_index : int, default=-100
        Items with this target take no part and get exactly zero gradient.
    reduction : {"mean", "none"}, default="mean"
        "none" gives a loss per item, at example level only.
"""


class SetLoss(Loss):
    """Base of the losses of the form ``1 - (N + gamma) / (D + gamma)``.

    N and D are sums over the cells (item, class) of a set. The set is the whole batch
    (``level="batch"``, Eq. 8) or one item (``level="example"``; Eq. 7, 10, 12). A subclass says
    what a gold cell adds to N and to D; any other cell adds a multiple of f^2 (or f) to D.

    With one softmax the gold cell of an item is that of its class; with columns every 1 is one.

    In the docstring of a subclass ``%(set)s`` becomes the parameters that all have.
    """

    gamma: float
    square_denominator: bool
    memory: float | str
    level: str
    average: str
    background: int | str | None
    ohem_ratio: float
    ce_weight: float

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        fill_docstring(cls, set=_PARAMETERS)

    def _gold_cell(self, f: Tensor) -> tuple[Tensor, Tensor]:
        """Return what gold cells with scores f add to N and to D."""
        raise NotImplementedError

    @property
    def _other_scale(self) -> float:
        """What cells of other classes add to D, divided by f^2 (linear form: f)."""
        return 1.0

    @property
    def _adjustment(self) -> tuple[float, bool]:
        """The exponent alpha of 1 - p in the score f, and whether (1 - p)^alpha is a constant."""
        return 0.0, False

    def _power(self, f: Tensor) -> Tensor:
        return f.square() if self.square_denominator else f

    @property
    def additive(self) -> bool:
        return not self.ohem_ratio

    @property
    def separable(self) -> bool:
        return self.level == "example"

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
        used, weight = self._cells_in_use(items)
        m = None
        if items.has_columns:
            numerator, denominator = self._cells(used)
            sums = [(used.weight * numerator).sum(0), (weight * denominator).sum(0)]
        else:
            m, others = gold_logits_and_sums(used, self._other_cells("items"), weight)
            numerator, denominator = self._gold_cell(self._scores(m))
            sums = [
                _sum_by_class(used.weight * numerator, used.target, len(others)),
                _sum_by_class(used.weight * denominator, used.target, len(others)) + others,
            ]
        if self.ce_weight:
            m = m if used is items else None  # Of the items that mining kept alone.
            losses = cross_entropy(items) if m is None else -logsigmoid(m)
            sums.append((losses * items.weight).sum().unsqueeze(0))
            sums.append(items.sample_weight.sum().unsqueeze(0))
        return torch.cat(sums)

    def _cells_in_use(self, items: Items) -> tuple[Items, Tensor]:
        """Return the items of the sums; and weights that broadcast to their cells."""
        if not self.ohem_ratio:
            return items, items.weight if items.has_columns else items.weight.unsqueeze(1)
        keep = self._kept_classes(items.logits.shape[1], items.logits.device)
        items, weight = mined(items, keep, self.ohem_ratio, self.average)
        if self.class_weight is not None:
            gold = self._gold_weight(items.logits, items.target)
            weight = weight * (gold if items.has_columns else gold.unsqueeze(1))
        return items, weight

    def _item_losses(self, items: Items) -> Tensor:
        keep = self._kept_classes(items.logits.shape[1], items.logits.device)
        if items.has_columns:
            valid = items.sample_weight > 0  # Items without weight do not count anyway.
            ratios = self._ratio(*self._cells(items), keep & valid)
            losses = _mean(cross_entropy(items), valid) if self.ce_weight else None
        else:
            m, ratios = self._gold_logits_and_item_ratios(items, keep)
            losses = -logsigmoid(m) if self.ce_weight else None
        return ratios if losses is None else self.ce_weight * losses + (1 - self.ce_weight) * ratios

    def _gold_logits_and_item_ratios(self, items: Items, keep: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gold logits and the set losses of items with one softmax, each (n_items,)."""
        micro = self.average == "micro"
        cells = self._other_cells("classes", gamma=None if micro else float(self.gamma))
        m, others = gold_logits_and_sums(items, cells, keep.to(items.logits))
        keep_gold = keep[items.target]
        numerator, denominator = self._gold_cell(self._scores(m))
        if micro:
            numerator = numerator.masked_fill(~keep_gold, 0.0)
            denominator = denominator.masked_fill(~keep_gold, 0.0)
            return m, self._set_loss(numerator, denominator + others)
        total = self._set_loss(numerator, denominator).masked_fill(~keep_gold, 0.0) + others
        return m, total / keep.sum().clamp_min(1) if self.average == "macro" else total

    def _unit_weight(self, weight: Tensor, valid: Tensor) -> Tensor:
        # The valid columns of an item differ in class weight only.
        return weight if weight.ndim == 1 else _mean(weight, valid)

    def _scores(self, logits: Tensor) -> Tensor:
        """Return the scores f of cells from their logits against all other classes."""
        return adjusted_sigmoid(logits, *self._adjustment)

    def _other_cells(self, over: str, gamma: float | None = None) -> OtherCells:
        power = 2 if self.square_denominator else 1
        return OtherCells(over, *self._adjustment, power, self._other_scale, gamma)

    def _cells(self, items: Items) -> tuple[Tensor, Tensor]:
        """Return what the cells of columns add to N and to D, each (n_items, n_classes)."""
        f = self._scores(items.logits)
        numerator, denominator = self._gold_cell(f)
        positive = items.target == 1
        return (
            numerator.masked_fill(~positive, 0.0),
            torch.where(positive, denominator, self._other_scale * self._power(f)),
        )

    def _ratio(self, numerator: Tensor, denominator: Tensor, keep: Tensor) -> Tensor:
        """Return the losses of sets, (n_sets,), from their sums per class, (n_sets, n_classes).

        ``keep`` says which classes count, for all sets alike or, with two dimensions, for each.
        """
        if self.average == "micro":
            numerator = numerator.masked_fill(~keep, 0.0).sum(1)
            denominator = denominator.masked_fill(~keep, 0.0).sum(1)
            return self._set_loss(numerator, denominator)
        total = self._set_loss(numerator, denominator).masked_fill(~keep, 0.0).sum(1)
        return total / keep.sum(-1).clamp_min(1) if self.average == "macro" else total

    def _set_loss(self, numerator: Tensor, denominator: Tensor) -> Tensor:
        """Return ``1 - (N + gamma) / (D + gamma)``."""
        numerator = numerator + self.gamma
        denominator = denominator + self.gamma
        # An empty set without smoothing is 0 / 0: nothing is wrong in it, its loss is 0.
        empty = denominator < torch.finfo(denominator.dtype).tiny
        losses = 1 - numerator / denominator.masked_fill(empty, 1.0)
        losses = losses.masked_fill(empty, 0.0)
        # Rounding may put N one unit above D: the value stays in range, the gradient as it is.
        return losses - losses.detach().clamp_max(0)

    def _kept_classes(self, n_classes: int, device: torch.device) -> Tensor:
        """Return a bool mask, (n_classes,), that is False for the background."""
        keep = torch.ones(n_classes, dtype=torch.bool, device=device)
        if self.background is None or isinstance(self.background, str):
            return keep
        if n_classes == 1:
            if self.background == 0:  # A binary column has no cell of class 0.
                return keep
            raise ValueError(
                f"The 'background' parameter of {type(self).__name__} must be None, 'auto' or 0 "
                f"for one binary column, which scores class 1 alone. Got {self.background!r} "
                f"instead."
            )
        if not 0 <= self.background < n_classes:
            raise ValueError(
                f"The 'background' parameter of {type(self).__name__} must be None, 'auto' or a "
                f"class index in 0..{n_classes - 1}. Got {self.background!r} instead."
            )
        keep[self.background] = False
        return keep

    def _check_parameters(self, owner: str) -> None:
        super()._check_parameters(owner)
        check_number(owner, "gamma", self.gamma, low=0)
        check_bool(owner, "square_denominator", self.square_denominator)
        if isinstance(self.memory, str):
            check_option(owner, "memory", self.memory, ("auto",))
        else:
            check_number(owner, "memory", self.memory, low=0)
        check_option(owner, "level", self.level, ("batch", "example"))
        check_option(owner, "average", self.average, ("micro", "macro", "sum"))
        check_number(owner, "ohem_ratio", self.ohem_ratio, low=0)
        check_number(owner, "ce_weight", self.ce_weight, low=0, high=1, closed="both")
        if isinstance(self.background, str):
            check_option(owner, "background", self.background, ("auto",))
        elif self.background is not None:
            check_number(owner, "background", self.background, low=0, integer=True)
        if self.level == "batch" and self.reduction == "none":
            raise ValueError(
                f"The 'reduction' parameter of {owner} must be 'mean' with level='batch': a batch "
                f"has one loss. Got 'none' instead; level='example' has one loss per item."
            )
        if self.level == "example" and self.ohem_ratio:
            raise ValueError(
                f"The 'ohem_ratio' parameter of {owner} must be 0 with level='example': hard "
                f"examples are chosen within a batch. Got {self.ohem_ratio!r} instead."
            )


def _sum_by_class(values: Tensor, target: Tensor, n_classes: int) -> Tensor:
    # index_add is a running sum: in float32, 65,536 items would cost four digits.
    wide = accumulator(values)
    return wide.new_zeros(n_classes).index_add(0, target, wide).to(values.dtype)


def _mean(values: Tensor, valid: Tensor) -> Tensor:
    """Return the mean of the valid values of each row; 0 for rows without any."""
    return values.masked_fill(~valid, 0.0).sum(1) / valid.sum(1).clamp_min(1)
