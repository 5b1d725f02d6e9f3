import pytest
import torch
from sklearn.base import clone

from skdice.losses import CrossEntropyLoss, DiceLoss, FocalLoss, SelfAdjustingDiceLoss, TverskyLoss

from . import catalogue
from .catalogue import CASES, IDS, IGNORED, batch, value_and_gradient
from .test_formulas import WEIGHT

# Of the labels of an item some alone may be ignored.
OF_ITEMS = [case for case in CASES if case.kind != "labels"]


@pytest.mark.parametrize("level, average", catalogue.LEVELS_AND_AVERAGES)
@pytest.mark.parametrize("cls", [DiceLoss, TverskyLoss, SelfAdjustingDiceLoss])
def test_auto_background_is_none(cls, level, average):
    logits, target = batch("classes")
    values = [
        cls(level=level, average=average, background=background)(logits, target)
        for background in ("auto", None, 0)
    ]
    assert values[0] == values[1] != values[2]


def parts(n_items, seed):
    """Cut the items at random into four parts, the last of them empty."""
    part = torch.randint(0, 3, (n_items,), generator=torch.Generator().manual_seed(seed))
    return [(part == k).nonzero().squeeze(1) for k in range(4)]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_sums_of_parts_give_value_and_gradient_of_the_whole(case):
    """Unless hard examples are chosen among all."""
    logits, target = batch(case.kind, n_items=10)
    assert case.loss.additive == (not getattr(case.loss, "ohem_ratio", 0))
    if not case.loss.additive:
        halves = [case.loss.sums(logits[i], target[i]) for i in torch.arange(10).split(5)]
        assert not torch.allclose(sum(halves), case.loss.sums(logits, target))
        return
    whole = value_and_gradient(case.loss, logits, target, WEIGHT)
    for seed in range(3):

        def by_parts(z, target, weight, seed=seed):
            return case.loss.value(
                sum(case.loss.sums(z[i], target[i], weight[i]) for i in parts(len(target), seed))
            )

        torch.testing.assert_close(value_and_gradient(by_parts, logits, target, WEIGHT), whole)


@pytest.mark.parametrize("case", OF_ITEMS, ids=lambda case: case.id)
def test_separable_losses_are_weighted_means(case):
    logits, target = batch(case.kind)
    n_valid = (target != IGNORED).sum()
    one_by_one = [case.loss(logits[i], target[i]) for i in (target != IGNORED).nonzero()]
    mean = sum(one_by_one) / n_valid
    assert case.loss.separable is (not case.is_set or case.loss.level == "example")
    if case.loss.separable:
        torch.testing.assert_close(case.loss(logits, target), mean)
        torch.testing.assert_close(case.loss.sums(logits, target)[1].item(), float(n_valid))
    else:
        assert abs(case.loss(logits, target) - mean) > 1e-6


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_weights_are_repetitions(case):
    for seed in range(3):
        logits, target = batch(case.kind, n_items=10, seed=seed)
        times = torch.randint(0, 4, (10,), generator=torch.Generator().manual_seed(seed))
        rows = torch.arange(10).repeat_interleave(times)
        value, gradient = value_and_gradient(case.loss, logits, target, times)
        expected, repeated = value_and_gradient(case.loss, logits[rows], target[rows])
        torch.testing.assert_close(value, expected)
        torch.testing.assert_close(gradient, torch.zeros_like(logits).index_add(0, rows, repeated))


@pytest.mark.parametrize("case", [c for c in CASES if c.kind == "flat"], ids=lambda c: c.id)
def test_shapes_and_types_of_a_binary_column(case):
    logits, target = batch("flat")
    expected = value_and_gradient(case.loss, logits, target)
    for column in (target, target.unsqueeze(1), target.double(), target.int()):
        value, gradient = value_and_gradient(case.loss, logits.unsqueeze(1), column)
        torch.testing.assert_close((value, gradient.squeeze(1)), expected)


@pytest.mark.parametrize("case", [c for c in CASES if c.kind == "classes"], ids=lambda c: c.id)
def test_any_ignore_index(case):
    logits, target = batch("classes")
    expected = value_and_gradient(case.loss, logits, target)
    for ignore_index in (-1, 7, 255):
        loss = clone(case.loss).set_params(ignore_index=ignore_index)
        renamed = torch.where(target == IGNORED, ignore_index, target)
        torch.testing.assert_close(value_and_gradient(loss, logits, renamed), expected)


def test_a_set_without_weight_is_no_part_of_the_mean():
    loss, weight = DiceLoss(level="example"), torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    logits, target = torch.ones(2, 2), torch.tensor([[1, 0], [0, 1]])
    assert loss.total_weight(target, weight) == loss.sums(logits, target, weight)[1] == 2


@pytest.mark.parametrize("loss", [CrossEntropyLoss(), FocalLoss()])
def test_weights_of_cells_of_several_labels(loss):
    logits, target = batch("labels", n_items=7)
    of_rows, of_cells = WEIGHT[:7].float(), WEIGHT[:7].float()[:, None].expand(target.shape)
    torch.testing.assert_close(loss(logits, target, of_cells), loss(logits, target, of_rows))
    weight = torch.linspace(0, 2, target.numel()).view(target.shape)
    each = clone(loss).set_params(reduction="none")(logits, target)
    divisor = weight[target != IGNORED].sum()
    torch.testing.assert_close(loss(logits, target, weight), (each * weight).sum() / divisor)
    torch.testing.assert_close(loss.total_weight(target, weight), divisor)
