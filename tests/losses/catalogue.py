"""The losses and batches that the tables of the tests run over."""

import itertools
from dataclasses import dataclass

import torch

from skdice.losses import (
    CrossEntropyLoss,
    DiceLoss,
    FocalLoss,
    Loss,
    SelfAdjustingDiceLoss,
    TverskyLoss,
    WeightedCrossEntropyLoss,
)

IGNORED = -100
LEVELS_AND_AVERAGES = tuple(
    itertools.product(("batch", "example"), ("micro", "macro", "sum")),
)
SET_LOSSES = {
    "dice": (DiceLoss, {}),
    "tversky": (TverskyLoss, {"alpha": 0.3, "beta": 0.6}),
    "dsc": (SelfAdjustingDiceLoss, {"alpha": 0.5}),
}
CLASS_WEIGHT = {2: (0.4, 1.5), 3: (0.4, 1.5, 2.5)}


@dataclass(frozen=True)
class Case:
    """A loss with the kind of logits it is run on: "classes" (N, 3), "flat" (N,), "column" (N, 1).

    The background, where there is one, is class 0.
    """

    id: str
    loss: Loss
    kind: str

    @property
    def is_set(self) -> bool:
        return hasattr(self.loss, "level")


def batch(kind, n_items=6, seed=0, ignored=True, dtype=torch.float64):
    """Return random logits without ties and targets with all classes, one item ignored."""
    generator = torch.Generator().manual_seed(seed)
    shape = {"classes": (n_items, 3), "flat": (n_items,), "column": (n_items, 1)}[kind]
    logits = 2 * torch.randn(shape, generator=generator, dtype=dtype)
    target = torch.arange(n_items) % (3 if kind == "classes" else 2)
    target = target[torch.randperm(n_items, generator=generator)]
    if ignored:
        target[n_items // 2] = IGNORED
    return logits, target


def value_and_gradient(loss, logits, target, sample_weight=None):
    """Return the loss and its gradient by the logits, detached."""
    logits = logits.detach().clone().requires_grad_()
    value = loss(logits, target, sample_weight)
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    return value.detach(), gradient


def _losses(n_classes):
    weight = CLASS_WEIGHT[n_classes]
    yield "ce", CrossEntropyLoss()
    yield "ce-class_weight", CrossEntropyLoss(class_weight=weight)
    yield "wce", WeightedCrossEntropyLoss(class_weight=weight)
    for gamma in (0.0, 0.5, 1.0, 2.0):
        yield f"focal-{gamma}", FocalLoss(gamma=gamma)
    yield "focal-class_weight", FocalLoss(class_weight=weight)
    for name, (cls, own) in SET_LOSSES.items():
        for level, average in LEVELS_AND_AVERAGES:
            for square in (True, False):
                form = "square" if square else "linear"
                yield (
                    f"{name}-{level}-{average}-{form}",
                    cls(level=level, average=average, square_denominator=square, **own),
                )
        for level, average in (("batch", "micro"), ("batch", "macro"), ("example", "macro")):
            variants = {
                "background": {"background": 0},
                "ce_weight": {"ce_weight": 0.3},
                "class_weight": {"class_weight": weight},
            }
            if level == "batch":
                variants["ohem"] = {"ohem_ratio": 0.7}
            variants["all"] = {
                key: value for variant in variants.values() for key, value in variant.items()
            }
            for variant, parameters in variants.items():
                yield (
                    f"{name}-{level}-{average}-{variant}",
                    cls(level=level, average=average, **own, **parameters),
                )
    yield "dsc-small-alpha", SelfAdjustingDiceLoss()
    yield "dsc-no-smoothing", SelfAdjustingDiceLoss(gamma=0.0, average="macro")
    yield "dsc-alpha-2", SelfAdjustingDiceLoss(alpha=2.0, background=0)


CASES = [
    Case(f"{name}-{kind}", loss, kind)
    for kind, n_classes in (("classes", 3), ("flat", 2))
    for name, loss in _losses(n_classes)
]
IDS = [case.id for case in CASES]
