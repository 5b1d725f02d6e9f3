"""Sample weights, class weights, and what a mean divides by."""

import numpy as np
import pytest
import torch

from skdice.losses import CrossEntropyLoss, DiceLoss, FocalLoss, TverskyLoss

from .catalogue import CASES, IDS, batch, value_and_gradient


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
