import re

import pytest
import torch

from skdice import losses

LOGITS = torch.zeros(4, 3)
TARGET = torch.tensor([0, 1, 2, 0])
FLAT = torch.zeros(4)
BINARY = torch.tensor([0, 1, 1, 0])
nan, inf = float("nan"), float("inf")

BAD_PARAMETERS = [
    (losses.CrossEntropyLoss(reduction="sum"),
     ["'reduction'", "CrossEntropyLoss", "'mean'", "'none'", "'sum'"]),
    (losses.CrossEntropyLoss(ignore_index=1.5), ["'ignore_index'", "an int", "1.5"]),
    (losses.CrossEntropyLoss(class_weight=[1, 2]), ["'class_weight'", "(3,)", "(2,)"]),
    (losses.CrossEntropyLoss(class_weight=[1, -2, 3]),
     ["'class_weight'", "not negative", "-2.0", "class 1"]),
    (losses.CrossEntropyLoss(class_weight=[1, 2, nan]),
     ["'class_weight'", "finite", "nan", "class 2"]),
    (losses.CrossEntropyLoss(class_weight=[0, 0, 0]), ["'class_weight'", "above zero", "all"]),
    (losses.DiceLoss(class_weight="balanced"),
     ["'class_weight'", "DiceLoss", "None or an array", "'balanced'"]),
    (losses.WeightedCrossEntropyLoss(class_weight=None),
     ["'class_weight'", "(n_classes,)", "None", "log_class_weight"]),
    (losses.DiceLoss(gamma=nan), ["'gamma'", "DiceLoss", "[0, inf)", "nan"]),
    (losses.DiceLoss(square_denominator=1), ["'square_denominator'", "True", "False", "Got 1 "]),
    (losses.DiceLoss(average="weighted"),
     ["'average'", "'micro'", "'macro'", "'sum'", "'weighted'"]),
    (losses.DiceLoss(ohem_ratio=1, level="example"),
     ["'ohem_ratio'", "level='example'", "within a batch", "1"]),
    (losses.DiceLoss(ce_weight=1.1), ["'ce_weight'", "[0, 1]", "1.1"]),
    (losses.DiceLoss(background="O"), ["'background'", "'auto'", "'O'"]),
    (losses.DiceLoss(background=3), ["'background'", "None, 'auto' or a class index in 0..2", "3"]),
    (losses.DiceLoss(reduction="none"),
     ["'reduction'", "'mean'", "level='batch'", "level='example'", "'none'"]),
    (losses.SelfAdjustingDiceLoss(detach_weight="no"),
     ["'detach_weight'", "True", "False", "'no'"]),
    *((losses.DiceLoss(memory=memory), ["'memory' parameter of DiceLoss must be 'auto' or a f"])
      for memory in (-1, "10", None, True)),
    # Of one binary column, and of several labels.
    (losses.DiceLoss(background=1),
     ["'background'", "None, 'auto' or 0", "one binary"], FLAT, BINARY),
    (losses.DiceLoss(class_weight=[2.0]), ["'class_weight'", "(2,)", "(1,)"], FLAT, BINARY),
    (losses.DiceLoss(class_weight=[1, 2, 3]), ["(3, 2)"], LOGITS, torch.zeros(4, 3)),
]  # fmt: skip

BAD_INPUTS = [
    (LOGITS.long(), TARGET, None, ["float dtype", "torch.int64"]),
    (LOGITS, TARGET.float(), None, ["integer targets", "int64", "torch.float32"]),
    (LOGITS, TARGET[:3], None, ["(n_items, n_classes)", "(4, 3)", "(3,)"]),
    (LOGITS[None], TARGET[None], None, ["(1, 4, 3)", "logits.flatten(0, 1)", "target.flatten()"]),
    (FLAT, BINARY[:, None], None, ["(n_items, 1)", "(4,)", "(4, 1)"]),
    (LOGITS, torch.tensor([0, 1, 3, 5]), None, ["target 3", "item 2", "0..2", "ignore_index=-100"]),
    (FLAT, torch.tensor([0, 1, 2, 0]), None, ["target 2", "item 2", "0..1"]),
    (FLAT, torch.tensor([0.0, 0.5, 1.0, 0.0]), None, ["target 0.5", "item 1", "0..1"]),
    (LOGITS, torch.zeros(4, 2), None, ["(4, 3)", "(4, 2)", "multi-label"]),
    (LOGITS, torch.tensor([[0, 1, 2]] * 4), None, ["target 2", "item 0, column 2", "0..1"]),
    (LOGITS, torch.zeros(4, 3), torch.ones(4, 2), ["sample_weight", "(4,)", "(4, 2)"]),
    (LOGITS, TARGET, torch.ones(3), ["sample_weight", "(4,)", "(3,)"]),
    (LOGITS, TARGET, torch.tensor([1.0, -1.0, 1.0, 1.0]), ["sample_weight", "-1.0 for item 1"]),
    (LOGITS, TARGET, torch.tensor([1.0, 1.0, 1.0, torch.nan]), ["sample_weight", "nan for item 3"]),
]


def raises(parts):
    everywhere = "".join(f"(?=.*{re.escape(part)})" for part in parts)
    return pytest.raises(ValueError, match=f"(?s){everywhere}")


@pytest.mark.parametrize("bad", BAD_PARAMETERS, ids=lambda value: "")
def test_bad_parameters(bad):
    loss, parts, *rows = bad
    with raises(parts):
        loss(*(rows or (LOGITS, TARGET)))


@pytest.mark.parametrize("logits, target, weight, parts", BAD_INPUTS, ids=lambda value: "")
@pytest.mark.parametrize(
    "loss", [losses.CrossEntropyLoss(), losses.FocalLoss(), losses.DiceLoss(level="example")]
)
def test_bad_inputs(loss, logits, target, weight, parts):
    owner = [] if "sample_weight" in parts else [type(loss).__name__]
    with raises(parts + owner):
        loss(logits, target, weight)


@pytest.mark.parametrize("counts, K, parts", [
    ([10, 0, 5], 3, ["class 1", "count is 0", "greater than 0"]),
    ({"O": 10, "PER": 0}, 3, ["class 'PER'", "count is 0"]),
    ([10], 3, ["at least two classes", "(1,)"]),
    ([10, 2], nan, ["'K'", "log_class_weight", "nan"]),
    # The weight of a class with 900 of 1000 items: log10(1/9 + K).
    ([900, 100], 0.5, ["class 0", "negative", "K=0.5", "900 of 1000", "K >= 0.888889", "K=1"]),
    ({"O": 900, "X": 100}, 0.0, ["class 'O'", "negative", "K=0.0"]),
    ([900, 100], -1, ["class 0", "undefined", "K=-1"]),
    # Both weights are negative: the named bound must hold for both.
    ([40, 60], 0.1, ["class 1", "negative", "K >= 0.333333"]),
])  # fmt: skip
def test_log_class_weight(counts, K, parts):
    with raises(parts):
        losses.log_class_weight(counts, K=K)


@pytest.mark.parametrize("function", [losses.make_loss, losses.loss_parameters])
@pytest.mark.parametrize("name", ["bce", "DSC", None, ["dice"]])
def test_unknown_name(function, name):
    names = ["'ce'", "'wce'", "'focal'", "'dice'", "'tversky'", "'dsc'", "'dsc-paper'"]
    with raises([*names, "'dsc-official'", "skdice.losses.Loss object", repr(name)]):
        function(name)


@pytest.mark.parametrize("name", ["auto", "cv"])
def test_some_names_are_of_estimators(name):
    with raises([f"loss={name!r}", "for estimators"]):
        losses.make_loss(name)
