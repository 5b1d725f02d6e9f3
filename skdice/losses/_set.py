"""What dice, Tversky and DSC share: a ratio of two sums over a set of items."""

from typing import Any

import torch
from torch import Tensor

from ._base import Items, Loss, accumulator
from ._cross_entropy import cross_entropy
from ._ohem import kept_weight
from ._parameters import check_bool, check_number, check_option
from ._scores import adjusted_scores


class SetLoss(Loss):
    """Base of the losses of the form ``1 - (N + gamma) / (D + gamma)``.

    N and D are sums over the cells (item, class) of a set. The set is the whole batch
    (``level="batch"``, Eq. 8) or one item (``level="example"``; Eq. 7, 10, 12). A subclass says
    what a gold cell adds to N and to D, and what any other cell adds to D.

    With one softmax the gold cell of an item is that of its class; with columns every 1 is one.
    """

    gamma: float
    square_denominator: bool
    level: str
    average: str
    background: Any
    ohem_ratio: float
    ce_weight: float

    def _gold_cell(self, f: Tensor) -> tuple[Tensor, Tensor]:
        """Return what gold cells with scores f add to N and to D."""
        raise NotImplementedError

    def _other_cell(self, f: Tensor) -> Tensor:
        """Return what cells of other classes with scores f add to D."""
        raise NotImplementedError

    def _scores(self, items: Items) -> Tensor:
        return adjusted_scores(items.logits, has_columns=items.has_columns)

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
        numerator, denominator = self._cells(items)
        n_classes = denominator.shape[1]
        weighted = items.weight * numerator
        if items.has_columns:
            cell_weight = items.weight
            numerators = weighted.sum(0)
        else:
            cell_weight = items.weight.unsqueeze(1)
            # index_add is a running sum: in float32, 65,536 items would cost four digits.
            wide = accumulator(weighted)
            numerators = wide.new_zeros(n_classes).index_add(0, items.target, wide)
            numerators = numerators.to(weighted.dtype)
        if self.ohem_ratio:
            cell_weight = kept_weight(
                items, self._kept_classes(n_classes, weighted.device), self.ohem_ratio, self.average
            )
            if self.class_weight is not None:
                gold = self._gold_weight(items.logits, items.target)
                cell_weight = cell_weight * (gold if items.has_columns else gold.unsqueeze(1))
        # Not a matrix product: that too is a running sum, and may be set to less than float32.
        denominators = (cell_weight * denominator).sum(0)
        sums = [numerators, denominators]
        if self.ce_weight:
            sums.append((cross_entropy(items) * items.weight).sum().unsqueeze(0))
            sums.append(items.sample_weight.sum().unsqueeze(0))
        return torch.cat(sums)

    def _item_losses(self, items: Items) -> Tensor:
        numerator, denominator = self._cells(items)
        keep = self._kept_classes(denominator.shape[1], denominator.device)
        losses = cross_entropy(items) if self.ce_weight else None
        if items.has_columns:
            valid = items.sample_weight > 0  # Items without weight do not count anyway.
            keep = keep & valid
            if losses is not None:
                losses = _mean(losses, valid)
        else:
            numerator = torch.zeros_like(denominator).scatter(
                1, items.target.unsqueeze(1), numerator.unsqueeze(1)
            )
        ratios = self._ratio(numerator, denominator, keep)
        return ratios if losses is None else self.ce_weight * losses + (1 - self.ce_weight) * ratios

    def _unit_weight(self, weight: Tensor, valid: Tensor) -> Tensor:
        # The valid columns of an item differ in class weight only.
        return weight if weight.ndim == 1 else _mean(weight, valid)

    def _cells(self, items: Items) -> tuple[Tensor, Tensor]:
        """Return what cells add: gold ones to N, all to D.

        Returns
        -------
        numerator : Tensor of the shape of the targets
            With columns, zero where the target is 0.
        denominator : Tensor of shape (n_items, n_classes)
        """
        f = self._scores(items)
        other = self._other_cell(f)
        if items.has_columns:
            numerator, denominator = self._gold_cell(f)
            positive = items.target == 1
            return (
                numerator.masked_fill(~positive, 0.0),
                torch.where(positive, denominator, other),
            )
        target = items.target.unsqueeze(1)
        numerator, denominator = self._gold_cell(f.gather(1, target))
        return numerator.squeeze(1), other.scatter(1, target, denominator)

    def _ratio(self, numerator: Tensor, denominator: Tensor, keep: Tensor) -> Tensor:
        """Return the losses of sets, (n_sets,), from their sums per class, (n_sets, n_classes).

        ``keep`` says which classes count, for all sets alike or, with two dimensions, for each.
        """
        if self.average == "micro":
            numerator = numerator.masked_fill(~keep, 0.0).sum(1, keepdim=True)
            denominator = denominator.masked_fill(~keep, 0.0).sum(1, keepdim=True)
        numerator = numerator + self.gamma
        denominator = denominator + self.gamma
        # An empty set without smoothing is 0 / 0: nothing is wrong in it, its loss is 0.
        empty = denominator < torch.finfo(denominator.dtype).tiny
        losses = 1 - numerator / denominator.masked_fill(empty, 1.0)
        losses = losses.masked_fill(empty, 0.0)
        # Rounding may put N one unit above D: the value stays in range, the gradient as it is.
        losses = losses - losses.detach().clamp_max(0)
        if self.average == "micro":
            return losses.squeeze(1)
        total = losses.masked_fill(~keep, 0.0).sum(1)
        return total / keep.sum(-1).clamp_min(1) if self.average == "macro" else total

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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        owner = type(self).__name__
        check_number(owner, "gamma", self.gamma, low=0)
        check_bool(owner, "square_denominator", self.square_denominator)
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


def _mean(values: Tensor, valid: Tensor) -> Tensor:
    """Return the mean of the valid values of each row; 0 for rows without any."""
    return values.masked_fill(~valid, 0.0).sum(1) / valid.sum(1).clamp_min(1)
