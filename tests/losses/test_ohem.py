from functools import partial

import pytest
import torch

from skdice.losses import DiceLoss, SelfAdjustingDiceLoss

from .catalogue import IGNORED, value_and_gradient
from .reference import plain_loss

KINDS = [("classes", None), ("classes", 0), ("flat", None), ("labels", 1)]
each_kind = pytest.mark.parametrize("kind, background", KINDS)
each_average = pytest.mark.parametrize("average", ["micro", "macro", "sum"])


def tied_batch(kind, seed):
    """Return logits of few distinct values, so that many cells tie, and targets, some ignored."""
    generator = torch.Generator().manual_seed(seed)
    n_items = int(torch.randint(1, 14, (), generator=generator))
    shape = (n_items,) if kind == "flat" else (n_items, 3)
    logits = torch.randint(-1, 2, shape, generator=generator).double()
    target_shape = shape if kind == "labels" else (n_items,)
    highest = 3 if kind == "classes" else 2
    is_positive = torch.rand(target_shape, generator=generator) < 0.4
    target = torch.randint(1, highest, target_shape, generator=generator) * is_positive
    target[torch.rand(target_shape, generator=generator) < 0.2] = IGNORED
    return logits, target


@each_kind
@each_average
@pytest.mark.parametrize("ratio", [1e-9, 0.25, 0.5, 1, 1.5, 100.0])
def test_ties(kind, background, average, ratio):
    how = {"average": average, "background": background, "ohem_ratio": ratio}
    for seed in range(6):
        loss, (logits, target) = SelfAdjustingDiceLoss(alpha=0.5, **how), tied_batch(kind, seed)
        expected = value_and_gradient(partial(plain_loss, loss), logits, target)
        torch.testing.assert_close(value_and_gradient(loss, logits, target), expected)


@pytest.mark.parametrize("target, ratio, n_negatives", [
    ([0, 0, 0, 0], 0.5, 1),  # No positive: one negative is still looked at.
    ([1, 1, 1, 0], 5.0, 1),  # No more than there are.
    ([1, 1, 1, 1], 1.0, 0),
    ([1, 0, 0, 0], 2.5, 2),  # 2.5 rounds to even, as Python does.
    ([1, 0, 0, 0], 2.6, 3),
    ([1, IGNORED, 0, IGNORED], 3.0, 1),
])  # fmt: skip
def test_number_of_negatives(target, ratio, n_negatives):
    target = torch.tensor(target)
    logits = torch.tensor([0.5, -3.0, 2.0, -1.0])
    _, gradient = value_and_gradient(DiceLoss(ohem_ratio=ratio), logits, target)
    assert ((gradient != 0) & (target == 0)).sum() == n_negatives
    assert ((gradient != 0) & (target == 1)).sum() == (target == 1).sum()
