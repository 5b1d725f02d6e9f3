"""Losses that are one and the same function."""

import pytest
import torch
from sklearn.base import clone

from skdice.losses import DiceLoss

from .catalogue import CASES, IGNORED, batch, value_and_gradient


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.kind == "flat"], ids=lambda c: c.id
)
def test_shapes_and_types_of_a_binary_column(case):
    logits, target = batch("flat")
    expected = value_and_gradient(case.loss, logits, target)
    for column in (target, target.unsqueeze(1), target.double(), target.int()):
        value, gradient = value_and_gradient(case.loss, logits.unsqueeze(1), column)
        torch.testing.assert_close((value, gradient.squeeze(1)), expected)


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
