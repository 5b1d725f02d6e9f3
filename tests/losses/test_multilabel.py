"""Multi-label: a sigmoid for each column, against the formulas cell by cell."""

import math

import pytest
import torch
from torch.nn import functional as F

from skdice.losses import (
    CrossEntropyLoss,
    DiceLoss,
    FocalLoss,
    SelfAdjustingDiceLoss,
    TverskyLoss,
    WeightedCrossEntropyLoss,
)
from skdice.nn._accumulation import accumulate_gradient

from .catalogue import IGNORED, LEVELS_AND_AVERAGES, SET_LOSSES, value_and_gradient

CLASS_WEIGHT = [[0.5, 2.0], [1.0, 3.0], [0.7, 0.0]]


def make_batch(n_items=7, n_labels=3, seed=0, ignored=True):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n_items, n_labels, generator=generator, dtype=torch.float64)
    target = (torch.rand(n_items, n_labels, generator=generator) < 0.4).long()
    if ignored:
        target[1, 0] = target[4, 2] = IGNORED
        target[2] = IGNORED
    return logits, target


def cell_terms(loss, z, y):
    """Return what a cell adds to numerator and denominator."""
    p = 1 / (1 + math.exp(-z))
    power = 2 if loss.square_denominator else 1
    if isinstance(loss, TverskyLoss):
        tp, fp, fn = p * y, p**power * (1 - y), (1 - p) ** power * y
        return tp, tp + loss.alpha * fp + loss.beta * fn
    f = (1 - p) ** getattr(loss, "alpha", 0.0) * p
    return 2 * f * y, f**power + y


def cell_cross_entropy(z, y):
    return math.log1p(math.exp(-z)) if y else math.log1p(math.exp(z))


def ratio(loss, terms):
    numerator = loss.gamma + sum(n for n, _ in terms)
    denominator = loss.gamma + sum(d for _, d in terms)
    return 1 - numerator / denominator


def averaged(loss, columns):
    """Return the loss of one set from the terms of each column."""
    if loss.average == "micro":
        return ratio(loss, [term for column in columns for term in column])
    total = sum(ratio(loss, column) for column in columns)
    return total / len(columns) if loss.average == "macro" else total


def class_weight_of(loss, c, y):
    return 1.0 if loss.class_weight is None else loss.class_weight[c][y]


def expected_set_loss(loss, logits, target, weight):
    """The formulas, cell by cell in Python."""
    z, y, w = logits.tolist(), target.tolist(), weight.tolist()
    n_items, n_labels = target.shape
    kept = [c for c in range(n_labels) if c != loss.background]
    valid = [[c for c in range(n_labels) if y[i][c] != IGNORED] for i in range(n_items)]
    if loss.level == "batch":
        columns = []
        for c in kept:
            column = []
            for i in range(n_items):
                if c in valid[i]:
                    share = w[i] * class_weight_of(loss, c, y[i][c])
                    column.append([share * x for x in cell_terms(loss, z[i][c], y[i][c])])
            columns.append(column)
        value = averaged(loss, columns)
        cells = [(i, c) for i in range(n_items) for c in valid[i]]
        ce = sum(
            w[i] * class_weight_of(loss, c, y[i][c]) * cell_cross_entropy(z[i][c], y[i][c])
            for i, c in cells
        ) / sum(w[i] for i, _ in cells)
        return loss.ce_weight * ce + (1 - loss.ce_weight) * value
    total = 0.0
    for i in range(n_items):
        if valid[i]:
            columns = [[cell_terms(loss, z[i][c], y[i][c])] for c in kept if c in valid[i]]
            value = averaged(loss, columns) if columns else 0.0
            ce = sum(cell_cross_entropy(z[i][c], y[i][c]) for c in valid[i]) / len(valid[i])
            weights = [class_weight_of(loss, c, y[i][c]) for c in valid[i]]
            value = loss.ce_weight * ce + (1 - loss.ce_weight) * value
            total += w[i] * sum(weights) / len(weights) * value
    return total / sum(w[i] for i in range(n_items) if valid[i])


