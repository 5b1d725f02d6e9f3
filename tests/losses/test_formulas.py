"""Losses against their formulas as they read, with plain autograd in float64."""

from functools import partial

import pytest
import torch

from skdice.losses import SelfAdjustingDiceLoss

from .catalogue import EVERY, batch, value_and_gradient
from .reference import plain_loss

WEIGHT = torch.tensor([0.5, 2.0, 1.0, 0.0, 3.0, 1.25, 1.0, 0.75, 2.5, 1.0], dtype=torch.float64)


@pytest.mark.parametrize("name", EVERY)
def test_value_and_gradient(name):
    case = EVERY[name]
    # Weights of those that keep some cells are in test_sets.
    weights = [None] if getattr(case.loss, "ohem_ratio", 0) else [None, WEIGHT]
    for scale in (1, 3):
        logits, target = batch(case.kind, n_items=10)
        for weight in weights:
            arguments = scale * logits, target, weight
            expected = value_and_gradient(partial(plain_loss, case.loss), *arguments)
            got = value_and_gradient(case.loss, *arguments)
            torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["classes", "flat"])
@pytest.mark.parametrize("square", [True, False])
@pytest.mark.parametrize("alpha", [0.01, 0.5, 1.0, 2.0, 2.5])
def test_exponents_and_their_constant_weight(kind, square, alpha):
    logits, target = batch(kind, n_items=10)
    found = []
    for detach in (False, True):
        loss = SelfAdjustingDiceLoss(
            alpha=alpha, gamma=0.7, square_denominator=square, detach_weight=detach
        )
        expected = value_and_gradient(partial(plain_loss, loss), logits, target, WEIGHT)
        found.append(value_and_gradient(loss, logits, target, WEIGHT))
        torch.testing.assert_close(found[-1], expected, rtol=1e-9, atol=1e-12)
    assert torch.equal(found[0][0], found[1][0])
    assert not torch.allclose(found[0][1], found[1][1])
