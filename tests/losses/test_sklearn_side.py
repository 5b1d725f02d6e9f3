"""Losses as scikit-learn objects and as torch modules."""

import copy
import inspect
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skdice import DiceTextClassifier, losses
from skdice.estimators import load_pretrained

from ..corpora import easy_texts
from .catalogue import CASES, batch, value_and_gradient

CLASSES = sorted({type(case.loss) for case in CASES}, key=str)


@pytest.mark.parametrize(
    "copied", [clone, copy.copy, copy.deepcopy, lambda loss: pickle.loads(pickle.dumps(loss))]
)
def test_copies_are_the_same_function(copied):
    for case in CASES:
        logits, target = batch(case.kind)
        twin = copied(case.loss)
        assert twin is not case.loss
        assert type(twin) is type(case.loss)
        assert twin.get_params() == case.loss.get_params()
        assert repr(twin) == repr(case.loss)
        assert twin(logits, target) == case.loss(logits, target)


@pytest.mark.parametrize("kind", [list, np.array, lambda w: torch.tensor(w).double()])
def test_class_weights_that_are_changed_in_place_count(kind):
    weight, (logits, target) = kind([1.0, 2.0, 3.0]), batch("classes")
    loss = losses.WeightedCrossEntropyLoss(class_weight=weight)
    assert loss(logits, target) == loss(logits, target)
    weight[1] = 20.0
    fresh = losses.WeightedCrossEntropyLoss(class_weight=weight)
    assert loss(logits, target) == fresh(logits, target)
    weight[2] = -1.0
    with pytest.raises(ValueError, match="not negative"):
        loss(logits, target)


@pytest.mark.parametrize("cls", CLASSES)
def test_constructor_only_assigns(cls):
    parameters = inspect.signature(cls).parameters
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in parameters.values())
    assert list(cls(class_weight=None).get_params()) == sorted(parameters)
    for name in parameters:
        value = object()
        given = {"class_weight": None, name: value}
        assert getattr(cls(**given), name) is value


# The warning is dynamo's own, about how it looks into autograd functions.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_compiles_without_a_graph_break():
    dynamo = pytest.importorskip("torch._dynamo")
    if not dynamo.is_dynamo_supported():
        pytest.skip("torch.compile does not support this Python")
    logits, target = batch("classes")
    for loss in (
        losses.FocalLoss(gamma=0.5, class_weight=[0.5, 2.0, 1.0]),
        losses.TverskyLoss(level="example", average="macro", ce_weight=0.3),
        losses.SelfAdjustingDiceLoss(ohem_ratio=0.5, background=0),
    ):
        compiled = torch.compile(loss, backend="eager", fullgraph=True)
        torch.testing.assert_close(
            value_and_gradient(compiled, logits, target), value_and_gradient(loss, logits, target)
        )


# Defaults are spelt out where a name stands for them.
SET = {"gamma": 1.0, "square_denominator": True, "level": "batch", "average": "micro"}
SET |= {"memory": "auto", "background": "auto", "ohem_ratio": 0.0, "ce_weight": 0.0}
PUBLISHED = {"memory": 0.0, "level": "example", "background": None}
PAPER = losses.SelfAdjustingDiceLoss(
    alpha=1.0, square_denominator=False, average="macro", **PUBLISHED
)
NAMED = [
    ("ce", False, losses.CrossEntropyLoss()),
    ("focal", False, losses.FocalLoss(gamma=2.0)),
    ("dice", False, losses.DiceLoss(**SET)),
    ("tversky", False, losses.TverskyLoss(alpha=0.5, beta=0.5, **SET)),
    ("dsc", False, losses.SelfAdjustingDiceLoss(alpha=0.01, detach_weight=False, **SET)),
    ("dsc-paper", False, PAPER),
    ("dsc-paper", True, PAPER),
    ("dsc-official", True, losses.SelfAdjustingDiceLoss(alpha=0.01, **{**SET, "memory": 0.0})),
    ("dsc-official", False, losses.SelfAdjustingDiceLoss(alpha=0.01, average="sum", **PUBLISHED)),
]


