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
LEVELS_AND_AVERAGES = tuple(itertools.product(("batch", "example"), ("micro", "macro", "sum")))
SET_LOSSES = {
    "dice": (DiceLoss, {}),
    "tversky": (TverskyLoss, {"alpha": 0.3, "beta": 0.6}),
    "dsc": (SelfAdjustingDiceLoss, {"alpha": 0.5}),
}
CLASS_WEIGHT = {2: (0.4, 1.5), 3: (0.4, 1.5, 2.5)}
LABEL_WEIGHT = [[0.5, 2.0], [1.0, 3.0], [0.7, 0.0]]
LOSSES_OF_LABELS = {
    "ce": CrossEntropyLoss(),
    "wce": WeightedCrossEntropyLoss(class_weight=LABEL_WEIGHT),
    "focal": FocalLoss(gamma=0.5),
    "dice": DiceLoss(class_weight=LABEL_WEIGHT),
    "dice macro": DiceLoss(average="macro", background=1, ce_weight=0.3),
    "tversky": TverskyLoss(alpha=0.3, beta=0.7, square_denominator=False),
    "dsc": SelfAdjustingDiceLoss(alpha=0.5, average="sum"),
    "dsc example": SelfAdjustingDiceLoss(level="example", class_weight=LABEL_WEIGHT, ce_weight=0.2),
    "dice ohem": DiceLoss(ohem_ratio=1.0, class_weight=LABEL_WEIGHT),
}


@dataclass(frozen=True)
class Case:
    """A loss with the kind of logits it is run on: "classes" (N, 3), "flat" (N,), "labels" (N, 3).

    The background, where there is one, is class 0.
    """

    id: str
    loss: Loss
    kind: str

    @property
    def is_set(self) -> bool:
        return hasattr(self.loss, "level")


def batch(kind, n_items=6, seed=0, ignored=True, dtype=torch.float64):
    """Return random logits without ties and targets with all classes, one item ignored.

    A further kind is "labels": three columns of 0 and 1, of which some are ignored.
    """
    generator = torch.Generator().manual_seed(seed)
    width = {"classes": (3,), "labels": (3,), "flat": (), "column": (1,)}[kind]
    logits = 2 * torch.randn((n_items, *width), generator=generator, dtype=dtype)
    if kind == "labels":
        target = (torch.rand(n_items, 3, generator=generator) < 0.4).long()
        if ignored:
            target[1, 0] = target[-1, 2] = IGNORED
            target[2] = IGNORED
        return logits, target
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


def losses_of_means(n_classes):
    """Return the cross-entropies and focal losses by name."""
    weight = CLASS_WEIGHT[n_classes]
    return {
        "ce": CrossEntropyLoss(),
        "ce-class_weight": CrossEntropyLoss(class_weight=weight),
        "wce": WeightedCrossEntropyLoss(class_weight=weight),
        "focal-0": FocalLoss(gamma=0.0),
        "focal-0.5": FocalLoss(gamma=0.5),
        "focal-2": FocalLoss(gamma=2.0),
        "focal-class_weight": FocalLoss(class_weight=weight),
    }


def set_losses(name, n_classes):
    """Return set losses by name: level x average x form x option."""
    cls, own = SET_LOSSES[name]
    options = {
        "plain": {},
        "background": {"background": 0},
        "ce_weight": {"ce_weight": 0.3},
        "class_weight": {"class_weight": CLASS_WEIGHT[n_classes]},
    }
    options["all"] = {key: value for option in options.values() for key, value in option.items()}
    options["ohem"] = {"ohem_ratio": 0.7}
    options["all_ohem"] = options["all"] | options["ohem"]
    losses = {}
    for level, average in LEVELS_AND_AVERAGES:
        for form in ("square", "linear"):
            for option, given in options.items():
                if level == "example" and "ohem" in option:
                    continue
                losses[f"{name}-{level}-{average}-{form}-{option}"] = cls(
                    level=level,
                    average=average,
                    square_denominator=form == "square",
                    **own,
                    **given,
                )
    return losses


def _selected(name, n_classes):
    """Whether a set loss stands in CASES: one option off the default at a time, and all."""
    family, level, average, form, option = name.split("-")
    if family != "dsc" and option not in ("plain", "all", "ohem"):
        return False
    if n_classes == 2 and average != "micro":  # One scored class: no average to form.
        return False
    if option == "plain":
        return form == "square" or average == "micro"
    if average == "micro":
        return form == "square" and (level == "batch" or option == "all")
    return average == "macro" and form == "linear" and ("ohem" in option or option == "all")


def _cases():
    for kind, n_classes in (("classes", 3), ("flat", 2)):
        losses = losses_of_means(n_classes)
        for family in SET_LOSSES:
            every = set_losses(family, n_classes)
            losses |= {k: loss for k, loss in every.items() if _selected(k, n_classes)}
        losses["dsc-small-alpha"] = SelfAdjustingDiceLoss()
        losses["dsc-no-smoothing"] = SelfAdjustingDiceLoss(alpha=2.0, gamma=0.0, average="macro")
        for name, loss in losses.items():
            yield Case(f"{name}-{kind}", loss, kind)
    for name, loss in LOSSES_OF_LABELS.items():
        yield Case(f"{name}-labels", loss, "labels")


CASES = list(_cases())
IDS = [case.id for case in CASES]
