"""Forms of the losses that were tried and not taken up, for ``benchmarks.set_memory``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from skdice.losses._set import SetLoss
from skdice.losses._span import SpanLoss

_span_sums = SpanLoss.sums
_set_sums = SetLoss._sums


def _is_first(window: Tensor) -> Tensor:
    """Return which positions are the first of their window, those of "no answer"."""
    is_first = torch.ones_like(window, dtype=torch.bool)
    is_first[1:] = window[1:] != window[:-1]
    return is_first


def without_no_answer(
    self: SpanLoss, logits: Tensor, target: Tensor, sample_weight: Tensor | None = None
) -> Tensor:
    """Form the sums of a span loss without the no-answer positions."""
    ignored = _is_first(target[:, 2]).unsqueeze(1) & torch.tensor([True, True, False])
    target = target.masked_fill(ignored, self.loss.ignore_index)
    return _span_sums(self, logits, target, sample_weight)


def over_positions(
    self: SpanLoss, logits: Tensor, target: Tensor, sample_weight: Tensor | None = None
) -> Tensor:
    """Form the sums of squared dice whose p is the softmax over the positions of a window."""
    index = _is_first(target[:, 2]).cumsum(0) - 1
    sums = []
    for z, y in zip(logits.unbind(1), target[:, :2].unbind(1)):
        top = torch.full_like(z, -torch.inf).scatter_reduce(0, index, z.detach(), "amax")
        powers = (z - top[index]).exp()
        p = powers / torch.zeros_like(powers).index_add(0, index, powers)[index]
        gold = (y == 1).to(p)
        sums += [(2 * p * gold).sum(), (p.square() + gold).sum()]
    return torch.stack(sums)


def sums_with_positives(self: SetLoss, items: Any) -> Tensor:
    """Form the sums of a set loss, with the weight of the positives for that of all items."""
    sums = _set_sums(self, items)
    if not self.ce_weight:
        return sums
    keep = self._kept_classes(items.logits.shape[1], sums.device)
    return torch.cat([sums[:-1], (items.weight * keep[items.target]).sum().unsqueeze(0)])


def share_over_positives(self: SetLoss, sums: Tensor) -> Tensor:
    """Return the value of a set loss whose share of cross-entropy is divided by the positives."""
    n_set = len(sums) - 2 if self.ce_weight else len(sums)
    numerator, denominator = sums[:n_set].view(2, -1)
    keep = self._kept_classes(len(numerator), sums.device)
    loss = self._ratio(numerator[None], denominator[None], keep).squeeze(0)
    if not self.ce_weight:
        return loss
    share = sums[-2] / (sums[-1].detach() + self.gamma)
    return self.ce_weight * share + (1 - self.ce_weight) * loss


VARIANTS: dict[str | None, list[tuple[type, str, Callable[..., Tensor]]]] = {
    None: [],
    "without no-answer": [(SpanLoss, "sums", without_no_answer)],
    "over positions": [(SpanLoss, "sums", over_positions)],
    "share over positives": [
        (SetLoss, "_sums", sums_with_positives),
        (SetLoss, "value", share_over_positives),
    ],
}


@contextmanager
def variant(name: str | None) -> Iterator[None]:
    """Train with a form of the losses inside the block."""
    patches = [patch.object(*what) for what in VARIANTS[name]]
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()
