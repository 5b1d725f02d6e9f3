"""Forms of the losses that were tried: what they compute, and that they leave nothing behind."""

import pytest
import torch

from benchmarks.loss_variants import VARIANTS, variant
from skdice.losses import CrossEntropyLoss, DiceLoss
from skdice.losses._set import SetLoss
from skdice.losses._span import SpanLoss

# Two windows of three positions, the first of each is "no answer"; the second has no answer.
SPANS = torch.tensor([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 1], [0, 0, 1], [0, 0, 1]])
LOGITS = torch.randn(6, 2, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", [name for name in VARIANTS if name])
def test_nothing_is_left_behind(name):
    before = SpanLoss.sums, SetLoss._sums, SetLoss.value
    with variant(name):
        assert (SpanLoss.sums, SetLoss._sums, SetLoss.value) != before
    assert (SpanLoss.sums, SetLoss._sums, SetLoss.value) == before


def test_without_no_answer():
    answers = SPANS[:, 2] >= 0
    answers[[0, 3]] = False
    loss = SpanLoss(DiceLoss())
    expected = loss(LOGITS[answers], SPANS[answers])
    with variant("without no-answer"):
        torch.testing.assert_close(loss(LOGITS, SPANS), expected)


def test_over_positions():
    p = torch.cat([LOGITS[:3].softmax(0), LOGITS[3:].softmax(0)])
    gold = SPANS[:, :2].float()
    ratio = (2 * (p * gold).sum(0) + 1) / (p.square().sum(0) + gold.sum(0) + 1)
    with variant("over positions"):
        torch.testing.assert_close(SpanLoss(DiceLoss())(LOGITS, SPANS), (1 - ratio).mean())


def test_share_over_positives():
    target = torch.tensor([0, 0, 0, 0, 1, 0])
    set_loss = DiceLoss(background=0)(LOGITS, target)
    entropy = CrossEntropyLoss()(LOGITS, target) * 6
    with variant("share over positives"):
        value = DiceLoss(background=0, ce_weight=0.3)(LOGITS, target)
    torch.testing.assert_close(value, 0.3 * entropy / (1 + 1) + 0.7 * set_loss)
