"""The loss of starts, ends and matches, against its definition by naive loops."""

import copy
import pickle
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch.profiler import ProfilerActivity, profile

from skdice.losses import (
    CrossEntropyLoss,
    DiceLoss,
    FocalLoss,
    SelfAdjustingDiceLoss,
    TverskyLoss,
    WeightedCrossEntropyLoss,
)
from skdice.losses import _query as query_module
from skdice.losses._query import Candidates, QueryLoss
from skdice.nn._accumulation import accumulate_gradient

from ..nn.toy import ToyModule, forward_of, make_batcher, make_dataset
from .catalogue import value_and_gradient

CLASS_WEIGHT = (0.4, 1.5)
LOSSES = {
    "ce": CrossEntropyLoss(),
    "wce": WeightedCrossEntropyLoss(class_weight=CLASS_WEIGHT),
    "focal": FocalLoss(),
    "dice": DiceLoss(background=0),
    "dice linear": DiceLoss(square_denominator=False),
    "dice class_weight": DiceLoss(class_weight=CLASS_WEIGHT),
    "dice ce_weight": DiceLoss(ce_weight=0.4),
    "dice ohem": DiceLoss(ohem_ratio=1.0),
    "dice example": DiceLoss(level="example"),
    "tversky": TverskyLoss(alpha=0.3, beta=0.7),
    "tversky ohem ce_weight": TverskyLoss(ohem_ratio=0.5, ce_weight=0.4),
    "dsc": SelfAdjustingDiceLoss(),
    "dsc example": SelfAdjustingDiceLoss(level="example"),
}
ADDITIVE = [name for name in LOSSES if "ohem" not in name]
CERTAIN = [candidates for candidates in get_args(Candidates) if "random" not in candidates]
SIZE = 3
LENGTHS = [3, 1, 7, 2, 5]

each_loss = pytest.mark.parametrize("name", LOSSES)
each_candidates = pytest.mark.parametrize("candidates", CERTAIN)


def make_windows(lengths=LENGTHS, seed=0, n_spans=2, dtype=torch.float64):
    """Return logits, targets and the (window, first, last) spans that the targets tell."""
    rng = np.random.default_rng(seed)
    window = np.repeat(np.arange(len(lengths)), lengths)
    first = np.cumsum(lengths) - lengths
    spans = set()
    for i, length in enumerate(lengths):
        for _ in range(n_spans):
            start, end = sorted(rng.integers(0, length, 2).tolist())
            spans.add((i, start, end))
    target = np.zeros((len(window), 3 + n_spans), dtype=np.int32)
    target[:, 2] = window
    for i, start, end in sorted(spans):
        item = first[i] + start
        target[item, 0] = target[first[i] + end, 1] = 1
        target[item, 3 + np.count_nonzero(target[item, 3:])] = end - start + 1
    logits = 2 * rng.standard_normal((len(window), 2 + 2 * SIZE))
    return torch.from_numpy(logits).to(dtype), torch.from_numpy(target), spans


def naive_matches(logits, target, spans, candidates):
    """Return scores and targets of the candidate pairs, and the windows they are in."""
    scores, gold, windows = [], [], []
    for w in torch.unique(target[:, 2]).tolist():
        items = (target[:, 2] == w).nonzero().squeeze(1).tolist()
        for a, start in enumerate(items):
            for b, end in enumerate(items[a:], start=a):
                is_start, is_end = target[start, 0] == 1, target[end, 1] == 1
                chosen = {
                    "all": True,
                    "gold": is_start and is_end,
                    "pred_and_gold": (is_start or logits[start, 0] > 0)
                    and (is_end or logits[end, 1] > 0),
                }[candidates]
                if chosen:
                    vectors = logits[start, 2 : 2 + SIZE], logits[end, 2 + SIZE :]
                    scores.append((vectors[0] * vectors[1]).sum() / SIZE**0.5)
                    gold.append(int((w, a, b) in spans))
                    windows.append(w)
    scores = torch.stack(scores) if scores else logits.new_zeros(0)
    return scores, torch.tensor(gold, dtype=torch.int64), torch.tensor(windows, dtype=torch.int64)


