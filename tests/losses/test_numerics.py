import itertools

import pytest
import torch
from sklearn.base import clone
from torch.autograd import gradcheck

from skdice.losses import CrossEntropyLoss, DiceLoss, FocalLoss, SelfAdjustingDiceLoss, TverskyLoss

from .catalogue import CASES, IDS, IGNORED, batch, value_and_gradient

GAPS = (5, 17, 30, 50, 88, 176)
SATURATED = [
    CrossEntropyLoss(),
    *(FocalLoss(gamma=gamma) for gamma in (0, 0.5, 1, 2)),
    *(DiceLoss(square_denominator=square) for square in (True, False)),
    *(TverskyLoss(alpha=0.3, beta=0.7, square_denominator=square) for square in (True, False)),
    *(SelfAdjustingDiceLoss(alpha=alpha) for alpha in (0, 0.01, 0.5, 1, 2)),
    *(
        SelfAdjustingDiceLoss(alpha=alpha, square_denominator=False)
        for alpha in (0, 0.01, 0.5, 1, 2)
    ),
    SelfAdjustingDiceLoss(alpha=0.5, level="example", average="macro"),
    SelfAdjustingDiceLoss(alpha=0.5, average="sum", background=0),
]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_gradcheck(case):
    logits, target = batch(case.kind, n_items=4)
    weight = torch.linspace(0.5, 2, 4, dtype=torch.float64)
    assert gradcheck(
        lambda z: case.loss(z, target, weight), logits.requires_grad_(), check_undefined_grad=False
    )


def saturated(kind, gap, gold):
    """Return the logits and target of one item, its gold class right (on top) or wrong."""
    if kind == "classes":
        return [gap / 2, -gap / 2, 0.5 - gap / 2], 0 if gold == "right" else 1
    target = 1 if kind == "positive" else 0
    return float(gap if (target == 1) == (gold == "right") else -gap), target


def gradient_is_difference(loss, gold):
    """Whether the gradient of a gold class at p near 1 is a difference of nearly equal numbers.

    It is ``p - 1`` in torch's cross-entropy, and vanishes at ``p = 1`` in squared set losses.
    """
    if gold == "wrong":
        return False
    if isinstance(loss, CrossEntropyLoss):
        return True
    adjusts = isinstance(loss, SelfAdjustingDiceLoss) and loss.alpha > 0
    return hasattr(loss, "average") and loss.square_denominator and not adjusts


@pytest.mark.parametrize("gold", ["right", "wrong"])
@pytest.mark.parametrize("kind", ["classes", "positive", "negative"])
@pytest.mark.parametrize("loss", SATURATED, ids=repr)
def test_saturation_loses_no_digits(loss, kind, gold):
    """Against float64, which has at gaps of 17 the digits of ``1 - p`` that float32 has lost."""
    # Differences of nearly equal numbers, as 1 - N / D is, lose the digits of small values.
    smallest = 1e-30 if isinstance(loss, FocalLoss) else 1e-3
    for gap in GAPS:
        z, y = saturated(kind, gap, gold)
        (value, gradient), (expected, wanted) = (
            value_and_gradient(loss, torch.tensor([z], dtype=dtype), torch.tensor([y]))
            for dtype in (torch.float32, torch.float64)
        )
        assert value.item() == pytest.approx(expected.item(), rel=0, abs=1e-5), gap
        if expected > smallest:
            assert value.item() == pytest.approx(expected.item(), rel=1e-4, abs=0), gap
        largest = wanted.abs().max().item()
        for got, want in zip(gradient.flatten().tolist(), wanted.flatten().tolist(), strict=True):
            assert got == pytest.approx(want, rel=0, abs=1e-5), gap
            if abs(want) > 1e-30 and not gradient_is_difference(loss, gold):
                # Derivatives of a row sum to zero; small ones are differences of the large ones.
                assert got == pytest.approx(want, rel=1e-4, abs=2e-7 * largest), gap


