"""The loss of starts, ends and matches, against its definition by naive loops."""

from typing import get_args

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from skdice.losses import DiceLoss, MatchCandidates, QueryLoss

from ..nn.toy import ToyModule, forward_of, run_step
from .catalogue import IGNORED, value_and_gradient
from .windows import LOSSES, SIZE, WindowTarget, draw_many_candidates, make_step
from .windows import query_windows as make_windows

CERTAIN = [candidates for candidates in get_args(MatchCandidates) if "random" not in candidates]

each_loss = pytest.mark.parametrize("name", LOSSES)
each_candidates = pytest.mark.parametrize("candidates", CERTAIN)


def naive_matches(logits, target, candidates):
    scores, gold, firsts = [], [], []
    for w in target.row.unique().tolist():
        items = (target.row == w).nonzero().squeeze(1).tolist()
        for a, start in enumerate(items):
            for b, end in enumerate(items[a:], start=a):
                is_start, is_end = target.border[start, 0] == 1, target.border[end, 1] == 1
                chosen = {
                    "all": True,
                    "gold": is_start and is_end,
                    "pred_and_gold": (is_start or logits[start, 0] > 0)
                    and (is_end or logits[end, 1] > 0),
                }[candidates]
                if chosen:
                    vectors = logits[start, 2 : 2 + SIZE], logits[end, 2 + SIZE :]
                    scores.append((vectors[0] * vectors[1]).sum() / SIZE**0.5)
                    gold.append(int(target.match[w, a, b]))
                    firsts.append(start)
    scores = torch.stack(scores) if scores else logits.new_zeros(0)
    return scores, torch.tensor(gold, dtype=torch.int64), firsts


def naive_loss(loss, candidates, weights=(1.0, 1.0, 0.1)):
    def value(logits, target, sample_weight=None):
        scores, gold, firsts = naive_matches(logits, target, candidates)
        parts = [
            loss(logits[:, 0], target.border[:, 0].long(), sample_weight),
            loss(logits[:, 1], target.border[:, 1].long(), sample_weight),
            loss(scores, gold, None if sample_weight is None else sample_weight[firsts]),
        ]
        return sum(w * part for w, part in zip(weights, parts)) / sum(weights)

    return value


@each_loss
@each_candidates
def test_is_the_weighted_mean_of_three_losses(name, candidates):
    loss = QueryLoss(LOSSES[name], match_candidates=candidates)
    for seed in range(3):
        logits, target = make_windows(seed=seed)
        weight = torch.linspace(0.5, 2, 5).double()[target.row] if seed else None
        naive = naive_loss(LOSSES[name], candidates)
        expected = value_and_gradient(naive, logits, target, weight)
        got = value_and_gradient(loss, logits, target, weight)
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-12)
        assert got[1][:, 2:].abs().max() > 0, "matches are not learned"


@pytest.mark.parametrize("weights", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (2, 2, 0.2), (1, 1, 0.1)])
def test_weights_of_the_three_losses(weights):
    logits, target = make_windows()
    got = QueryLoss(DiceLoss(), weights, "all")(logits, target)
    expected = naive_loss(DiceLoss(), "all", weights)(logits, target)
    torch.testing.assert_close(got, expected)
    scaled = QueryLoss(DiceLoss(), tuple(10 * w for w in weights), "all")(logits, target)
    torch.testing.assert_close(scaled, got)


def test_candidates_contain_each_other(monkeypatch):
    draw_many_candidates(monkeypatch)
    logits, target = make_windows([12, 30, 8])
    pairs = {}
    for candidates in ("gold", "pred_and_gold", "pred_gold_random", "all"):
        torch.manual_seed(0)
        loss = QueryLoss(DiceLoss(), match_candidates=candidates)
        gold = loss.parts(logits, target, None)[2][1]
        pairs[candidates] = set((gold != IGNORED).nonzero().squeeze(1).tolist())
    sizes = [len(found) for found in pairs.values()]
    assert pairs["gold"] < pairs["pred_and_gold"] < pairs["pred_gold_random"] < pairs["all"], sizes


def test_random_candidates_are_about_one_in_a_hundred():
    logits, target = make_windows([512] * 8)
    logits[:, :2] = -1.0
    border, match = torch.zeros_like(target.border), torch.zeros_like(target.match)
    target = target._replace(border=border, match=match)
    torch.manual_seed(0)
    loss = QueryLoss(DiceLoss())
    is_candidate = (loss.parts(logits, target, None)[2][1] != IGNORED).view(8, 512, 512)
    assert 20 < int(is_candidate.any(2).sum()) < 65
    torch.manual_seed(0)
    first = loss(logits, target)
    torch.manual_seed(0)
    assert loss(logits, target) == first


@pytest.mark.parametrize("name", [name for name in LOSSES if "ohem" not in name])
def test_replayed_batches_meet_the_same_random_candidates(name, monkeypatch):
    """Against the gradient of a graph that keeps all batches, drawn once."""
    draw_many_candidates(monkeypatch)
    module, loss = ToyModule(n_classes=2 + 2 * SIZE, dropout=0.4).double(), QueryLoss(LOSSES[name])
    batches = make_step(make_windows, 4)
    value, gradients, _ = run_step(module, loss, batches)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        parts = [loss.sums(forward_of(module)(batch), loss.target(batch)) for batch in batches]
        expected_value = loss.value(torch.stack(parts).sum(0))
    expected = torch.autograd.grad(expected_value, list(module.parameters()))
    torch.testing.assert_close(value, expected_value.detach(), rtol=1e-6, atol=0)
    torch.testing.assert_close(gradients, list(expected), rtol=1e-6, atol=1e-9)


def peak_memory(loss, n_windows, n_words, size=64):
    """Return the bytes that forward and backward have in tensors at once, beyond their inputs."""
    logits = torch.randn(n_windows * n_words, 2 + 2 * size, requires_grad=True)
    border = torch.zeros(n_windows * n_words, 2, dtype=torch.int32)
    border[::20] = 1
    row = torch.arange(n_windows).repeat_interleave(n_words)
    place = torch.arange(n_words).repeat(n_windows)
    match = torch.zeros(n_windows, n_words, n_words, dtype=torch.bool)
    match[row[::20], place[::20], place[::20]] = True
    target = WindowTarget(border, row, place, match)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        loss(logits, target).backward()
    events = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    sizes = [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]
    return int(np.cumsum(sizes).max())


@pytest.mark.parametrize(
    "name", ["ce", "dsc-batch-micro-square-ohem", "dsc-example-micro-square-all"]
)
def test_memory_of_all_pairs(name):
    """No pair has a vector: 8 windows of 512 words would need 1 GB for those of size 64 alone."""
    loss = QueryLoss(LOSSES[name], match_candidates="all")
    n_bytes = peak_memory(loss, n_windows=8, n_words=512)
    assert 8 * 512 * 512 * 4 < n_bytes < 250e6