def naive_loss(loss, spans, candidates, weights=(1.0, 1.0, 0.1)):
    def value(logits, target, sample_weight=None):
        scores, gold, windows = naive_matches(logits, target, spans, candidates)
        first = torch.searchsorted(target[:, 2].contiguous(), windows.to(target.dtype))
        parts = [
            loss(logits[:, 0], target[:, 0].long(), sample_weight),
            loss(logits[:, 1], target[:, 1].long(), sample_weight),
            loss(scores, gold, None if sample_weight is None else sample_weight[first]),
        ]
        return sum(w * part for w, part in zip(weights, parts)) / sum(weights)

    return value


@each_loss
@each_candidates
@pytest.mark.parametrize("weighted", [False, True])
def test_is_the_weighted_mean_of_three_losses(name, candidates, weighted):
    loss = QueryLoss(LOSSES[name], match_candidates=candidates)
    for seed in range(3):
        logits, target, spans = make_windows(seed=seed)
        weight = torch.linspace(0.5, 2, 5).double()[target[:, 2].long()] if weighted else None
        expected = value_and_gradient(
            naive_loss(LOSSES[name], spans, candidates), logits, target, weight
        )
        got = value_and_gradient(loss, logits, target, weight)
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-12)
        assert got[1][:, 2:].abs().max() > 0, "matches are not learned"


@pytest.mark.parametrize("weights", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (2, 2, 0.2), (1, 1, 0.1)])
def test_weights_of_the_three_losses(weights):
    logits, target, spans = make_windows()
    got = QueryLoss(DiceLoss(), weights, "all")(logits, target)
    expected = naive_loss(DiceLoss(), spans, "all", weights)(logits, target)
    torch.testing.assert_close(got, expected)
    scaled = QueryLoss(DiceLoss(), tuple(10 * w for w in weights), "all")(logits, target)
    torch.testing.assert_close(scaled, got)


@each_candidates
def test_pairs_of_a_loss(candidates):
    """The pairs themselves: a start and an end of one window, in this order."""
    logits, target, spans = make_windows(n_spans=3)
    scores, gold, weight = QueryLoss(DiceLoss(), match_candidates=candidates)._matches(
        logits, target.long(), target[:, 2].double()
    )
    expected_scores, expected_gold, windows = naive_matches(logits, target, spans, candidates)
    torch.testing.assert_close(scores, expected_scores)
    assert gold.tolist() == expected_gold.tolist()
    assert weight.tolist() == windows.tolist()
    assert int(gold.sum()) == len(spans), "every gold span is a candidate"
    if candidates == "all":
        assert len(scores) == sum(n * (n + 1) // 2 for n in LENGTHS)


def test_candidates_contain_each_other(monkeypatch):
    monkeypatch.setattr(query_module, "_RANDOM_SHARE", 0.3)
    logits, target, _ = make_windows([12, 30, 8])
    pairs = {}
    for candidates in ("gold", "pred_and_gold", "pred_gold_random", "all"):
        torch.manual_seed(0)
        loss = QueryLoss(DiceLoss(), match_candidates=candidates)
        pairs[candidates] = set(loss._matches(logits, target.long(), None)[0].tolist())
    sizes = [len(found) for found in pairs.values()]
    assert pairs["gold"] < pairs["pred_and_gold"] < pairs["pred_gold_random"] < pairs["all"], sizes


def test_random_candidates_are_about_one_in_a_hundred():
    logits, target, _ = make_windows([512] * 8)
    logits[:, :2] = -1.0
    target[:, :2] = 0
    target[:, 3:] = 0
    torch.manual_seed(0)
    loss = QueryLoss(DiceLoss())
    n_random = int(loss._boundaries(logits[:, 0], target[:, 0]).sum())
    assert 20 < n_random < 65
    torch.manual_seed(0)
    first = loss(logits, target)
    torch.manual_seed(0)
    assert loss(logits, target) == first


@pytest.mark.parametrize("numbers", [[7, 3, 900, 0, 5], [5, 0, 5, 0, 5]], ids=str)
@each_candidates
def test_windows_may_have_any_numbers(candidates, numbers):
    loss = QueryLoss(DiceLoss(), match_candidates=candidates)
    logits, target, _ = make_windows()
    expected = loss(logits, target)
    target[:, 2] = torch.tensor(numbers)[target[:, 2].long()]
    torch.testing.assert_close(loss(logits, target), expected, rtol=0, atol=0)


@pytest.mark.parametrize("name", ADDITIVE)
@each_candidates
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_windows_add_up(name, candidates, weighted):
    loss = QueryLoss(LOSSES[name], match_candidates=candidates)
    assert loss.additive
    assert not loss.separable
    logits, target, _ = make_windows()
    weight = torch.linspace(0.5, 2, 5).double()[target[:, 2].long()] if weighted else None
    weights = [None] * 5 if weight is None else weight.split(LENGTHS)
    parts = [loss.sums(*p) for p in zip(logits.split(LENGTHS), target.split(LENGTHS), weights)]
    whole = loss.sums(logits, target, weight)
    torch.testing.assert_close(torch.stack(parts).sum(0), whole, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(loss.value(whole), loss(logits, target, weight), rtol=0, atol=0)


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in ADDITIVE])
def test_hard_examples_do_not_add_up(name):
    assert not QueryLoss(LOSSES[name]).additive