@pytest.mark.parametrize("loss", [
    DiceLoss(), DiceLoss(average="macro", background=0), DiceLoss(square_denominator=False),
    TverskyLoss(alpha=0.3, beta=0.7), SelfAdjustingDiceLoss(average="macro"),
    SelfAdjustingDiceLoss(ohem_ratio=1.0, background=0),
], ids=repr)  # fmt: skip
@pytest.mark.parametrize("kind", ["classes", "flat"])
def test_large_batches_keep_their_digits(loss, kind):
    logits, target = batch(kind, n_items=65_536)
    # Mostly class 1, and found: a long sum of nearly equal terms, which all round the same way.
    target[torch.arange(len(target)) % 10 != 0] = 1
    logits = logits / 20
    if kind == "classes":
        logits.scatter_add_(1, target.unsqueeze(1), torch.full_like(logits, 9.0))
    else:
        logits += 18 * target - 9
    logits = logits.float()
    value, gradient = value_and_gradient(loss, logits, target)
    expected, expected_gradient = value_and_gradient(loss, logits.double(), target)
    assert value.item() == pytest.approx(expected.item(), rel=0, abs=1e-6)
    torch.testing.assert_close(gradient.double(), expected_gradient, rtol=1e-4, atol=1e-10)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_half_precision_logits(case):
    logits, target = batch(case.kind, n_items=9)
    for dtype, scale in itertools.product((torch.float16, torch.bfloat16), (1, 44, 88)):
        z = (scale * logits / logits.abs().max()).to(dtype)
        value, gradient = value_and_gradient(case.loss, z, target)
        expected, expected_gradient = value_and_gradient(case.loss, z.float(), target)
        assert gradient.isfinite().all()
        torch.testing.assert_close(value, expected, rtol=0, atol=0)
        torch.testing.assert_close(gradient, expected_gradient.to(dtype), rtol=0, atol=0)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_autocast_changes_nothing(case):
    logits, target = batch(case.kind)
    weight = torch.linspace(0.5, 2, len(target))
    for dtype in (torch.float32, torch.bfloat16):
        outside = value_and_gradient(case.loss, logits.to(dtype), target, weight)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            inside = value_and_gradient(case.loss, logits.to(dtype), target, weight)
        assert inside[0].dtype == torch.float32
        torch.testing.assert_close(inside, outside, rtol=0, atol=0)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_ignored_rows_change_nothing(case):
    logits, target = batch(case.kind, n_items=8)
    target[[0, 5]] = IGNORED
    valid = (target != IGNORED).view(len(target), -1).any(1)
    weight = torch.linspace(0.5, 2, len(target), dtype=torch.float64)
    expected = value_and_gradient(case.loss, logits[valid], target[valid], weight[valid])
    for bad in (1.0, float("nan"), float("inf"), -float("inf")):
        logits[~valid] = bad
        weight[~valid] = bad
        value, gradient = value_and_gradient(case.loss, logits, target, weight)
        torch.testing.assert_close((value, gradient[valid]), expected)
        assert (gradient[~valid] == 0).all()


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_nothing_to_learn_from(case):
    logits, target = batch(case.kind, ignored=False, dtype=torch.float32)
    batches = {
        "all ignored": (logits * float("nan"), target.clone().fill_(IGNORED), None),
        "all of weight zero": (logits, target, torch.zeros(len(target))),
        "empty": (logits[:0], target[:0], None),
    }
    for name, arguments in batches.items():
        # Scaled, as a gradient scaler does for float16.
        value, gradient = value_and_gradient(lambda *a: 65_536 * case.loss(*a), *arguments)
        assert value == 0, name
        assert (gradient == 0).all(), name


@pytest.mark.parametrize("level", ["batch", "example"])
@pytest.mark.parametrize("average", ["micro", "macro", "sum"])
@pytest.mark.parametrize(
    "loss", [DiceLoss(), TverskyLoss(), TverskyLoss(beta=0.0), SelfAdjustingDiceLoss()], ids=repr
)
def test_no_smoothing_and_no_positives(loss, level, average):
    loss = clone(loss).set_params(gamma=0.0, level=level, average=average)
    # p^2 passes from ordinary numbers through denormal ones to zero.
    for gap in (1.0, 20.0, 40.0, 43.5, 43.9, 45.0, 60.0, 88.0, 120.0, 200.0):
        for background, z in ((None, [-gap]), (0, [gap, 0.0, 0.5]), (None, [gap, 0.0, 0.5])):
            loss.set_params(background=background)
            logits = torch.tensor([z, z]).squeeze(1)
            value, gradient = value_and_gradient(
                lambda *a: 65_536 * loss(*a), logits, torch.zeros(2).long()
            )
            assert value.isfinite(), gap
            assert gradient.isfinite().all(), gap


@pytest.mark.parametrize("case", [c for c in CASES if c.kind == "classes"], ids=lambda c: c.id)
def test_classes_masked_by_minus_infinity(case):
    logits = torch.tensor([[0.5, -torch.inf, -torch.inf], [-torch.inf, 1.0, 2.0], [1.0, 0.0, 0.5]])
    value, gradient = value_and_gradient(case.loss, logits, torch.tensor([0, 2, 1]))
    far = logits.clamp_min(-1e5)
    expected, expected_gradient = value_and_gradient(case.loss, far, torch.tensor([0, 2, 1]))
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(gradient, expected_gradient)
