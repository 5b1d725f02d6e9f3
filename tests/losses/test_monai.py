"""Agreement with MONAI, an independent implementation of Dice and Tversky losses.

MONAI adds ``smooth_nr`` and ``smooth_dr`` to numerator and denominator; both are our gamma. Its
``alpha`` weighs false positives, as ours does, and its denominators are linear for Tversky.
"""

import warnings

import pytest
import torch

from skdice.losses import DiceLoss, FocalLoss, TverskyLoss

from .catalogue import batch, value_and_gradient

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    monai = pytest.importorskip("monai.losses")

LEVELS = {"batch": True, "example": False}
AVERAGES = {"macro": "mean", "sum": "sum"}


def with_monai(criterion, logits, target, scale=1.0):
    def loss(z, y, weight):
        if z.ndim == 1:
            return scale * criterion(z[:, None, None], y[:, None, None])
        return scale * criterion(z.unsqueeze(2), y[:, None, None])

    return value_and_gradient(loss, logits, target)


@pytest.mark.parametrize("background", [None, 0])
@pytest.mark.parametrize("average", ["macro", "sum"])
@pytest.mark.parametrize("level", ["batch", "example"])
@pytest.mark.parametrize("square", [True, False])
@pytest.mark.parametrize("gamma", [1e-3, 1.0, 7.0])
def test_dice(background, average, level, square, gamma):
    logits, target = batch("classes", n_items=9, ignored=False)
    criterion = monai.DiceLoss(
        include_background=background is None,
        to_onehot_y=True,
        softmax=True,
        squared_pred=square,
        reduction=AVERAGES[average],
        smooth_nr=gamma,
        smooth_dr=gamma,
        batch=LEVELS[level],
    )
    ours = DiceLoss(
        gamma=gamma,
        square_denominator=square,
        level=level,
        average=average,
        background=background,
    )
    # MONAI's sum runs over the items too, ours is the mean over them.
    scale = 1 / len(target) if (level, average) == ("example", "sum") else 1.0
    torch.testing.assert_close(
        value_and_gradient(ours, logits, target), with_monai(criterion, logits, target, scale)
    )


@pytest.mark.parametrize("background", [None, 0])
@pytest.mark.parametrize("average", ["macro", "sum"])
@pytest.mark.parametrize("level", ["batch", "example"])
@pytest.mark.parametrize("alpha, beta", [(0.5, 0.5), (0.3, 0.7), (1.0, 0.2)])
def test_tversky(background, average, level, alpha, beta):
    logits, target = batch("classes", n_items=9, ignored=False)
    criterion = monai.TverskyLoss(
        include_background=background is None,
        to_onehot_y=True,
        softmax=True,
        alpha=alpha,
        beta=beta,
        reduction=AVERAGES[average],
        smooth_nr=0.5,
        smooth_dr=0.5,
        batch=LEVELS[level],
    )
    ours = TverskyLoss(
        alpha=alpha,
        beta=beta,
        gamma=0.5,
        square_denominator=False,
        level=level,
        average=average,
        background=background,
    )
    scale = 1 / len(target) if (level, average) == ("example", "sum") else 1.0
    torch.testing.assert_close(
        value_and_gradient(ours, logits, target), with_monai(criterion, logits, target, scale)
    )


@pytest.mark.parametrize("level", ["batch", "example"])
def test_binary(level):
    logits, target = batch("flat", n_items=9, ignored=False)
    shared = {"sigmoid": True, "smooth_nr": 1.0, "smooth_dr": 1.0, "batch": LEVELS[level]}
    for ours, criterion in (
        (DiceLoss(level=level), monai.DiceLoss(squared_pred=True, **shared)),
        (
            TverskyLoss(alpha=0.3, beta=0.7, square_denominator=False, level=level),
            monai.TverskyLoss(alpha=0.3, beta=0.7, **shared),
        ),
    ):
        torch.testing.assert_close(
            value_and_gradient(ours, logits, target), with_monai(criterion, logits, target)
        )


@pytest.mark.parametrize("gamma", [0.5, 2.0])
def test_focal(gamma):
    logits, target = batch("classes", n_items=9, ignored=False)
    # MONAI's mean divides by the number of cells.
    criterion = monai.FocalLoss(gamma=gamma, to_onehot_y=True, use_softmax=True)
    torch.testing.assert_close(
        value_and_gradient(FocalLoss(gamma=gamma), logits, target),
        with_monai(criterion, logits, target, scale=3.0),
    )
