"""Losses against their formulas as they read, with plain autograd, and against golden values."""

import json
import operator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from skdice import losses

from .catalogue import EVERY, IGNORED, batch, value_and_gradient
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
        loss = losses.SelfAdjustingDiceLoss(
            alpha=alpha, gamma=0.7, square_denominator=square, detach_weight=detach
        )
        expected = value_and_gradient(partial(plain_loss, loss), logits, target, WEIGHT)
        found.append(value_and_gradient(loss, logits, target, WEIGHT))
        torch.testing.assert_close(found[-1], expected, rtol=1e-9, atol=1e-12)
    assert torch.equal(found[0][0], found[1][0])
    assert not torch.allclose(found[0][1], found[1][1])


def tied_batch(kind, seed):
    """Return logits of few distinct values, so that many cells tie, and targets, some ignored."""
    generator = torch.Generator().manual_seed(seed)
    n_items = int(torch.randint(1, 14, (), generator=generator))
    shape = (n_items,) if kind == "flat" else (n_items, 3)
    logits = torch.randint(-1, 2, shape, generator=generator).double()
    target_shape = shape if kind == "labels" else (n_items,)
    highest = 3 if kind == "classes" else 2
    is_positive = torch.rand(target_shape, generator=generator) < 0.4
    target = torch.randint(1, highest, target_shape, generator=generator) * is_positive
    target[torch.rand(target_shape, generator=generator) < 0.2] = IGNORED
    return logits, target


@pytest.mark.parametrize(
    "kind, background", [("classes", None), ("classes", 0), ("flat", None), ("labels", 1)]
)
@pytest.mark.parametrize("average", ["micro", "macro", "sum"])
@pytest.mark.parametrize("ratio", [1e-9, 0.25, 0.5, 1, 1.5, 100.0])
def test_hard_examples_that_tie(kind, background, average, ratio):
    how = {"average": average, "background": background, "ohem_ratio": ratio}
    for seed in range(6):
        loss = losses.SelfAdjustingDiceLoss(alpha=0.5, **how)
        logits, target = tied_batch(kind, seed)
        expected = value_and_gradient(partial(plain_loss, loss), logits, target)
        torch.testing.assert_close(value_and_gradient(loss, logits, target), expected)


@pytest.mark.parametrize("target, ratio, n_negatives", [
    ([0, 0, 0, 0], 0.5, 1),  # No positive: one negative is still looked at.
    ([1, 1, 1, 0], 5.0, 1),  # No more than there are.
    ([1, 1, 1, 1], 1.0, 0),
    ([1, 0, 0, 0], 2.5, 2),  # 2.5 rounds to even, as Python does.
    ([1, 0, 0, 0], 2.6, 3),
    ([1, IGNORED, 0, IGNORED], 3.0, 1),
])  # fmt: skip
def test_number_of_negatives(target, ratio, n_negatives):
    target = torch.tensor(target)
    logits = torch.tensor([0.5, -3.0, 2.0, -1.0])
    _, gradient = value_and_gradient(losses.DiceLoss(ohem_ratio=ratio), logits, target)
    assert ((gradient != 0) & (target == 0)).sum() == n_negatives
    assert ((gradient != 0) & (target == 1)).sum() == (target == 1).sum()


# Closed forms in float64, cross-checked with autograd; "grad" is the gradient of the mean. The
# logits of G12 are log p of four classes that sum to 0.99, and of the rest, which is left out.
GOLDEN = json.loads(Path(__file__).with_name("golden_values.json").read_text())


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-9), (torch.float32, 1e-5)])
@pytest.mark.parametrize("case", GOLDEN, ids=operator.itemgetter("id"))
def test_golden_values(case, dtype, tolerance):
    logits = torch.tensor(case["logits"], dtype=dtype, requires_grad=True)
    value = getattr(losses, case["loss"])(**case["params"])(logits, torch.tensor(case["target"]))
    value.backward()
    assert value.dtype == dtype
    np.testing.assert_allclose(value.item(), case["value"], rtol=0, atol=tolerance)
    if case["grad"] is not None:
        np.testing.assert_allclose(logits.grad, case["grad"], rtol=0, atol=tolerance)
