"""Losses that are one and the same function."""

import pytest
import torch
from sklearn.base import clone
from torch.nn import functional as F

from skdice.losses import (
    CrossEntropyLoss,
    DiceLoss,
    SelfAdjustingDiceLoss,
)

from .catalogue import CASES, IGNORED, LEVELS_AND_AVERAGES, batch, value_and_gradient

SETS = [
    {"level": level, "average": average, "background": background, "square_denominator": square}
    for level, average in LEVELS_AND_AVERAGES
    for background in (None, 0)
    for square in (True, False)
]


def assert_same(first, second, kind, weight=None, **tolerance):
    logits, target = batch(kind, n_items=9)
    torch.testing.assert_close(
        value_and_gradient(first, logits, target, weight),
        value_and_gradient(second, logits, target, weight),
        **tolerance,
    )


@pytest.mark.parametrize("kind", ["classes", "flat"])
@pytest.mark.parametrize("parameters", SETS, ids=str)
def test_dsc_without_adjustment_is_dice(kind, parameters):
    assert_same(SelfAdjustingDiceLoss(alpha=0, **parameters), DiceLoss(**parameters), kind)
    almost = SelfAdjustingDiceLoss(alpha=1e-9, **parameters)
    assert_same(almost, DiceLoss(**parameters), kind, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.kind == "flat"], ids=lambda c: c.id
)
def test_two_columns_without_background_are_one_column(case):
    difference, target = batch("flat", n_items=9)
    weight = torch.linspace(0.5, 2, 9, dtype=torch.float64)
    other = torch.linspace(-1, 1, 9, dtype=torch.float64)
    value, gradient = value_and_gradient(case.loss, difference, target, weight)
    for positive in (0, 1):
        columns = torch.stack([other, other + difference], 1)
        gold, loss = target, clone(case.loss)
        if case.is_set:
            loss.set_params(background=1 - positive)
        if positive == 0:
            columns, gold = columns.flip(1), torch.where(target == IGNORED, target, 1 - target)
            if loss.class_weight is not None:
                loss.set_params(class_weight=loss.class_weight[::-1])
        two_value, two_gradient = value_and_gradient(loss, columns, gold, weight)
        torch.testing.assert_close(two_value, value)
        torch.testing.assert_close(two_gradient[:, positive], gradient)
        torch.testing.assert_close(two_gradient[:, 1 - positive], -gradient)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.kind == "flat"], ids=lambda c: c.id
)
def test_shapes_and_types_of_a_binary_column(case):
    logits, target = batch("flat")
    expected = value_and_gradient(case.loss, logits, target)
    for column in (target, target.unsqueeze(1), target.double(), target.int()):
        value, gradient = value_and_gradient(case.loss, logits.unsqueeze(1), column)
        torch.testing.assert_close((value, gradient.squeeze(1)), expected)


@pytest.mark.parametrize("n_ignored", [0, 3])
def test_cross_entropy_is_that_of_torch(n_ignored):
    logits, target = batch("classes", n_items=9, ignored=False)
    target[:n_ignored] = IGNORED
    expected = value_and_gradient(lambda z, y, w: F.cross_entropy(z, y), logits, target)
    torch.testing.assert_close(value_and_gradient(CrossEntropyLoss(), logits, target), expected)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.kind == "classes"], ids=lambda c: c.id
)
def test_any_ignore_index(case):
    logits, target = batch("classes")
    expected = value_and_gradient(case.loss, logits, target)
    for ignore_index in (-1, 7, 255):
        loss = clone(case.loss).set_params(ignore_index=ignore_index)
        renamed = torch.where(target == IGNORED, ignore_index, target)
        torch.testing.assert_close(value_and_gradient(loss, logits, renamed), expected)


def test_a_class_may_be_ignored():
    logits, target = batch("classes", ignored=False)
    expected = DiceLoss()(logits[target != 0], target[target != 0])
    torch.testing.assert_close(DiceLoss(ignore_index=0)(logits, target), expected)