@each_loss
@each_candidates
def test_weights_are_repetitions_of_windows(name, candidates):
    loss = QueryLoss(LOSSES[name], match_candidates=candidates)
    logits, target, _ = make_windows()
    times = torch.tensor([2, 0, 1, 3, 1])
    value, gradient = value_and_gradient(loss, logits, target, times[target[:, 2].long()].double())
    copies = torch.repeat_interleave(torch.arange(5), times).tolist()
    first = np.cumsum(LENGTHS) - LENGTHS
    items = torch.cat([torch.arange(first[i], first[i] + LENGTHS[i]) for i in copies])
    repeated = target[items]
    repeated[:, 2] = torch.arange(len(copies)).repeat_interleave(torch.tensor(LENGTHS)[copies])
    expected, of_copies = value_and_gradient(loss, logits[items], repeated)
    torch.testing.assert_close(value, expected, rtol=1e-6, atol=0)
    summed = torch.zeros_like(logits).index_add(0, items, of_copies)
    torch.testing.assert_close(gradient, summed, rtol=1e-5, atol=1e-8)


@each_loss
def test_no_candidate_pairs(name):
    """Starts and ends are learned still, matches get no gradient."""
    logits, target, _ = make_windows(n_spans=1)
    target[:, :2] = 0
    target[:, 3:] = 0
    loss = QueryLoss(LOSSES[name], match_candidates="gold")
    value, gradient = value_and_gradient(loss, logits, target)
    assert value.isfinite()
    assert (gradient[:, 2:] == 0).all()
    assert (gradient[:, :2] != 0).any()
    only_matches = QueryLoss(LOSSES[name], (0, 0, 1), "gold")
    # Scaled, as a gradient scaler does for float16.
    value, gradient = value_and_gradient(lambda *a: 65_536 * only_matches(*a), logits, target)
    assert value == 0
    assert (gradient == 0).all()


@each_loss
@pytest.mark.parametrize("candidates", get_args(Candidates))
def test_nothing_to_learn_from(name, candidates):
    loss = QueryLoss(LOSSES[name], match_candidates=candidates)
    logits, target, _ = make_windows(dtype=torch.float32)
    for what, arguments in {
        "all of weight zero": (logits, target, torch.zeros(len(target))),
        "no words": (logits[:0], target[:0], None),
        "no words, weighted": (logits[:0], target[:0], torch.zeros(0)),
    }.items():
        value, gradient = value_and_gradient(loss, *arguments)
        assert value == 0, what
        assert (gradient == 0).all(), what


@each_loss
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_saturated_logits_have_a_finite_gradient(name, dtype):
    loss = QueryLoss(LOSSES[name], match_candidates="all")
    for scale in (1, 20, 88):
        logits, target, _ = make_windows()
        logits = (scale * logits / logits.abs().max()).to(dtype)
        value, gradient = value_and_gradient(loss, logits, target)
        assert value.isfinite()
        assert gradient.isfinite().all()


def make_step(n_batches, weighted=False):
    """Return a step of windows cut into batches, a window without words among them."""
    dataset = make_dataset([3, 6, 9, 4, 2, 7], [1, 3, 2, 1, 1, 2], weighted=weighted)
    _, target, _ = make_windows(dataset.items.lengths.tolist())
    batcher = make_batcher(replace(dataset, target=target.numpy()))
    return [batcher.collate(part) for part in np.array_split(np.arange(len(dataset)), n_batches)]


