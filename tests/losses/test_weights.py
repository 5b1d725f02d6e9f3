"""Sample weights, class weights, and what a mean divides by."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

from skdice.losses import CrossEntropyLoss, DiceLoss, FocalLoss, TverskyLoss

from .catalogue import CASES, IDS, IGNORED, SET_LOSSES, batch, value_and_gradient

SET_CASES = [case for case in CASES if case.is_set]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_weights_are_repetitions(case):
    for seed in range(3):
        logits, target = batch(case.kind, n_items=10, seed=seed)
        times = torch.randint(0, 4, (10,), generator=torch.Generator().manual_seed(seed))
        rows = torch.arange(10).repeat_interleave(times)
        value, gradient = value_and_gradient(case.loss, logits, target, times)
        expected, repeated = value_and_gradient(case.loss, logits[rows], target[rows])
        torch.testing.assert_close(value, expected)
        torch.testing.assert_close(gradient, torch.zeros_like(logits).index_add(0, rows, repeated))


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_weights_of_one_are_no_weights(case):
    logits, target = batch(case.kind)
    expected = value_and_gradient(case.loss, logits, target)
    weight = torch.ones(len(target), dtype=torch.int64)
    torch.testing.assert_close(value_and_gradient(case.loss, logits, target, weight), expected)
    if case.loss.class_weight is None:
        n_classes = 3 if case.kind == "classes" else 2
        unit = clone(case.loss).set_params(class_weight=np.ones(n_classes))
        torch.testing.assert_close(value_and_gradient(unit, logits, target), expected)


@pytest.mark.parametrize("case", SET_CASES, ids=lambda case: case.id)
def test_class_weight_weighs_items_by_their_gold_class(case):
    # In pooled sums an item's terms are multiplied, so its class weight is a sample weight there;
    # means over items divide by the number of items instead.
    logits, target = batch(case.kind, n_items=9)
    n_classes = 3 if case.kind == "classes" else 2
    weight = torch.tensor([0.5, 2.0, 3.0][:n_classes], dtype=torch.float64)
    loss = clone(case.loss).set_params(class_weight=None, ohem_ratio=0.0, ce_weight=0.0)
    by_class = clone(loss).set_params(class_weight=weight)(logits, target)
    valid = target != IGNORED
    item_weight = torch.where(valid, weight[target.clamp_min(0)], 0.0)
    by_item = loss(logits, target, item_weight)
    if loss.level == "example":
        by_item = by_item * item_weight.sum() / valid.sum()
    torch.testing.assert_close(by_class, by_item)


@pytest.mark.parametrize("name", SET_LOSSES)
def test_only_means_are_invariant_to_the_scale_of_weights(name):
    cls, own = SET_LOSSES[name]
    logits, target = batch("classes")
    weight = torch.linspace(0.5, 2, len(target), dtype=torch.float64)
    for loss, invariant in (
        (cls(level="example", **own), True),
        (cls(level="batch", gamma=0.0, **own), True),
        (cls(level="batch", gamma=1.0, **own), False),  # Smoothing weighs less in a larger set.
    ):
        values = [loss(logits, target, factor * weight) for factor in (1, 3)]
        assert torch.allclose(*values) is invariant


@pytest.mark.parametrize(
    "class_weight",
    [[0.5, 2, 1], (0.5, 2, 1), np.array([0.5, 2, 1]), torch.tensor([0.5, 2, 1])],
    ids=lambda weight: type(weight).__name__,
)
def test_class_weight_is_any_array(class_weight):
    logits, target = batch("classes")
    for loss in (CrossEntropyLoss, DiceLoss, TverskyLoss, FocalLoss):
        torch.testing.assert_close(
            loss(class_weight=class_weight)(logits, target),
            loss(class_weight=[0.5, 2.0, 1.0])(logits, target),
        )
