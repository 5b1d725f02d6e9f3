"""Multi-label: a sigmoid for each column, against the formulas cell by cell."""

from functools import partial

import pytest
import torch
from sklearn.base import clone

from skdice.losses import (
    CrossEntropyLoss,
    FocalLoss,
)

from .catalogue import (
    IGNORED,
    LABEL_WEIGHT,
    LEVELS_AND_AVERAGES,
    LOSSES_OF_LABELS,
    SET_LOSSES,
    batch,
    value_and_gradient,
)
from .reference import plain_loss

WEIGHT = torch.tensor([1.0, 2, 3, 0, 0.5, 1, 2], dtype=torch.float64)


def assert_plain(loss):
    logits, target = batch("labels", n_items=7)
    for weight in (None, WEIGHT):
        got = value_and_gradient(loss, logits, target, weight)
        expected = value_and_gradient(partial(plain_loss, loss), logits, target, weight)
        torch.testing.assert_close(got, expected)
        assert (got[1][target == IGNORED] == 0).all()


@pytest.mark.parametrize("level, average", LEVELS_AND_AVERAGES)
@pytest.mark.parametrize("name", SET_LOSSES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"square_denominator": False},
        {"background": 1},
        {"ce_weight": 0.3},
        {"class_weight": LABEL_WEIGHT},
        {"background": 0, "ce_weight": 0.6, "class_weight": LABEL_WEIGHT, "gamma": 0.2},
    ],
    ids=lambda options: "-".join(options),
)
def test_set_losses_are_the_formula(name, level, average, options):
    cls, own = SET_LOSSES[name]
    assert_plain(cls(level=level, average=average, **own, **options))


@pytest.mark.parametrize("loss", [CrossEntropyLoss(), FocalLoss()])
def test_weights_of_cells(loss):
    logits, target = batch("labels", n_items=7)
    of_rows, of_cells = WEIGHT.float(), WEIGHT.float()[:, None].expand(target.shape)
    torch.testing.assert_close(loss(logits, target, of_cells), loss(logits, target, of_rows))
    weight = torch.linspace(0, 2, target.numel()).view(target.shape)
    each = clone(loss).set_params(reduction="none")(logits, target)
    divisor = weight[target != IGNORED].sum()
    torch.testing.assert_close(loss(logits, target, weight), (each * weight).sum() / divisor)
    torch.testing.assert_close(loss.total_weight(target, weight), divisor)


@pytest.mark.parametrize("name", LOSSES_OF_LABELS)
def test_one_label_is_one_binary_column(name):
    loss = clone(LOSSES_OF_LABELS[name])
    if loss.class_weight is not None:
        loss.set_params(class_weight=LABEL_WEIGHT[0])
    if getattr(loss, "background", None) == 1:
        loss.set_params(background=0)
    logits, target = batch("flat", n_items=7)
    expected, flat_gradient = value_and_gradient(loss, logits, target)
    value, gradient = value_and_gradient(loss, logits[:, None], target[:, None])
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(gradient[:, 0], flat_gradient)
