"""The losses and batches that the tables of the tests run over."""

import itertools
from dataclasses import dataclass

import torch

from skdice import losses

IGNORED = -100
LEVELS_AND_AVERAGES = tuple(itertools.product(("batch", "example"), ("micro", "macro", "sum")))
FORMS = {"square": True, "linear": False}
ONE_OPTION = ("background", "ce_weight", "class_weight")
SET_LOSSES = {
    "dice": (losses.DiceLoss, {}),
    "tversky": (losses.TverskyLoss, {"alpha": 0.3, "beta": 0.6}),
    "dsc": (losses.SelfAdjustingDiceLoss, {"alpha": 0.5}),
}
CLASS_WEIGHT = {2: (0.4, 1.5), 3: (0.4, 1.5, 2.5)}
LABEL_WEIGHT = [[0.5, 2.0], [1.0, 3.0], [0.7, 0.0]]
LOSSES_OF_LABELS = {
    "ce": losses.CrossEntropyLoss(),
    "wce": losses.WeightedCrossEntropyLoss(class_weight=LABEL_WEIGHT),
    "focal": losses.FocalLoss(gamma=0.5),
    "dice": losses.DiceLoss(class_weight=LABEL_WEIGHT),
    "dice macro": losses.DiceLoss(average="macro", background=1, ce_weight=0.3),
    "tversky": losses.TverskyLoss(alpha=0.3, beta=0.7, square_denominator=False),
    "dsc": losses.SelfAdjustingDiceLoss(alpha=0.5, average="sum"),
    "dsc example": losses.SelfAdjustingDiceLoss(
        level="example", class_weight=LABEL_WEIGHT, ce_weight=0.2
    ),
    "dice ohem": losses.DiceLoss(ohem_ratio=1.0, class_weight=LABEL_WEIGHT),
}


@dataclass(frozen=True)
class Case:
    """A loss with the kind of logits it is run on: "classes" (N, 3), "flat" (N,), "labels" (N, 3).

    The background, where there is one, is class 0.
    """

    id: str
    loss: losses.Loss
    kind: str

    @property
    def is_set(self) -> bool:
        return hasattr(self.loss, "average")


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
    logits = logits.detach().clone().requires_grad_()
    value = loss(logits, target, sample_weight)
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    return value.detach(), gradient


def _losses(n_classes):
    """Yield means and set losses with their names: family, level, average, form and option."""
    weight = CLASS_WEIGHT[n_classes]
    yield "ce", losses.CrossEntropyLoss()
    yield "ce-class_weight", losses.CrossEntropyLoss(class_weight=weight)
    yield "wce", losses.WeightedCrossEntropyLoss(class_weight=weight)
    yield from ((f"focal-{gamma}", losses.FocalLoss(gamma=gamma)) for gamma in (0.0, 0.5, 2.0))
    yield "focal-class_weight", losses.FocalLoss(class_weight=weight)
    yield "dsc-small-alpha", losses.SelfAdjustingDiceLoss()
    yield "dsc-no-smoothing", losses.SelfAdjustingDiceLoss(alpha=2.0, gamma=0.0, average="macro")
    options = {
        "plain": {},
        "background": {"background": 0},
        "ce_weight": {"ce_weight": 0.3},
        "class_weight": {"class_weight": weight},
    }
    options["all"] = {key: value for option in options.values() for key, value in option.items()}
    options["ohem"] = {"ohem_ratio": 0.7}
    options["all_ohem"] = options["all"] | options["ohem"]
    # With two classes one is scored, and there is no average to form.
    averages = LEVELS_AND_AVERAGES if n_classes == 3 else LEVELS_AND_AVERAGES[::3]
    for (level, average), form, option in itertools.product(averages, FORMS, options):
        is_default = (level, average, form) == ("batch", "micro", "square")
        if (option in ONE_OPTION and not is_default) or (level == "example" and "ohem" in option):
            continue
        how = {"level": level, "average": average, "square_denominator": FORMS[form]}
        for family, (cls, own) in SET_LOSSES.items():
            name = f"{family}-{level}-{average}-{form}-{option}"
            yield name, cls(**how, **own, **options[option])


def _every():
    for kind, n_classes in (("classes", 3), ("flat", 2)):
        for name, loss in _losses(n_classes):
            yield Case(f"{name}-{kind}", loss, kind)
    for name, loss in LOSSES_OF_LABELS.items():
        yield Case(f"{name}-labels", loss, "labels")


# All of them are compared with their formulas; what else is promised, of one of each sort.
EVERY = {case.id: case for case in _every()}
IDS = [
    "ce-class_weight-classes", "focal-0.5-classes", "focal-class_weight-classes",
    "dice-batch-micro-square-plain-classes", "tversky-batch-macro-linear-all-classes",
    "dsc-batch-sum-square-plain-classes", "dsc-batch-macro-linear-all_ohem-classes",
    "dice-example-macro-linear-all-classes", "tversky-example-sum-square-plain-classes",
    "dsc-example-micro-square-all-classes", "dsc-small-alpha-classes", "dsc-no-smoothing-classes",
    "ce-class_weight-flat", "focal-2.0-flat", "dice-batch-micro-square-all-flat",
    "tversky-example-micro-square-all-flat", "dsc-batch-micro-linear-plain-flat",
    "dsc-batch-micro-square-all_ohem-flat", "wce-labels", "dice macro-labels", "dsc example-labels",
    "dice ohem-labels",
]  # fmt: skip
CASES = [EVERY[id_] for id_ in IDS]
