"""What a set loss that remembers steps tends to: value and gradient of the whole corpus."""

import pytest
import torch
from sklearn.base import clone

from skdice import losses

N_STEPS = 50
RARE = 2
SET_LOSSES = {
    "dice": losses.DiceLoss(), "dice linear": losses.DiceLoss(square_denominator=False),
    "dice weights": losses.DiceLoss(class_weight=(0.3, 1.0, 4.0)),
    "dice macro": losses.DiceLoss(average="macro"),
    "dice sum": losses.DiceLoss(average="sum"), "dice ce_weight": losses.DiceLoss(ce_weight=0.3),
    "tversky": losses.TverskyLoss(alpha=0.3, beta=0.7, average="macro"),
    "dsc": losses.SelfAdjustingDiceLoss(alpha=0.5),
}  # fmt: skip
# All losses with classes, and two with the other kinds of logits.
KINDS = [*((name, "classes") for name in SET_LOSSES), ("dice weights", "column"), ("dsc", "labels")]


def corpus(kind, n_steps=N_STEPS, seed=0):
    """Return the logits of a network that has learned something, and targets, of all steps.

    Every tenth step has positives, and one alone has class 2. The background is class 0.
    """
    generator = torch.Generator().manual_seed(seed)
    n_columns = {"classes": 3, "column": 1, "labels": 2}[kind]
    logits = torch.randn(n_steps, 12, n_columns, generator=generator, dtype=torch.float64)
    target = torch.zeros(n_steps, 12, n_columns, dtype=torch.int64)
    target[::10, :6] = 1
    if kind == "classes":
        target = target[:, :, 0]
        target[7, :6] = RARE
        return logits + 2 * torch.nn.functional.one_hot(target, 3), target
    logits = logits + 3 * target - 2
    return logits, target.squeeze(2) if kind == "column" else target


def fitting(loss, kind):
    """Return the loss as it is for logits of a kind: background and weights of two classes."""
    loss = clone(loss)
    if kind != "classes" and loss.class_weight is not None:
        loss.set_params(class_weight=(0.3, 2.0) if kind == "column" else [(0.3, 2.0)] * 2)
    return loss.set_params(background=0 if kind == "classes" else "auto")


def of_corpus(loss, logits, target):
    """Return value and gradient of the loss over all steps as one set, gamma on their scale."""
    whole = clone(loss).set_params(gamma=loss.gamma * len(logits))
    z = logits.clone().requires_grad_()
    value = whole(z.flatten(0, 1), target.flatten(0, 1))
    (gradient,) = torch.autograd.grad(value, z)
    return value.detach(), gradient


def of_steps(loss, logits, target, memory, epochs=1):
    """Return the values of the steps of the last epoch, and their gradients."""
    # The weights stand still, so the sums of a step are the same in every epoch.
    still = [loss.sums(*step) for step in zip(logits, target, strict=True)]
    for _ in range(epochs - 1):
        for sums in still:
            memory(sums)
    z = logits.clone().requires_grad_()
    steps = zip(z, target, strict=True)
    values = torch.stack([loss.value(memory(loss.sums(*step))) for step in steps])
    (gradient,) = torch.autograd.grad(values.sum(), z)
    return values.detach(), gradient


@pytest.mark.parametrize("name, kind", KINDS)
def test_the_value_tends_to_that_of_the_corpus(name, kind):
    loss = fitting(SET_LOSSES[name], kind)
    logits, target = corpus(kind)
    expected, _ = of_corpus(loss, logits, target)
    values, _ = of_steps(loss, logits, target, losses.SumsMemory(N_STEPS))
    torch.testing.assert_close(values[-1], expected)
    alone, _ = of_steps(loss, logits, target, losses.SumsMemory(0))
    assert (alone - expected).abs().mean() > 0.02


@pytest.mark.parametrize("name, kind", KINDS)
def test_the_gradient_of_an_epoch_tends_to_that_of_the_corpus(name, kind):
    loss = fitting(SET_LOSSES[name], kind)
    logits, target = corpus(kind)
    _, expected = of_corpus(loss, logits, target)
    expected = expected * N_STEPS  # Each step has the gradient of a mean, one of N_STEPS.
    sizes = (0, 10, 1000)
    found = [of_steps(loss, logits, target, losses.SumsMemory(n), epochs=30)[1] for n in sizes]
    far = [(gradient - expected).norm() / expected.norm() for gradient in found]
    assert far[0] > 0.1
    assert far[2] < 0.02
    assert far[0] > far[1] > far[2]


def test_the_first_steps_are_a_plain_mean():
    memory = losses.SumsMemory(4)
    for i, expected in enumerate([1.0, 1.5, 2.0, 2.5, 2.5 * 0.75 + 5 / 4], start=1):
        memory(torch.tensor([float(i)]))
        assert memory.mean.item() == pytest.approx(expected)
    assert memory.count == 5


def test_means_have_nothing_to_remember():
    for loss in (losses.CrossEntropyLoss(), losses.FocalLoss()):
        assert loss.memory == 0
        assert "memory" not in loss.get_params()
    for wrap in (losses.SpanLoss, losses.QueryLoss):
        assert wrap(losses.DiceLoss(memory=7)).memory == 7
        assert wrap(losses.CrossEntropyLoss()).memory == 0
    assert losses.QueryLoss(losses.DiceLoss(level="example", memory=7)).memory == 0
