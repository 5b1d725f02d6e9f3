"""The loss of starts and ends: a softmax over each window, or a sigmoid at each position."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch.nn import functional as F

from skdice.losses import (
    CrossEntropyLoss,
    DiceLoss,
    FocalLoss,
    SelfAdjustingDiceLoss,
    TverskyLoss,
    WeightedCrossEntropyLoss,
)
from skdice.losses._span import SpanLoss
from skdice.nn._accumulation import accumulate_gradient

from ..nn.toy import ToyModule, forward_of, make_batcher, make_dataset
from .catalogue import IGNORED, value_and_gradient

CLASS_WEIGHT = (0.4, 1.5)
CE = SpanLoss(CrossEntropyLoss())
POSITION_LOSSES = {
    "wce": WeightedCrossEntropyLoss(class_weight=CLASS_WEIGHT),
    "focal": FocalLoss(),
    "focal class_weight": FocalLoss(gamma=0.5, class_weight=CLASS_WEIGHT),
    "dice": DiceLoss(),
    "dice background": DiceLoss(background=0),
    "dice linear": DiceLoss(square_denominator=False),
    "dice ce_weight": DiceLoss(ce_weight=0.4),
    "dice ohem": DiceLoss(ohem_ratio=1.0),
    "dice example": DiceLoss(level="example"),
    "tversky": TverskyLoss(alpha=0.3, beta=0.7),
    "tversky ohem ce_weight": TverskyLoss(ohem_ratio=0.5, ce_weight=0.4),
    "dsc": SelfAdjustingDiceLoss(),
    "dsc example": SelfAdjustingDiceLoss(level="example"),
    "dsc example ce_weight": SelfAdjustingDiceLoss(level="example", ce_weight=0.4),
}
LOSSES = {"ce": CE} | {name: SpanLoss(loss) for name, loss in POSITION_LOSSES.items()}
ADDITIVE = [name for name in LOSSES if "ohem" not in name]
SEPARABLE = ["ce", "wce", "focal", "focal class_weight"] + [x for x in LOSSES if "example" in x]
LENGTHS = [[1], [5], [1, 1, 1], [4, 4, 4], [3, 1, 7, 2], [1, 30, 2, 2, 9]]

each_loss = pytest.mark.parametrize("name", LOSSES)
each_lengths = pytest.mark.parametrize("lengths", LENGTHS, ids=str)


def make_windows(lengths, seed=0, ignored=(), dtype=torch.float64):
    """Return logits and targets of windows of the given lengths, some of them ignored."""
    rng = np.random.default_rng(seed)
    window = np.repeat(np.arange(len(lengths)), lengths)
    target = np.zeros((len(window), 3), dtype=np.int32)
    target[:, 2] = window
    for i, first in enumerate(np.cumsum(lengths) - lengths):
        start, end = sorted(rng.integers(0, lengths[i], 2))
        target[first + start, 0] = target[first + end, 1] = 1
    target[np.isin(window, ignored), :2] = IGNORED
    logits = 2 * rng.standard_normal((len(window), 2))
    return torch.from_numpy(logits).to(dtype), torch.from_numpy(target)


def parts_of(logits, target):
    """Return the windows one by one."""
    n_items = torch.unique_consecutive(target[:, 2], return_counts=True)[1].tolist()
    return list(zip(logits.split(n_items), target.split(n_items)))


def padded_cross_entropy(logits, target, sample_weight=None):
    """The loss of torch over windows filled up with what has no probability."""
    sides = []
    for column in (0, 1):
        windows, gold, weights = [], [], []
        for i in torch.unique(target[:, 2]):
            here = target[:, 2] == i
            if (target[here, column] == IGNORED).all():
                continue
            windows.append(logits[here, column])
            gold.append((target[here, column] == 1).nonzero().item())
            weights.append(1.0 if sample_weight is None else sample_weight[here][0].item())
        padded = torch.nn.utils.rnn.pad_sequence(
            windows, batch_first=True, padding_value=-torch.inf
        )
        losses = F.cross_entropy(padded, torch.tensor(gold), reduction="none")
        weight = torch.tensor(weights, dtype=logits.dtype)
        sides.append((losses * weight).sum() / weight.sum())
    return (sides[0] + sides[1]) / 2


def assert_float32_is_close(got, expected):
    for narrow, wide in zip(got, expected, strict=True):
        torch.testing.assert_close(narrow.double(), wide.double(), rtol=1e-5, atol=1e-6)


@each_lengths
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cross_entropy_is_that_of_padded_windows(lengths, dtype):
    for seed in range(3):
        logits, target = make_windows(lengths, seed, dtype=dtype)
        got = value_and_gradient(CE, logits, target)
        assert_float32_is_close(got, value_and_gradient(padded_cross_entropy, logits, target))


@pytest.mark.parametrize("scale", [20, 44, 88])
def test_saturated_cross_entropy_in_float32(scale):
    for seed in range(5):
        logits, target = make_windows([3, 1, 7, 2, 40], seed)
        logits = scale * logits.sign() + logits / 8
        got = value_and_gradient(CE, logits.float(), target)
        expected = value_and_gradient(padded_cross_entropy, logits, target)
        torch.testing.assert_close(got[0].double(), expected[0], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(got[1].double(), expected[1], rtol=0, atol=1e-5)


def test_long_windows_keep_their_digits():
    logits, target = make_windows([20_000, 3, 500])
    logits = logits / 20 + 50
    got = value_and_gradient(CE, logits.float(), target)
    assert_float32_is_close(got, value_and_gradient(padded_cross_entropy, logits, target))


def mean_of_sides(name):
    loss = POSITION_LOSSES[name]

    def mean(logits, target, sample_weight=None):
        start, end = (loss(logits[:, i], target[:, i].long(), sample_weight) for i in (0, 1))
        return (start + end) / 2

    return mean


@pytest.mark.parametrize("name", POSITION_LOSSES)
@each_lengths
def test_other_losses_are_the_mean_of_starts_and_ends(name, lengths):
    logits, target = make_windows(lengths, ignored=[2])
    for weight in (None, torch.linspace(0.5, 2, len(lengths)).double()[target[:, 2].long()]):
        got = value_and_gradient(LOSSES[name], logits, target, weight)
        expected = value_and_gradient(mean_of_sides(name), logits, target, weight)
        torch.testing.assert_close(got, expected)


def test_cross_entropy_does_not_see_other_windows_or_a_shift():
    logits, target = make_windows([3, 1, 7])
    shift = torch.tensor([[5.0, -3.0], [0.0, 9.0], [-40.0, 2.0]])[target[:, 2].long()]
    torch.testing.assert_close(CE(logits + shift, target), CE(logits, target), rtol=1e-5, atol=0)
    alone = torch.stack([CE(*part) for part in parts_of(logits, target)]).mean()
    torch.testing.assert_close(CE(logits, target), alone, rtol=1e-5, atol=0)


@pytest.mark.parametrize("numbers", [[0, 1, 2, 3], [7, 3, 900, 0], [5, 0, 5, 0]], ids=str)
@each_loss
def test_windows_may_have_any_numbers(name, numbers):
    logits, target = make_windows([3, 1, 7, 2])
    expected = LOSSES[name](logits, target)
    target[:, 2] = torch.tensor(numbers)[target[:, 2].long()]
    torch.testing.assert_close(LOSSES[name](logits, target), expected, rtol=0, atol=0)


@pytest.mark.parametrize("bad", [1.0, 88.0, float("nan"), float("inf"), -float("inf")])
@each_loss
def test_ignored_windows_change_nothing(name, bad):
    logits, target = make_windows([3, 1, 7, 2, 2], ignored=[0, 2])
    kept = target[:, 0] != IGNORED
    weight = torch.linspace(0.5, 2, 5).double()[target[:, 2].long()]
    expected = value_and_gradient(LOSSES[name], logits[kept], target[kept], weight[kept])
    logits[~kept] = bad
    value, gradient = value_and_gradient(LOSSES[name], logits, target, weight)
    assert (gradient[~kept] == 0).all()
    torch.testing.assert_close((value, gradient[kept]), expected, rtol=1e-6, atol=1e-8)


@each_loss
def test_nothing_to_learn_from(name):
    logits, target = make_windows([3, 1, 7], dtype=torch.float32)
    ignored = make_windows([3, 1, 7], ignored=[0, 1, 2])[1]
    for what, arguments in {
        "all ignored": (logits, ignored, None),
        "all of weight zero": (logits, target, torch.zeros(len(target))),
        "empty": (logits[:0], target[:0], None),
    }.items():
        # Scaled, as a gradient scaler does for float16.
        value, gradient = value_and_gradient(lambda *a: 65_536 * LOSSES[name](*a), *arguments)
        assert value == 0, what
        assert (gradient == 0).all(), what


@each_loss
def test_weights_are_repetitions_of_windows(name):
    lengths = np.array([3, 1, 7, 2, 5])
    for seed in range(3):
        logits, target = make_windows(lengths, seed, ignored=[3])
        times = np.random.default_rng(seed).integers(0, 4, len(lengths))
        times[0] = 2
        weight = torch.from_numpy(times)[target[:, 2].long()]
        value, gradient = value_and_gradient(LOSSES[name], logits, target, weight)

        copies = np.repeat(np.arange(len(lengths)), times)
        first = np.cumsum(lengths) - lengths
        items = torch.from_numpy(
            np.concatenate([np.arange(first[i], first[i] + lengths[i]) for i in copies])
        )
        repeated = target[items]
        repeated[:, 2] = torch.from_numpy(np.repeat(np.arange(len(copies)), lengths[copies]))
        expected, of_copies = value_and_gradient(LOSSES[name], logits[items], repeated)
        torch.testing.assert_close(value, expected, rtol=1e-6, atol=0)
        summed = torch.zeros_like(logits).index_add(0, items, of_copies)
        torch.testing.assert_close(gradient, summed, rtol=1e-5, atol=1e-7)


def test_weighted_cross_entropy_is_that_of_padded_windows():
    logits, target = make_windows([3, 1, 7, 2], ignored=[1])
    weight = torch.tensor([0.5, 3.0, 0.0, 2.0]).double()[target[:, 2].long()]
    got = value_and_gradient(CE, logits, target, weight)
    assert_float32_is_close(got, value_and_gradient(padded_cross_entropy, logits, target, weight))


@each_loss
def test_flags(name):
    loss = LOSSES[name]
    assert (loss.additive, loss.separable) == (name in ADDITIVE, name in SEPARABLE)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ADDITIVE)
def test_sums_of_windows_add_up(name, weighted):
    loss = LOSSES[name]
    logits, target = make_windows([3, 1, 7, 2, 5], ignored=[2])
    weight = torch.linspace(0.5, 2, 5).double()[target[:, 2].long()] if weighted else None
    weights = [None] * 5 if weight is None else weight.split([3, 1, 7, 2, 5])
    parts = [loss.sums(*part, w) for part, w in zip(parts_of(logits, target), weights)]
    whole = loss.sums(logits, target, weight)
    torch.testing.assert_close(torch.stack(parts).sum(0), whole, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(loss.value(whole), loss(logits, target, weight), rtol=0, atol=0)


def test_sums_of_hard_examples_do_not_add_up():
    """The hardest negatives of each window are not the hardest of all windows."""
    loss = LOSSES["dice ohem"]
    logits, target = make_windows([9, 9, 9])
    parts = torch.stack([loss.sums(*part) for part in parts_of(logits, target)]).sum(0)
    assert not torch.allclose(parts, loss.sums(logits, target))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", SEPARABLE)
def test_total_weight_divides_the_mean(name, weighted):
    loss = LOSSES[name]
    logits, target = make_windows([3, 1, 7, 2, 5], ignored=[2])
    weight = torch.linspace(0.5, 2, 5)[target[:, 2].long()] if weighted else None
    weights = [None] * 5 if weight is None else weight.split([3, 1, 7, 2, 5])
    total = loss.total_weight(target, weight)
    parts = [loss.total_weight(part[1], w) for part, w in zip(parts_of(logits, target), weights)]
    torch.testing.assert_close(torch.stack(parts).sum(), total)
    torch.testing.assert_close(total, loss.sums(logits.float(), target, weight)[1])
    if name == "ce":
        window_weight = np.linspace(0.5, 2, 5) if weighted else np.ones(5)
        assert total.item() == pytest.approx(np.delete(window_weight, 2).sum())


def make_step(n_batches, weighted=False):
    """Return a step of windows, three texts with several and one left out, cut into batches."""
    n_windows = [1, 3, 2, 1, 1, 2]
    dataset = make_dataset([3, 6, 9, 4, 2, 7], n_windows, weighted=weighted)
    _, target = make_windows(dataset.items.lengths, ignored=[2])
    batcher = make_batcher(replace(dataset, target=target.numpy()))
    return [batcher.collate(part) for part in np.array_split(np.arange(len(dataset)), n_batches)]


@each_loss
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_batches", [2, 4, 10])
def test_batches_have_the_gradient_of_one_large_batch(name, weighted, n_batches):
    module, loss = ToyModule(n_classes=2).double(), LOSSES[name]
    results = []
    for n in (n_batches, 1):
        value = accumulate_gradient(loss, make_step(n, weighted), forward_of(module))
        results.append((value, [parameter.grad for parameter in module.parameters()]))
        module.zero_grad(set_to_none=True)
    (value, gradients), (expected_value, expected) = results
    torch.testing.assert_close(value, expected_value, rtol=1e-6, atol=0)
    torch.testing.assert_close(gradients, expected, rtol=1e-5, atol=1e-7)
    # The bias of the head shifts all logits alike, which a softmax over positions does not see.
    assert expected[0].abs().max() > 1e-4, "nothing is compared"


@each_loss
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_logits(name, dtype):
    for scale in (1, 44, 88):
        logits, target = make_windows([3, 1, 7, 2])
        logits = (scale * logits / logits.abs().max()).to(dtype)
        value, gradient = value_and_gradient(LOSSES[name], logits, target)
        expected, expected_gradient = value_and_gradient(LOSSES[name], logits.float(), target)
        assert value.isfinite()
        assert gradient.isfinite().all()
        torch.testing.assert_close(value, expected, rtol=0, atol=0)
        torch.testing.assert_close(gradient, expected_gradient.to(dtype), rtol=0, atol=0)


@each_loss
def test_autocast_changes_nothing(name):
    logits, target = make_windows([3, 1, 7, 2], dtype=torch.bfloat16)
    outside = value_and_gradient(LOSSES[name], logits, target)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = value_and_gradient(LOSSES[name], logits, target)
    torch.testing.assert_close(inside, outside, rtol=0, atol=0)


@pytest.mark.parametrize(
    "copied",
    [clone, copy.deepcopy, lambda loss: pickle.loads(pickle.dumps(loss))],
    ids=["clone", "deepcopy", "pickle"],
)
@each_loss
def test_copies_are_the_same_function(name, copied):
    logits, target = make_windows([3, 1, 7])
    loss, twin = LOSSES[name], copied(LOSSES[name])
    assert twin.loss is not loss.loss
    assert twin.loss.get_params() == loss.loss.get_params()
    assert repr(twin) == repr(loss)
    assert twin(logits, target) == loss(logits, target)
