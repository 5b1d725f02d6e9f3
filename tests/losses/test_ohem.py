"""Which cells online hard example mining keeps, against a slow reference."""

import pytest
import torch
from sklearn.base import clone

from skdice.losses import DiceLoss, SelfAdjustingDiceLoss, TverskyLoss

from .catalogue import IGNORED, batch, value_and_gradient


def kept_cells(p, target, background, ratio, average):
    """Return the cells (item, class) that take part; p is a list of rows, one value if binary."""
    binary = len(p[0]) == 1
    gold = [1 if binary else c for c in range(len(p[0]))]
    units = [
        (i, c)
        for i in range(len(p))
        for c in range(len(p[0]))
        if target[i] != IGNORED and (binary or c != background)
    ]
    groups = (
        [units]
        if average == "micro"
        else [[u for u in units if u[1] == c] for c in range(len(p[0]))]
    )
    kept = []
    for group in groups:
        positives = [(i, c) for i, c in group if target[i] == gold[c]]
        negatives = [(i, c) for i, c in group if target[i] != gold[c]]
        k = min(max(1, round(ratio * len(positives))), len(negatives))
        hardest = sorted(negatives, key=lambda u: (-p[u[0]][u[1]], u))
        kept += positives + hardest[:k]
    return kept


def expected_value_and_gradient(loss, logits, target, background):
    z = logits.clone().requires_grad_()
    p = z.sigmoid().unsqueeze(1) if z.ndim == 1 else z.softmax(1)
    kept = kept_cells(p.tolist(), target.tolist(), background, loss.ohem_ratio, loss.average)
    losses = []
    for c in range(p.shape[1]) if loss.average != "micro" else [None]:
        if c == background and z.ndim == 2 and loss.average != "micro":
            continue
        numerator = denominator = torch.tensor(loss.gamma, dtype=p.dtype)
        for i, j in kept:
            if c in (None, j):
                positive = target[i] == (1 if z.ndim == 1 else j)
                n, d = cell(loss, p[i, j], positive)
                numerator, denominator = numerator + n, denominator + d
        losses.append(1 - numerator / denominator)
    value = sum(losses) / (len(losses) if loss.average == "macro" else 1)
    return value.detach(), torch.autograd.grad(value, z, allow_unused=True)[0]


def cell(loss, p, positive):
    power = 2 if loss.square_denominator else 1
    if isinstance(loss, TverskyLoss):
        wrong = loss.beta * (1 - p) ** power if positive else loss.alpha * p**power
        return p * positive, p * positive + wrong
    f = (1 - p) ** getattr(loss, "alpha", 0) * p
    return 2 * f * positive, f**power + positive


def random_batch(kind, seed):
    """Return logits of few distinct values, so that many cells tie, and targets, some ignored."""
    generator = torch.Generator().manual_seed(seed)
    n_items = int(torch.randint(1, 14, (), generator=generator))
    shape = (n_items, 3) if kind == "classes" else (n_items,)
    logits = torch.randint(-1, 2, shape, generator=generator).double()
    n_classes = 3 if kind == "classes" else 2
    positives = torch.rand(n_items, generator=generator) < 0.4
    target = torch.randint(1, n_classes, (n_items,), generator=generator) * positives
    target[torch.rand(n_items, generator=generator) < 0.2] = IGNORED
    return logits, target


@pytest.mark.parametrize(
    "kind, background", [("classes", None), ("classes", 0), ("flat", None), ("flat", 0)]
)
@pytest.mark.parametrize("average", ["micro", "macro", "sum"])
@pytest.mark.parametrize("ratio", [1e-9, 0.25, 0.5, 1, 1.5, 100.0])
def test_ties(kind, background, average, ratio):
    loss = SelfAdjustingDiceLoss(
        alpha=0.5, average=average, background=background, ohem_ratio=ratio
    )
    for seed in range(12):
        logits, target = random_batch(kind, seed)
        value, gradient = value_and_gradient(loss, logits, target)
        expected, expected_gradient = expected_value_and_gradient(loss, logits, target, background)
        torch.testing.assert_close(value, expected)
        if expected_gradient is None:
            expected_gradient = torch.zeros_like(logits)
        torch.testing.assert_close(gradient, expected_gradient)


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("square", [True, False])
@pytest.mark.parametrize(
    "loss", [DiceLoss(), TverskyLoss(alpha=0.3), SelfAdjustingDiceLoss(alpha=2.0)], ids=repr
)
def test_every_loss(loss, square, average):
    loss = clone(loss).set_params(
        square_denominator=square, average=average, background=0, ohem_ratio=0.6, gamma=0.5
    )
    for seed in range(5):
        logits, target = batch("classes", n_items=11, seed=seed)
        value, gradient = value_and_gradient(loss, logits, target)
        expected, expected_gradient = expected_value_and_gradient(loss, logits, target, 0)
        torch.testing.assert_close(value, expected)
        torch.testing.assert_close(gradient, expected_gradient)