@pytest.mark.parametrize("level, average", LEVELS_AND_AVERAGES)
@pytest.mark.parametrize("name", SET_LOSSES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"square_denominator": False},
        {"background": 1},
        {"ce_weight": 0.3},
        {"class_weight": CLASS_WEIGHT},
        {"background": 0, "ce_weight": 0.6, "class_weight": CLASS_WEIGHT, "gamma": 0.2},
    ],
    ids=lambda options: "-".join(options),
)
def test_set_losses_are_the_formula(name, level, average, options):
    cls, own = SET_LOSSES[name]
    loss = cls(level=level, average=average, **own, **options)
    logits, target = make_batch()
    for weight in (torch.ones(7), torch.tensor([1.0, 2, 3, 0, 0.5, 1, 2])):
        weight = weight.double()
        value = loss(logits, target, weight)
        assert value.item() == pytest.approx(expected_set_loss(loss, logits, target, weight))


def test_cross_entropy_is_that_of_torch():
    logits, target = make_batch(ignored=False)
    expected = F.binary_cross_entropy_with_logits(logits, target.double())
    torch.testing.assert_close(CrossEntropyLoss()(logits, target), expected)
    torch.testing.assert_close(FocalLoss(gamma=0.0)(logits, target), expected)
    torch.testing.assert_close(CrossEntropyLoss()(logits, target.double()), expected)


def test_means_leave_ignored_cells_out():
    logits, target = make_batch()
    valid = target != IGNORED
    weight = torch.tensor([1.0, 2, 3, 0, 0.5, 1, 2], dtype=torch.float64)
    losses = F.binary_cross_entropy_with_logits(logits, target.double(), reduction="none")
    gold = torch.tensor(CLASS_WEIGHT, dtype=torch.float64)[torch.arange(3), target.clamp(0)]
    cells = weight.unsqueeze(1) * valid
    expected = (losses * cells * gold).sum() / cells.sum()
    loss = WeightedCrossEntropyLoss(class_weight=CLASS_WEIGHT)
    torch.testing.assert_close(loss(logits, target, weight), expected)
    each = WeightedCrossEntropyLoss(class_weight=CLASS_WEIGHT, reduction="none")(logits, target)
    torch.testing.assert_close(each, (losses * gold).masked_fill(~valid, 0.0))


MANY = {
    "ce": CrossEntropyLoss(),
    "wce": WeightedCrossEntropyLoss(class_weight=CLASS_WEIGHT),
    "focal": FocalLoss(gamma=0.5),
    "dice": DiceLoss(class_weight=CLASS_WEIGHT),
    "dice macro": DiceLoss(average="macro", background=1, ce_weight=0.3),
    "tversky": TverskyLoss(alpha=0.3, beta=0.7, square_denominator=False),
    "dsc": SelfAdjustingDiceLoss(alpha=0.5, average="sum"),
    "dsc example": SelfAdjustingDiceLoss(level="example", class_weight=CLASS_WEIGHT, ce_weight=0.2),
    "dsc example macro": SelfAdjustingDiceLoss(level="example", average="macro", background=0),
    "dice ohem": DiceLoss(ohem_ratio=1.0, class_weight=CLASS_WEIGHT),
    "dsc ohem macro": SelfAdjustingDiceLoss(ohem_ratio=1.0, average="macro", background=2),
}
each_loss = pytest.mark.parametrize("loss", MANY.values(), ids=MANY.keys())


@each_loss
def test_gradcheck(loss):
    logits, target = make_batch()
    logits.requires_grad_()
    assert torch.autograd.gradcheck(lambda z: loss(z, target), (logits,))
    (gradient,) = torch.autograd.grad(loss(logits, target), logits)
    assert (gradient[target == IGNORED] == 0).all()


