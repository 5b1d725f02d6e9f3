"""Multi-label: a sigmoid for each column, against the formulas cell by cell."""

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
    LOSSES_OF_LABELS,
    batch,
    value_and_gradient,
)

WEIGHT = torch.tensor([1.0, 2, 3, 0, 0.5, 1, 2], dtype=torch.float64)


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