@pytest.mark.parametrize("name, binary, expected", NAMED)
def test_make_loss(name, binary, expected):
    loss = losses.make_loss(name, binary=binary)
    assert type(loss) is type(expected)
    assert loss.get_params() == expected.get_params()


def test_make_loss_takes_parameters():
    paper = losses.make_loss("dsc-paper", alpha=0.5, background=0)
    assert (paper.alpha, paper.background, paper.level) == (0.5, 0, "example")


@pytest.mark.parametrize("name", losses.LOSS_NAMES)
def test_loss_parameters_are_those_of_the_class(name):
    loss = losses.make_loss(name, **({"class_weight": [1, 1]} if name == "wce" else {}))
    tunable = {"alpha", "beta", "gamma", "ce_weight"}
    if name in ("dice", "tversky", "dsc"):  # The presets are as published, without a memory.
        tunable.add("memory")
    assert set(losses.loss_parameters(name)) == tunable & set(loss.get_params())


@pytest.mark.parametrize("loss, collapses", [
    (losses.make_loss("dsc-paper"), True),
    (losses.SelfAdjustingDiceLoss(level="example", alpha=0.5), True),
    (losses.SelfAdjustingDiceLoss(level="example", alpha=1.0, detach_weight=True), False),
    (losses.SelfAdjustingDiceLoss(level="example", alpha=0.01), False),
    (losses.SelfAdjustingDiceLoss(alpha=1.0), False),
    (losses.make_loss("dsc-official"), False),
], ids=repr)  # fmt: skip
def test_known_collapse(loss, collapses):
    reason = loss.known_collapse()
    assert (reason is not None) == collapses


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_known_collapse_says_where_a_positive_is_pulled_to(alpha):
    loss = losses.SelfAdjustingDiceLoss(alpha=alpha, level="example", square_denominator=False)
    p = torch.linspace(0.01, 0.99, 99, dtype=torch.float64)
    values = clone(loss).set_params(reduction="none")(p.logit(), torch.ones(99))
    assert f"p = {p[values.argmin()]:.2f}" in loss.known_collapse()


class JaccardLoss(losses.SetLoss):
    """The example of the how-to."""

    def cells(self, p, y):
        return p * y, p + y - p * y


@dataclass(kw_only=True, eq=False, repr=False)
class SoftenedLoss(losses.Loss):
    """A mean over items with a parameter of its own."""

    softness: float = 0.1

    def item_losses(self, items):
        uniform = -items.logits.log_softmax(1).mean(1)
        return (1 - self.softness) * items.cross_entropy + self.softness * uniform


OWN_LOSSES = {
    "set": (JaccardLoss(gamma=0.5), {"loss__gamma": [0.5, 1.0]}),
    "mean": (SoftenedLoss(softness=0.2), {"loss__softness": [0.0, 0.2]}),
}


@pytest.mark.parametrize("name", OWN_LOSSES)
def test_life_of_an_own_loss(name, tiny_bert, tmp_path):
    loss, grid = OWN_LOSSES[name]
    assert clone(loss).get_params() == pickle.loads(pickle.dumps(loss)).get_params()
    X, y = easy_texts(12)
    classifier = DiceTextClassifier(
        tiny_bert, loss=loss, max_epochs=1, precision="fp32", random_state=0, verbose=0
    )
    search = GridSearchCV(classifier, grid, cv=2).fit(X, y)
    best = search.best_estimator_
    assert type(best.loss_) is type(loss)
    best.save_pretrained(tmp_path / "saved")
    loaded = load_pretrained(tmp_path / "saved")
    assert repr(loaded.loss_) == repr(best.loss_)
    np.testing.assert_array_equal(loaded.decision_function(X), best.decision_function(X))