@pytest.mark.parametrize("kind", ["classes", "flat"])
@pytest.mark.parametrize("average", ["micro", "macro", "sum"])
@pytest.mark.parametrize("ratio", [0.3, 1.0, 2.5])
def test_integer_weights_are_repetitions(kind, average, ratio):
    loss = DiceLoss(average=average, background=0, ohem_ratio=ratio)
    for seed in range(12):
        logits, target = random_batch(kind, seed)
        times = torch.randint(0, 4, target.shape, generator=torch.Generator().manual_seed(seed))
        rows = torch.arange(len(target)).repeat_interleave(times)
        value, _ = value_and_gradient(loss, logits, target, times)
        if len(rows):
            expected, _ = expected_value_and_gradient(loss, logits[rows], target[rows], 0)
        else:
            expected = torch.zeros(())
        torch.testing.assert_close(value, expected, check_dtype=False)


@pytest.mark.parametrize("kind", ["classes", "flat"])
@pytest.mark.parametrize("average", ["micro", "macro"])
def test_gradient_of_integer_weights(kind, average):
    loss = DiceLoss(average=average, background=0, ohem_ratio=0.5)
    for seed in range(8):
        logits, target = batch(kind, n_items=9, seed=seed)
        times = torch.arange(9) % 4
        rows = torch.arange(9).repeat_interleave(times)
        _, gradient = value_and_gradient(loss, logits, target, times)
        _, repeated = expected_value_and_gradient(loss, logits[rows], target[rows], 0)
        torch.testing.assert_close(gradient, torch.zeros_like(logits).index_add(0, rows, repeated))


@pytest.mark.parametrize("kind", ["classes", "flat"])
@pytest.mark.parametrize("average", ["micro", "macro"])
def test_class_weights_weigh_kept_cells_and_choose_none(kind, average):
    loss = DiceLoss(average=average, background=0, ohem_ratio=0.5, square_denominator=False)
    logits, target = batch(kind, n_items=9)
    class_weight = [0.4, 1.5, 2.5][: 3 if kind == "classes" else 2]
    value = clone(loss).set_params(class_weight=class_weight)(logits, target)

    p = logits.softmax(1) if kind == "classes" else logits.sigmoid().unsqueeze(1)
    sums = {}
    for i, c in kept_cells(p.tolist(), target.tolist(), 0, 0.5, average):
        positive = target[i] == (c if kind == "classes" else 1)
        group = sums.setdefault(None if average == "micro" else c, [1.0, 1.0])
        group[0] += class_weight[target[i]] * 2 * p[i, c] * positive
        group[1] += class_weight[target[i]] * (p[i, c] + positive)
    expected = sum(1 - n / d for n, d in sums.values()) / len(sums)
    torch.testing.assert_close(value, expected)


def test_cells_left_out_have_no_gradient():
    # One positive, and with ratio 1 the one negative of highest p: the others rest.
    logits = torch.tensor([0.5, -3.0, 2.0, -1.0, 1.0])
    _, gradient = value_and_gradient(DiceLoss(ohem_ratio=1), logits, torch.tensor([1, 0, 0, 0, 0]))
    assert (gradient != 0).tolist() == [True, False, True, False, False]


@pytest.mark.parametrize(
    "target, ratio, n_negatives",
    [
        ([0, 0, 0, 0], 0.5, 1),  # No positive: one negative is still looked at.
        ([1, 1, 1, 0], 5.0, 1),  # No more than there are.
        ([1, 1, 1, 1], 1.0, 0),
        ([1, 0, 0, 0], 2.5, 2),  # 2.5 rounds to even, as Python does.
        ([1, 0, 0, 0], 2.6, 3),
        ([1, IGNORED, 0, IGNORED], 3.0, 1),
    ],
)
def test_number_of_negatives(target, ratio, n_negatives):
    target = torch.tensor(target)
    logits = torch.tensor([0.5, -3.0, 2.0, -1.0])
    loss = DiceLoss(ohem_ratio=ratio, square_denominator=False, gamma=0.1)
    p = logits.sigmoid()
    hardest = p[target == 0].sort(descending=True).values[:n_negatives].sum()
    positive = p[target == 1].sum()
    expected = 1 - (2 * positive + 0.1) / (positive + hardest + (target == 1).sum() + 0.1)
    torch.testing.assert_close(loss(logits, target), expected)


def test_cross_entropy_part_is_over_all_items():
    logits, target = batch("classes")
    mixed = DiceLoss(ohem_ratio=0.3, ce_weight=0.25)(logits, target)
    alone = DiceLoss(ohem_ratio=0.3)(logits, target)
    everything = DiceLoss(ce_weight=1.0)(logits, target)
    torch.testing.assert_close(mixed, 0.25 * everything + 0.75 * alone)