@each_loss
def test_one_label_is_one_binary_column(loss):
    loss = type(loss)(**loss.get_params())
    if loss.class_weight is not None:
        loss.set_params(class_weight=CLASS_WEIGHT[0])
    if getattr(loss, "background", None) in (1, 2):
        loss.set_params(background=0)
    logits, target = make_batch(n_labels=1, ignored=False)
    target[3] = IGNORED
    value, gradient = value_and_gradient(loss, logits, target)
    flat, flat_gradient = value_and_gradient(loss, logits[:, 0], target[:, 0])
    torch.testing.assert_close(value, flat)
    torch.testing.assert_close(gradient[:, 0], flat_gradient)


@each_loss
def test_batches_have_the_gradient_of_the_whole(loss):
    logits, target = make_batch(n_items=8)
    weight = torch.rand(8, generator=torch.Generator().manual_seed(1)).double()
    value, gradient = value_and_gradient(loss, logits, target, weight)
    leaf = logits.clone().requires_grad_()
    batches = [
        {"input_ids": target[part], "target": target[part], "weight": weight[part], "row": part}
        for part in torch.arange(8).split(3)
    ]
    total = accumulate_gradient(loss, batches, lambda batch: leaf[batch["row"]])
    torch.testing.assert_close(total, value, rtol=1e-6, atol=0)
    torch.testing.assert_close(leaf.grad, gradient, rtol=1e-6, atol=1e-9)


@each_loss
def test_saturated_cells_are_finite(loss):
    logits = torch.tensor([[88.0, -88, 0], [-88, 88, 20]], requires_grad=True)
    for target in ([[1, 0, 1], [0, 1, 0]], [[0, 1, 0], [1, 0, 1]]):
        value, gradient = value_and_gradient(loss, logits, torch.tensor(target))
        double, double_gradient = value_and_gradient(loss, logits.double(), torch.tensor(target))
        torch.testing.assert_close(value, double.float(), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(gradient, double_gradient.float(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("n_kept", [0.5, 1.0, 3.0])
def test_hardest_negatives(average, n_kept):
    logits, target = make_batch(n_items=12, seed=3)
    loss = DiceLoss(average=average, ohem_ratio=n_kept)
    cells = [(i, c) for i in range(12) for c in range(3) if target[i, c] != IGNORED]
    groups = [cells] if average == "micro" else [[x for x in cells if x[1] == c] for c in range(3)]
    values = []
    for group in groups:
        positives = [x for x in group if target[x] == 1]
        negatives = sorted((x for x in group if target[x] == 0), key=lambda x: -logits[x].item())
        k = min(max(1, round(n_kept * len(positives))), len(negatives))
        chosen = positives + negatives[:k]
        values.append(
            ratio(loss, [cell_terms(loss, logits[x].item(), target[x].item()) for x in chosen])
        )
    assert loss(logits, target).item() == pytest.approx(sum(values) / len(values))


@pytest.mark.parametrize(
    "logits, target, weight, parts",
    [
        ((4, 3), torch.zeros(4, 2), None, ["(4, 3)", "(4, 2)", "multi-label"]),
        ((4, 3), torch.tensor([[0, 1, 2]] * 4), None, ["target 2", "item 0, column 2", "0..1"]),
        ((4, 3), torch.full((4, 3), 0.5), None, ["target 0.5", "item 0, column 0"]),
        ((4, 3), torch.zeros(4, 3), torch.ones(4, 3), ["sample_weight", "(4,)", "(4, 3)"]),
    ],
)
def test_bad_input(logits, target, weight, parts):
    with pytest.raises(ValueError) as error:
        CrossEntropyLoss()(torch.zeros(logits), target, weight)
    assert all(part in str(error.value) for part in parts), str(error.value)


def test_class_weight_needs_both_weights_of_each_label():
    with pytest.raises(ValueError, match=r"\(3, 2\), the weights of 0 and 1 for each label"):
        DiceLoss(class_weight=[1, 2, 3])(torch.zeros(4, 3), torch.zeros(4, 3))


def test_nothing_known():
    for loss in MANY.values():
        logits = torch.zeros(2, 3, requires_grad=True)
        value = loss(logits, torch.full((2, 3), IGNORED))
        value.backward()
        assert value == 0
        assert (logits.grad == 0).all()