def run_step(module, loss, batches):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        value = accumulate_gradient(loss, batches, forward_of(module))
    gradients = [parameter.grad for parameter in module.parameters()]
    module.zero_grad(set_to_none=True)
    return value, gradients


@each_loss
@each_candidates
@pytest.mark.parametrize("n_batches", [2, 10])
def test_batches_have_the_gradient_of_one_large_batch(name, candidates, n_batches):
    module = ToyModule(n_classes=2 + 2 * SIZE).double()
    loss = QueryLoss(LOSSES[name], match_candidates=candidates)
    value, gradients = run_step(module, loss, make_step(n_batches, weighted=True))
    expected_value, expected = run_step(module, loss, make_step(1, weighted=True))
    torch.testing.assert_close(value, expected_value, rtol=1e-6, atol=0)
    torch.testing.assert_close(gradients, expected, rtol=1e-5, atol=1e-7)
    assert all(gradient.abs().max() > 1e-4 for gradient in expected), "nothing is compared"


@each_loss
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_batches_differ_from_one_large_batch_by_the_random_candidates_alone(
    name, share, monkeypatch
):
    """They are drawn for each batch; where there is nothing to draw, cutting changes nothing."""
    monkeypatch.setattr(query_module, "_RANDOM_SHARE", share)
    module, loss = ToyModule(n_classes=2 + 2 * SIZE).double(), QueryLoss(LOSSES[name])
    value, gradients = run_step(module, loss, make_step(4))
    expected_value, expected = run_step(module, loss, make_step(1))
    torch.testing.assert_close(value, expected_value, rtol=1e-6, atol=0)
    torch.testing.assert_close(gradients, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ADDITIVE)
def test_replayed_batches_meet_the_same_random_candidates(name, monkeypatch):
    """Against the gradient of a graph that keeps all batches, drawn once."""
    monkeypatch.setattr(query_module, "_RANDOM_SHARE", 0.3)
    module, loss = ToyModule(n_classes=2 + 2 * SIZE, dropout=0.4).double(), QueryLoss(LOSSES[name])
    batches = make_step(4)
    value, gradients = run_step(module, loss, batches)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        parts = [loss.sums(forward_of(module)(batch), batch["target"]) for batch in batches]
        expected_value = loss.value(torch.stack(parts).sum(0))
    expected = torch.autograd.grad(expected_value, list(module.parameters()))
    torch.testing.assert_close(value, expected_value.detach(), rtol=1e-6, atol=0)
    torch.testing.assert_close(gradients, list(expected), rtol=1e-6, atol=1e-9)


def peak_memory(loss, n_windows, n_words, size=64):
    """Return the bytes that forward and backward have in tensors at once, beyond their inputs."""
    logits = torch.randn(n_windows * n_words, 2 + 2 * size, requires_grad=True)
    target = torch.zeros(n_windows * n_words, 4, dtype=torch.int32)
    target[:, 2] = torch.arange(n_windows).repeat_interleave(n_words)
    target[::20, 0] = target[::20, 1] = target[::20, 3] = 1
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        loss(logits, target).backward()
    events = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    sizes = [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]
    return int(np.cumsum(sizes).max())


@pytest.mark.parametrize("name", ["ce", "dice ohem", "dsc example"])
def test_memory_of_all_pairs(name):
    """No pair has a vector: 8 windows of 512 words would need 1 GB for those of size 64 alone."""
    loss = QueryLoss(LOSSES[name], match_candidates="all")
    n_bytes = peak_memory(loss, n_windows=8, n_words=512)
    assert 8 * 512 * 512 * 4 < n_bytes < 200e6


@pytest.mark.parametrize(
    "copied",
    [clone, copy.deepcopy, lambda loss: pickle.loads(pickle.dumps(loss))],
    ids=["clone", "deepcopy", "pickle"],
)
def test_copies_are_the_same_function(copied):
    logits, target, _ = make_windows()
    loss = QueryLoss(SelfAdjustingDiceLoss(alpha=0.5), (1, 2, 3), "all")
    twin = copied(loss)
    assert twin.loss is not loss.loss
    assert repr(twin) == repr(loss)
    assert twin(logits, target) == loss(logits, target)
    assert list(loss.parameters()) == []
