from functools import partial
from typing import get_args

import numpy as np
import pytest
import torch

from skdice.losses import MatchCandidates, QueryLoss, SpanLoss

from ..nn.toy import ToyModule, run_step
from .catalogue import value_and_gradient
from .windows import LOSSES, SIZE, make_step, query_windows, span_windows, take

SPAN = {f"span {name}": SpanLoss(loss) for name, loss in LOSSES.items()}
QUERY = {
    f"query {name} {candidates}": QueryLoss(loss, match_candidates=candidates)
    for name, loss in LOSSES.items()
    for candidates in get_args(MatchCandidates)
}
EVERY = SPAN | QUERY
CERTAIN = [name for name in EVERY if "random" not in name]
SEPARABLE = [name for name in SPAN if "example" in name or "dsc" not in name]
each_certain = pytest.mark.parametrize("name", CERTAIN)


def make_windows(name, ignored=(), **options):
    """Return logits and targets of windows; only extractors ignore some."""
    return span_windows(ignored=ignored, **options) if name in SPAN else query_windows(**options)


def window_weights(target):
    return torch.linspace(0.5, 2, 5).double()[target.row]


@pytest.mark.parametrize("name", EVERY)
def test_nothing_to_learn_from(name):
    logits, target = make_windows(name, dtype=torch.float32)
    empty = take(logits, target, [])[:2]
    batches = {
        "all of weight zero": (logits, target, torch.zeros(len(logits))),
        "empty": (*empty, None),
        "empty, weighted": (*empty, torch.zeros(0)),
    }
    if name in SPAN:
        batches["all ignored"] = logits, make_windows(name, ignored=range(5))[1], None
    for what, arguments in batches.items():
        # Scaled, as a gradient scaler does for float16.
        value, gradient = value_and_gradient(lambda *a: 65_536 * EVERY[name](*a), *arguments)
        assert value == 0, what
        assert (gradient == 0).all(), what


@each_certain
def test_weights_are_repetitions_of_windows(name):
    for seed in range(3):
        logits, target = make_windows(name, seed=seed, ignored=[3])
        times = np.random.default_rng(seed).integers(0, 4, 5)
        times[0] = 2
        weight = torch.from_numpy(times)[target.row]
        value, gradient = value_and_gradient(EVERY[name], logits, target, weight)
        *repeated, items = take(logits, target, np.repeat(np.arange(5), times))
        expected, of_copies = value_and_gradient(EVERY[name], *repeated)
        torch.testing.assert_close(value, expected, rtol=1e-6, atol=0)
        summed = torch.zeros_like(logits).index_add(0, items, of_copies)
        atol = 1e-7 if name in SPAN else 1e-8
        torch.testing.assert_close(gradient, summed, rtol=1e-5, atol=atol)


@each_certain
def test_weights_of_parts(name):
    """Those of all items alike are those of the items; a part of weight zero counts for nothing."""
    logits, target = make_windows(name)
    weight = window_weights(target)
    n_parts = len(EVERY[name].span_weights)
    of_parts = weight[:, None].repeat(1, n_parts)
    found = value_and_gradient(EVERY[name], logits, target, of_parts)
    torch.testing.assert_close(found, value_and_gradient(EVERY[name], logits, target, weight))
    of_parts[:, 1] = 0
    _, gradient = value_and_gradient(EVERY[name], logits, target, of_parts)
    assert (gradient[:, 1] == 0).all()
    assert (gradient[:, 0] != 0).any()


@pytest.mark.parametrize("name", EVERY)
def test_flags(name):
    assert EVERY[name].additive == ("ohem" not in name)
    assert EVERY[name].separable == (name in SEPARABLE)


@each_certain
@pytest.mark.parametrize("n_batches, weighted", [(2, True), (10, False)])
def test_batches_have_the_gradient_of_one_large_batch(name, weighted, n_batches):
    module = ToyModule(n_classes=2 if name in SPAN else 2 + 2 * SIZE).double()
    make = partial(span_windows, ignored=[2]) if name in SPAN else query_windows
    value, gradients, _ = run_step(module, EVERY[name], make_step(make, n_batches, weighted))
    expected_value, expected, _ = run_step(module, EVERY[name], make_step(make, 1, weighted))
    torch.testing.assert_close(value, expected_value, rtol=1e-6, atol=0)
    torch.testing.assert_close(gradients, expected, rtol=1e-5, atol=1e-7)
    # A bias shifts all logits alike, which a softmax over positions does not see.
    assert expected[0].abs().max() > 1e-4, "nothing is compared"
    assert name in SPAN or all(gradient.abs().max() > 1e-4 for gradient in expected)


@each_certain
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_half_precision_logits(name, dtype):
    for scale in (1, 20, 44, 88):
        logits, target = make_windows(name)
        logits = (scale * logits / logits.abs().max()).to(dtype)
        value, gradient = value_and_gradient(EVERY[name], logits, target)
        assert value.isfinite()
        assert gradient.isfinite().all()
        if name in SPAN:
            expected = value_and_gradient(EVERY[name], logits.float(), target)
            torch.testing.assert_close(value, expected[0], rtol=0, atol=0)
            torch.testing.assert_close(gradient, expected[1].to(dtype), rtol=0, atol=0)
