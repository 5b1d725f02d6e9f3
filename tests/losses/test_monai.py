"""Agreement with MONAI, an independent implementation of Dice and Tversky losses.

MONAI adds ``smooth_nr`` and ``smooth_dr`` to numerator and denominator; both are our gamma. Its
``alpha`` weighs false positives, as ours does, and its Tversky loss is the linear form.
"""

import itertools

import pytest
import torch

from skdice.losses import DiceLoss, FocalLoss, TverskyLoss

from .catalogue import batch, value_and_gradient

SETS = list(itertools.product(("batch", "example"), ("macro", "sum"), (None, 0)))


@pytest.fixture(scope="module")
def monai():
    return pytest.importorskip("monai.losses")


def assert_same(ours, theirs, kind, scale=1.0, **tolerance):
    def with_positions(z, y, weight):
        # MONAI's tensors are (items, classes, positions); binary targets are floats there.
        if z.ndim == 1:
            return scale * theirs(z[:, None, None], y[:, None, None].to(z))
        return scale * theirs(z.unsqueeze(2), y[:, None, None])

    logits, target = batch(kind, n_items=9, ignored=False)
    torch.testing.assert_close(
        value_and_gradient(ours, logits, target),
        value_and_gradient(with_positions, logits, target),
        **tolerance,
    )


def sets_of_both():
    """Yield parameters of a set for us and for MONAI, and what MONAI's value is multiplied by."""
    for level, average, background in SETS:
        ours = {"level": level, "average": average, "background": background}
        theirs = {
            "batch": level == "batch",
            "reduction": "mean" if average == "macro" else "sum",
            "include_background": background is None,
            "softmax": True,
            "to_onehot_y": True,
        }
        # Its sum runs over the items too; ours is the mean over them.
        yield ours, theirs, 1 / 9 if (level, average) == ("example", "sum") else 1.0


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 7.0])
@pytest.mark.parametrize("square", [True, False])
def test_dice(monai, gamma, square):
    for ours, theirs, scale in sets_of_both():
        criterion = monai.DiceLoss(squared_pred=square, smooth_nr=gamma, smooth_dr=gamma, **theirs)
        loss = DiceLoss(gamma=gamma, square_denominator=square, **ours)
        assert_same(loss, criterion, "classes", scale)


@pytest.mark.parametrize("alpha, beta", [(0.5, 0.5), (0.3, 0.7), (1.0, 0.2)])
def test_tversky(monai, alpha, beta):
    for ours, theirs, scale in sets_of_both():
        criterion = monai.TverskyLoss(
            alpha=alpha, beta=beta, smooth_nr=0.5, smooth_dr=0.5, **theirs
        )
        loss = TverskyLoss(alpha=alpha, beta=beta, gamma=0.5, square_denominator=False, **ours)
        assert_same(loss, criterion, "classes", scale)


@pytest.mark.parametrize("level", ["batch", "example"])
def test_binary(monai, level):
    theirs = {"sigmoid": True, "smooth_nr": 1.0, "smooth_dr": 1.0, "batch": level == "batch"}
    assert_same(DiceLoss(level=level), monai.DiceLoss(squared_pred=True, **theirs), "flat")
    assert_same(
        TverskyLoss(alpha=0.3, beta=0.7, square_denominator=False, level=level),
        monai.TverskyLoss(alpha=0.3, beta=0.7, **theirs),
        "flat",
    )


@pytest.mark.parametrize("gamma", [0.5, 2.0])
def test_focal(monai, gamma):
    # MONAI's mean divides by the number of cells, and it computes in float32.
    criterion = monai.FocalLoss(gamma=gamma, to_onehot_y=True, use_softmax=True)
    assert_same(
        FocalLoss(gamma=gamma), criterion, "classes", 3.0, rtol=1e-5, atol=1e-6, check_dtype=False
    )
