"""The losses of starts and ends in windows, and of matches, against naive loops."""

from dataclasses import replace
from functools import partial
from typing import get_args

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile

from skdice.losses import CrossEntropyLoss, DiceLoss, QueryLoss, SpanLoss, _combined
from skdice.text import Ragged, offsets_from_lengths

from ..nn.toy import ToyModule, forward_of, make_batcher, make_dataset, run_step
from . import catalogue
from .catalogue import IGNORED, value_and_gradient

# Cross-entropy over positions has no class weights, and without smoothing there is no gradient
# where nothing is positive.
NAMES = [
    "ce", "focal-class_weight", "dsc-small-alpha", "dsc-batch-micro-square-all",
    "dsc-batch-micro-square-ohem", "dsc-batch-micro-linear-plain", "dsc-example-micro-square-all",
]  # fmt: skip
LOSSES = {name: catalogue.EVERY[f"{name}-flat"].loss for name in NAMES}
SIZE = 3
LENGTHS = [3, 1, 7, 2, 5]


def span_windows(lengths=LENGTHS, seed=0, ignored=(), dtype=torch.float64):
    """Return logits and targets of windows with one span each, some of them ignored."""
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(len(lengths)), lengths)
    border = np.zeros((len(row), 2), dtype=np.int32)
    for i, first in enumerate(np.cumsum(lengths) - lengths):
        start, end = sorted(rng.integers(0, lengths[i], 2))
        border[first + start, 0] = border[first + end, 1] = 1
    border[np.isin(row, ignored)] = IGNORED
    logits = 2 * rng.standard_normal((len(row), 2))
    target = _combined.WindowTarget(*map(torch.from_numpy, (border, row)))
    return torch.from_numpy(logits).to(dtype), target


def query_windows(lengths=LENGTHS, seed=0, n_spans=2, dtype=torch.float64):
    """Return logits and targets of windows with some spans."""
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(len(lengths)), lengths)
    first = np.cumsum(lengths) - lengths
    border = np.zeros((len(row), 2), dtype=np.int32)
    match = np.zeros((len(lengths), max(lengths), max(lengths)), dtype=bool)
    for i, length in enumerate(lengths):
        for _ in range(n_spans):
            start, end = sorted(rng.integers(0, length, 2).tolist())
            border[first[i] + start, 0] = border[first[i] + end, 1] = 1
            match[i, start, end] = True
    logits = 2 * rng.standard_normal((len(row), 2 + 2 * SIZE))
    place = np.arange(len(row)) - first[row]
    target = _combined.WindowTarget(*map(torch.from_numpy, (border, row, place, match)))
    return torch.from_numpy(logits).to(dtype), target


def take(logits, target, windows):
    """Return the logits and targets of some windows, which may be repeated, and their items."""
    windows = torch.as_tensor(windows, dtype=torch.int64)
    of_window = [(target.row == w).nonzero().squeeze(1) for w in windows]
    items = torch.cat([*of_window, torch.zeros(0, dtype=torch.int64)])
    lengths = torch.tensor([len(part) for part in of_window], dtype=torch.int64)
    row = torch.arange(len(windows)).repeat_interleave(lengths)
    taken = target._replace(border=target.border[items], row=row)
    if target.match is not None:
        taken = taken._replace(place=target.place[items], match=target.match[windows])
    return logits[items], taken, items


def make_step(make_windows, n_batches, weighted=False):
    """Return a step of windows, three texts with several, cut into batches."""
    dataset = make_dataset([3, 6, 9, 4, 2, 7], [1, 3, 2, 1, 1, 2], weighted=weighted)
    target = make_windows(dataset.items.lengths.tolist())[1]
    dataset = replace(dataset, target=target.border.numpy())
    if target.match is not None:
        spans = [np.argwhere(match) for match in target.match.numpy()]
        offsets = offsets_from_lengths([len(of_window) for of_window in spans])
        dataset = replace(dataset, matches=Ragged(np.concatenate(spans), offsets))
    batcher = make_batcher(dataset)
    return [batcher.collate(part) for part in np.array_split(np.arange(len(dataset)), n_batches)]


@pytest.fixture
def many_candidates(monkeypatch):
    """Let a third of the words be random starts and ends, as texts are so short here."""
    monkeypatch.setattr(_combined, "_RANDOM_SHARE", 0.3)


CE = SpanLoss(CrossEntropyLoss())
each_loss = pytest.mark.parametrize("name", LOSSES)
each_lengths = pytest.mark.parametrize(
    "lengths", [[1], [5], [1, 1, 1], [4, 4, 4], [3, 1, 7, 2], [1, 30, 2, 2, 9]], ids=str
)


def padded_cross_entropy(logits, target, sample_weight=None):
    """The loss of torch over windows filled up with what has no probability."""
    sides = []
    for column in (0, 1):
        rows, gold, weights = [], [], []
        for i in target.row.unique():
            here = target.row == i
            if (target.border[here, column] == IGNORED).all():
                continue
            rows.append(logits[here, column])
            gold.append((target.border[here, column] == 1).nonzero().item())
            weights.append(1.0 if sample_weight is None else sample_weight[here][0].item())
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-torch.inf)
        losses = F.cross_entropy(padded, torch.tensor(gold), reduction="none")
        weight = torch.tensor(weights, dtype=logits.dtype)
        sides.append((losses * weight).sum() / weight.sum())
    return (sides[0] + sides[1]) / 2


