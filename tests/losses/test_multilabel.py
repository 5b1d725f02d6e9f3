"""Multi-label: a sigmoid for each column, against the formulas cell by cell."""

from functools import partial

import pytest
import torch
from torch.nn import functional as F

from skdice.losses import (
    CrossEntropyLoss,
    DiceLoss,
    FocalLoss,
    SelfAdjustingDiceLoss,
    TverskyLoss,
    WeightedCrossEntropyLoss,
)

from .catalogue import IGNORED, LEVELS_AND_AVERAGES, SET_LOSSES, batch, value_and_gradient
from .reference import plain_loss

CLASS_WEIGHT = [[0.5, 2.0], [1.0, 3.0], [0.7, 0.0]]
WEIGHT = torch.tensor([1.0, 2, 3, 0, 0.5, 1, 2], dtype=torch.float64)


def assert_plain(loss):
    logits, target = batch("labels", n_items=7)
    for weight in (None, WEIGHT):
        got = value_and_gradient(loss, logits, target, weight)
        expected = value_and_gradient(partial(plain_loss, loss), logits, target, weight)
        torch.testing.assert_close(got, expected)
        assert (got[1][target == IGNORED] == 0).all()


@pytest.mark.parametrize("level, average", LEVELS_AND_AVERAGES)
@pytest.mark.parametrize("name", SET_LOSSES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"square_denominator": False},
        {"background": 1},
        {"ce_weight": 0.3},
        {"class_weight": CLASS_WEIGHT},
        {"background": 0, "ce_weight": 0.6, "class_weight": CLASS_WEIGHT, "gamma": 0.2},
    ],
    ids=lambda options: "-".join(options),
)
def test_set_losses_are_the_formula(name, level, average, options):
    cls, own = SET_LOSSES[name]
    assert_plain(cls(level=level, average=average, **own, **options))


MANY = {
    "ce": CrossEntropyLoss(),
    "wce": WeightedCrossEntropyLoss(class_weight=CLASS_WEIGHT),
    "focal": FocalLoss(gamma=0.5),
    "dice": DiceLoss(class_weight=CLASS_WEIGHT),
    "dice macro": DiceLoss(average="macro", background=1, ce_weight=0.3),
    "tversky": TverskyLoss(alpha=0.3, beta=0.7, square_denominator=False),
    "dsc": SelfAdjustingDiceLoss(alpha=0.5, average="sum"),
    "dsc example": SelfAdjustingDiceLoss(level="example", class_weight=CLASS_WEIGHT, ce_weight=0.2),
    "dice ohem": DiceLoss(ohem_ratio=1.0, class_weight=CLASS_WEIGHT),
}
each_loss = pytest.mark.parametrize("loss", MANY.values(), ids=MANY.keys())


@pytest.mark.parametrize("name", ["ce", "wce", "focal"])
def test_means_are_the_formula(name):
    assert_plain(MANY[name])


def test_cross_entropy_is_that_of_torch():
    logits, target = batch("labels", ignored=False)
    expected = F.binary_cross_entropy_with_logits(logits, target.double())
    torch.testing.assert_close(CrossEntropyLoss()(logits, target), expected)
    torch.testing.assert_close(CrossEntropyLoss()(logits, target.double()), expected)


def test_losses_of_cells():
    logits, target = batch("labels", n_items=7)
    each = CrossEntropyLoss(reduction="none")(logits, target, WEIGHT)
    assert each.shape == target.shape
    assert (each[target == IGNORED] == 0).all()
    divisor = (WEIGHT.unsqueeze(1) * (target != IGNORED)).sum()
    torch.testing.assert_close(each.sum() / divisor, CrossEntropyLoss()(logits, target, WEIGHT))


@each_loss
def test_one_label_is_one_binary_column(loss):
    loss = type(loss)(**loss.get_params())
    if loss.class_weight is not None:
        loss.set_params(class_weight=CLASS_WEIGHT[0])
    if getattr(loss, "background", None) == 1:
        loss.set_params(background=0)
    logits, target = batch("flat", n_items=7)
    expected, flat_gradient = value_and_gradient(loss, logits, target)
    value, gradient = value_and_gradient(loss, logits[:, None], target[:, None])
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(gradient[:, 0], flat_gradient)


@each_loss
def test_parts_add_up(loss):
    logits, target = batch("labels", n_items=7)
    whole = loss.sums(logits, target, WEIGHT)
    parts = [loss.sums(logits[i], target[i], WEIGHT[i]) for i in torch.arange(7).split(3)]
    assert torch.allclose(sum(parts), whole) is loss.additive


@each_loss
def test_saturated_cells_are_finite(loss):
    logits = torch.tensor([[88.0, -88, 0], [-88, 88, 20]], requires_grad=True)
    for target in ([[1, 0, 1], [0, 1, 0]], [[0, 1, 0], [1, 0, 1]]):
        narrow = value_and_gradient(loss, logits, torch.tensor(target))
        wide = value_and_gradient(loss, logits.double(), torch.tensor(target))
        for got, expected in zip(narrow, wide):
            torch.testing.assert_close(got, expected.float(), rtol=1e-5, atol=1e-6)


@each_loss
def test_nothing_known(loss):
    logits, target = batch("labels")
    value, gradient = value_and_gradient(loss, logits, torch.full_like(target, IGNORED))
    assert value == 0
    assert (gradient == 0).all()
