"""The loss of starts and ends: a softmax over each window, or a sigmoid at each position."""

import pytest
import torch
from torch.nn import functional as F

from skdice.losses import CrossEntropyLoss, SpanLoss

from . import windows
from .catalogue import IGNORED, value_and_gradient
from .windows import span_windows as make_windows
from .windows import take

CE = SpanLoss(CrossEntropyLoss())
LOSSES = {name: SpanLoss(loss) for name, loss in windows.LOSSES.items()}
LENGTHS = [[1], [5], [1, 1, 1], [4, 4, 4], [3, 1, 7, 2], [1, 30, 2, 2, 9]]

each_loss = pytest.mark.parametrize("name", LOSSES)
each_lengths = pytest.mark.parametrize("lengths", LENGTHS, ids=str)


def padded_cross_entropy(logits, target, sample_weight=None):
    """The loss of torch over windows filled up with what has no probability."""
    sides = []
    for column in (0, 1):
        windows, gold, weights = [], [], []
        for i in target.row.unique():
            here = target.row == i
            if (target.border[here, column] == IGNORED).all():
                continue
            windows.append(logits[here, column])
            gold.append((target.border[here, column] == 1).nonzero().item())
            weights.append(1.0 if sample_weight is None else sample_weight[here][0].item())
        padded = torch.nn.utils.rnn.pad_sequence(
            windows, batch_first=True, padding_value=-torch.inf
        )
        losses = F.cross_entropy(padded, torch.tensor(gold), reduction="none")
        weight = torch.tensor(weights, dtype=logits.dtype)
        sides.append((losses * weight).sum() / weight.sum())
    return (sides[0] + sides[1]) / 2


@each_lengths
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cross_entropy_is_that_of_padded_windows(lengths, dtype):
    for seed in range(3):
        logits, target = make_windows(lengths, seed, dtype=dtype, ignored=[2])
        for weight in (None, torch.linspace(0.5, 2, len(lengths)).double()[target.row]):
            got = value_and_gradient(CE, logits, target, weight)
            expected = value_and_gradient(padded_cross_entropy, logits, target, weight)
            got, expected = ([x.double() for x in both] for both in (got, expected))
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scale", [20, 44, 88])
def test_saturated_cross_entropy_in_float32(scale):
    logits, target = make_windows([3, 1, 7, 2, 2000])
    logits = scale * logits.sign() + logits / 8
    got = value_and_gradient(CE, logits.float(), target)
    expected = value_and_gradient(padded_cross_entropy, logits, target)
    torch.testing.assert_close(got[0].double(), expected[0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(got[1].double(), expected[1], rtol=0, atol=1e-5)


def mean_of_sides(name):
    loss = windows.LOSSES[name]

    def mean(logits, target, sample_weight=None):
        start, end = (loss(logits[:, i], target.border[:, i].long(), sample_weight) for i in (0, 1))
        return (start + end) / 2

    return mean


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "ce"])
@each_lengths
def test_other_losses_are_the_mean_of_starts_and_ends(name, lengths):
    logits, target = make_windows(lengths, ignored=[2])
    for weight in (None, torch.linspace(0.5, 2, len(lengths)).double()[target.row]):
        got = value_and_gradient(LOSSES[name], logits, target, weight)
        expected = value_and_gradient(mean_of_sides(name), logits, target, weight)
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("bad", [1.0, 88.0, float("nan"), float("inf"), -float("inf")])
@each_loss
def test_ignored_windows_change_nothing(name, bad):
    logits, target = make_windows([3, 1, 7, 2, 2], ignored=[0, 2])
    kept = target.border[:, 0] != IGNORED
    weight = torch.linspace(0.5, 2, 5).double()[target.row]
    *rest, items = take(logits, target, [1, 3, 4])
    expected = value_and_gradient(LOSSES[name], *rest, weight[items])
    logits[~kept] = bad
    value, gradient = value_and_gradient(LOSSES[name], logits, target, weight)
    assert (gradient[~kept] == 0).all()
    torch.testing.assert_close((value, gradient[kept]), expected, rtol=1e-6, atol=1e-8)