@each_lengths
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cross_entropy_is_that_of_padded_windows(lengths, dtype):
    for seed in range(3):
        logits, target = span_windows(lengths, seed, dtype=dtype, ignored=[2])
        for weight in (None, torch.linspace(0.5, 2, len(lengths)).double()[target.row]):
            got = value_and_gradient(CE, logits, target, weight)
            expected = value_and_gradient(padded_cross_entropy, logits, target, weight)
            got, expected = ([x.double() for x in both] for both in (got, expected))
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scale", [20, 44, 88])
def test_saturated_cross_entropy_in_float32(scale):
    logits, target = span_windows([3, 1, 7, 2, 2000])
    logits = scale * logits.sign() + logits / 8
    got = value_and_gradient(CE, logits.float(), target)
    expected = value_and_gradient(padded_cross_entropy, logits, target)
    torch.testing.assert_close(got[0].double(), expected[0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(got[1].double(), expected[1], rtol=0, atol=1e-5)


def mean_of_sides(name):
    loss = LOSSES[name]

    def mean(logits, target, sample_weight=None):
        start, end = (loss(logits[:, i], target.border[:, i].long(), sample_weight) for i in (0, 1))
        return (start + end) / 2

    return mean


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "ce"])
@each_lengths
def test_other_losses_are_the_mean_of_starts_and_ends(name, lengths):
    logits, target = span_windows(lengths, ignored=[2])
    for weight in (None, torch.linspace(0.5, 2, len(lengths)).double()[target.row]):
        got = value_and_gradient(SpanLoss(LOSSES[name]), logits, target, weight)
        expected = value_and_gradient(mean_of_sides(name), logits, target, weight)
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("bad", [1.0, 88.0, float("nan"), float("inf"), -float("inf")])
@each_loss
def test_ignored_windows_change_nothing(name, bad):
    logits, target = span_windows([3, 1, 7, 2, 2], ignored=[0, 2])
    kept = target.border[:, 0] != IGNORED
    weight = torch.linspace(0.5, 2, 5).double()[target.row]
    *rest, items = take(logits, target, [1, 3, 4])
    expected = value_and_gradient(SpanLoss(LOSSES[name]), *rest, weight[items])
    logits[~kept] = bad
    value, gradient = value_and_gradient(SpanLoss(LOSSES[name]), logits, target, weight)
    assert (gradient[~kept] == 0).all()
    torch.testing.assert_close((value, gradient[kept]), expected, rtol=1e-6, atol=1e-8)


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
@pytest.mark.parametrize(
    "candidates", [c for c in get_args(_combined.MatchCandidates) if "random" not in c]
)
def test_is_the_weighted_mean_of_three_losses(name, candidates):
    loss = QueryLoss(LOSSES[name], match_candidates=candidates)
    for seed in range(3):
        logits, target = query_windows(seed=seed)
        weight = torch.linspace(0.5, 2, 5).double()[target.row] if seed else None
        naive = naive_loss(LOSSES[name], candidates)
        expected = value_and_gradient(naive, logits, target, weight)
        got = value_and_gradient(loss, logits, target, weight)
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-12)
        assert got[1][:, 2:].abs().max() > 0, "matches are not learned"


def test_random_candidates_are_about_one_in_a_hundred():
    logits, target = query_windows([512] * 8)
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
def test_replayed_batches_meet_the_same_random_candidates(name, many_candidates):
    """Against the gradient of a graph that keeps all batches, drawn once."""
    module, loss = ToyModule(n_classes=2 + 2 * SIZE, dropout=0.4).double(), QueryLoss(LOSSES[name])
    batches = make_step(query_windows, 4)
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
    target = _combined.WindowTarget(border, row, place, match)
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


SPAN = {f"span {name}": SpanLoss(loss) for name, loss in LOSSES.items()}
QUERY = {
    f"query {name} {candidates}": QueryLoss(loss, match_candidates=candidates)
    for name, loss in LOSSES.items()
    for candidates in get_args(_combined.MatchCandidates)
}
EVERY = SPAN | QUERY
each_certain = pytest.mark.parametrize("name", [name for name in EVERY if "random" not in name])


def make_windows(name, ignored=(), **options):
    """Return logits and targets of windows; only extractors ignore some."""
    return span_windows(ignored=ignored, **options) if name in SPAN else query_windows(**options)


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
    weight = torch.linspace(0.5, 2, 5).double()[target.row]
    n_parts = len(EVERY[name].span_weights)
    of_parts = weight[:, None].repeat(1, n_parts)
    found = value_and_gradient(EVERY[name], logits, target, of_parts)
    torch.testing.assert_close(found, value_and_gradient(EVERY[name], logits, target, weight))
    of_parts[:, 1] = 0
    _, gradient = value_and_gradient(EVERY[name], logits, target, of_parts)
    assert (gradient[:, 1] == 0).all()
    assert (gradient[:, 0] != 0).any()


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
