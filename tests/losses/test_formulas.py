"""Set losses against their formulas as they read, with plain autograd in float64."""

import itertools
from functools import partial

import pytest
import torch
from sklearn.base import clone
from torch.nn import functional as F

from skdice.losses import DiceLoss, SelfAdjustingDiceLoss, TverskyLoss, _set

from .catalogue import CASES, IGNORED, LEVELS_AND_AVERAGES, batch, value_and_gradient

SET_CASES = [case for case in CASES if case.is_set and case.kind == "classes"]
LOSSES = [
    DiceLoss(gamma=0.7),
    TverskyLoss(alpha=0.3, beta=0.6, gamma=0.7),
    TverskyLoss(alpha=0.0, gamma=0.7),
    *(SelfAdjustingDiceLoss(alpha=alpha, gamma=0.7) for alpha in (0.01, 0.5, 1.0, 2.0, 2.5)),
    SelfAdjustingDiceLoss(alpha=0.5, gamma=0.7, detach_weight=True),
]
N_CLASSES = 5
OPTIONS = {
    "plain": {},
    "background": {"background": 2},
    "class_weight": {"class_weight": [0.5, 2.0, 0.0, 1.0, 3.0]},
    "ce_weight": {"ce_weight": 0.3},
    "all": {"background": 0, "class_weight": [0.5, 2.0, 1.0, 1.0, 3.0], "ce_weight": 0.3},
}


def plain_loss(loss, logits, target, sample_weight):
    """Return a set loss as its formula reads."""
    valid = target != IGNORED
    y = target.masked_fill(~valid, 0)
    item = sample_weight.masked_fill(~valid, 0)
    class_weight = loss.class_weight or [1.0] * N_CLASSES
    weight = item * torch.tensor(class_weight, dtype=logits.dtype)[y]
    p = logits.softmax(1)
    gold = F.one_hot(y, N_CLASSES).to(p)
    numerator, denominator = plain_cells(loss, p, gold)
    scored = [c for c in range(N_CLASSES) if c != loss.background]
    numerator, denominator = numerator[:, scored], denominator[:, scored]
    if loss.level == "batch":
        numerator, denominator = (
            (weight.unsqueeze(1) * x).sum(0, keepdim=True) for x in (numerator, denominator)
        )
    if loss.average == "micro":
        numerator, denominator = (x.sum(1, keepdim=True) for x in (numerator, denominator))
    ratios = 1 - (numerator + loss.gamma) / (denominator + loss.gamma)
    ratios = ratios.mean(1) if loss.average == "macro" else ratios.sum(1)
    value = ratios.sum() if loss.level == "batch" else (weight * ratios).sum() / item.sum()
    entropy = (weight * -logits.log_softmax(1).gather(1, y.unsqueeze(1)).squeeze(1)).sum()
    return loss.ce_weight * entropy / item.sum() + (1 - loss.ce_weight) * value


def plain_cells(loss, p, gold):
    power = 2 if loss.square_denominator else 1
    if isinstance(loss, TverskyLoss):
        wrong = loss.alpha * p**power * (1 - gold) + loss.beta * (1 - p) ** power * gold
        return p * gold, p * gold + wrong
    alpha = getattr(loss, "alpha", 0.0)
    weight = (1 - p) ** alpha
    f = (weight.detach() if getattr(loss, "detach_weight", False) else weight) * p
    return 2 * f * gold, f**power + gold


def items(scale, seed=0):
    """Return logits, targets with each class, one ignored, and weights, one of them zero."""
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(23, N_CLASSES, generator=generator, dtype=torch.float64)
    target = torch.arange(23) % N_CLASSES
    target[4] = IGNORED
    weight = torch.linspace(0.5, 2, 23, dtype=torch.float64)
    weight[7] = 0
    return logits, target, weight


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_against_plain_autograd(loss, option, monkeypatch):
    for (level, average), square, scale in itertools.product(
        LEVELS_AND_AVERAGES, (True, False), (1.0, 6.0)
    ):
        loss = clone(loss).set_params(
            level=level, average=average, square_denominator=square, **OPTIONS[option]
        )
        arguments = items(scale)
        expected = value_and_gradient(partial(plain_loss, loss), *arguments)
        for n_cells in (2**18, 20):  # one block, and many
            monkeypatch.setattr(_set, "_CELLS", n_cells)
            got = value_and_gradient(loss, *arguments)
            torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("case", SET_CASES, ids=lambda case: case.id)
def test_saturated_and_ordinary_rows_side_by_side(case, monkeypatch):
    logits, target = batch("classes", n_items=8)
    logits[2] = torch.tensor([88.0, -88.0, -87.5])
    logits[5] = torch.tensor([-88.0, 60.0, -20.0])
    expected = value_and_gradient(case.loss, logits, target)
    monkeypatch.setattr(_set, "_CELLS", 3)
    torch.testing.assert_close(value_and_gradient(case.loss, logits, target), expected)
    value, gradient = value_and_gradient(case.loss, logits.float(), target)
    torch.testing.assert_close(value.double(), expected[0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradient.double(), expected[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("level, average", LEVELS_AND_AVERAGES)
def test_gradient_of_sample_weights(level, average):
    logits, target, weight = items(2.0)
    target[4] = 1
    loss = SelfAdjustingDiceLoss(alpha=0.5, level=level, average=average, background=0)
    weight.requires_grad_()
    (gradient,) = torch.autograd.grad(loss(logits, target, weight), weight)
    (expected,) = torch.autograd.grad(plain_loss(loss, logits, target, weight), weight)
    torch.testing.assert_close(gradient, expected)
