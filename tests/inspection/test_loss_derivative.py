"""LossDerivativeDisplay: the derivatives against closed forms, and what is drawn."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from skdice.inspection import LossDerivativeDisplay
from skdice.losses import (
    CrossEntropyLoss,
    DiceLoss,
    FocalLoss,
    SelfAdjustingDiceLoss,
    TverskyLoss,
    WeightedCrossEntropyLoss,
)


def dice(p, gamma=1.0):
    return -(2 * (p**2 + 1 + gamma) - (2 * p + gamma) * 2 * p) / (p**2 + 1 + gamma) ** 2


def focal(p, gamma=2.0):
    return gamma * (1 - p) ** (gamma - 1) * np.log(p) - (1 - p) ** gamma / p


def dsc(p, alpha, gamma=1.0):
    """Eq. 12 with the linear denominator, f = (1 - p)^alpha p."""
    f = (1 - p) ** alpha * p
    df = (1 - p) ** (alpha - 1) * (1 - (1 + alpha) * p)
    return -(2 * (f + 1 + gamma) - (2 * f + gamma)) / (f + 1 + gamma) ** 2 * df


def tversky(p, beta=0.5, gamma=1.0):
    """The squared form: TP = p, FN = (1 - p)^2."""
    n, d = p + gamma, p + beta * (1 - p) ** 2 + gamma
    return -(d - n * (1 - 2 * beta * (1 - p))) / d**2


CLOSED_FORMS = [
    ("ce", 1, lambda p: -1 / p),
    ("ce", 0, lambda p: 1 / (1 - p)),
    (WeightedCrossEntropyLoss(class_weight=[0.5, 3.0]), 1, lambda p: -3 / p),
    (WeightedCrossEntropyLoss(class_weight=[0.5, 3.0]), 0, lambda p: 0.5 / (1 - p)),
    ("focal", 1, focal),
    ("focal", 0, lambda p: -focal(1 - p)),
    (FocalLoss(gamma=0.5), 1, lambda p: focal(p, 0.5)),
    ("dice", 1, dice),
    ("dice", 0, lambda p: 2 * p / (p**2 + 1) ** 2),
    (DiceLoss(gamma=0.3), 1, lambda p: dice(p, 0.3)),
    (DiceLoss(square_denominator=False), 1, lambda p: -3 / (p + 2) ** 2),
    ("tversky", 1, tversky),
    (TverskyLoss(beta=0.8), 1, lambda p: tversky(p, 0.8)),
    ("dsc-paper", 1, lambda p: dsc(p, 1.0)),
    (SelfAdjustingDiceLoss(alpha=0.3, square_denominator=False), 1, lambda p: dsc(p, 0.3)),
    ("dsc-paper", 0, lambda p: (1 - 2 * p) / ((1 - p) * p + 1) ** 2),
]


@pytest.mark.parametrize("loss, target, expected", CLOSED_FORMS)
def test_closed_forms(loss, target, expected):
    display = LossDerivativeDisplay.from_losses([loss], target=target)
    p = display.probabilities
    np.testing.assert_allclose(p, np.linspace(0.01, 0.99, 99))
    (values,) = display.derivatives.values()
    np.testing.assert_allclose(values, expected(p), rtol=1e-7, atol=1e-9)


def test_figure_1_of_the_paper():
    """Only DSC stops pushing before p = 1: right after 0.5 it pulls back."""
    display = LossDerivativeDisplay.from_losses(["focal", "dice", "tversky", "dsc-paper"])
    p, curves = display.probabilities, display.derivatives
    for name in ("focal", "dice", "tversky"):
        assert (curves[name] < 0).all()
        assert abs(curves[name][-1]) < 0.03
    np.testing.assert_array_equal(np.sign(curves["dsc-paper"]), np.sign(np.round(p - 0.5, 9)))


@pytest.mark.parametrize("target", [0, 1])
@pytest.mark.parametrize("cls", [DiceLoss, TverskyLoss, SelfAdjustingDiceLoss])
def test_levels_and_reductions_are_the_same_over_one_item(cls, target):
    losses = {
        "batch": cls(),
        "example": cls(level="example"),
        "single": cls(level="example", reduction="none"),
        "macro": cls(average="macro"),
        "mined": cls(ohem_ratio=2.0),
    }
    display = LossDerivativeDisplay.from_losses(losses, target=target, n_points=9)
    for values in display.derivatives.values():
        np.testing.assert_allclose(values, display.derivatives["batch"])


def test_labels():
    display = LossDerivativeDisplay.from_losses(
        ("ce", FocalLoss(gamma=1.0), SelfAdjustingDiceLoss(alpha=1.0, square_denominator=False)),
        n_points=3,
    )
    expected = ["ce", "FocalLoss(gamma=1.0)"]
    expected.append("SelfAdjustingDiceLoss(alpha=1.0, square_denominator=False)")
    assert list(display.derivatives) == expected
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == expected
    display = LossDerivativeDisplay.from_losses({"a": "ce", "b": CrossEntropyLoss()}, n_points=3)
    assert [line.get_label() for line in display.lines_] == ["a", "b"]


@pytest.mark.parametrize("target, item", [(0, "a negative item"), (1, "a positive item")])
def test_what_is_drawn(target, item):
    display = LossDerivativeDisplay.from_losses(["ce", "dice"], target=target)
    assert display.figure_ is display.ax_.figure
    for line, values in zip(display.lines_, display.derivatives.values(), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), display.probabilities)
        np.testing.assert_array_equal(line.get_ydata(), values)
    assert item in display.ax_.get_ylabel()
    assert "Probability" in display.ax_.get_xlabel()


@pytest.mark.parametrize("target", [0, 1])
def test_limits_show_bounded_curves_in_full_and_cut_the_others(target):
    display = LossDerivativeDisplay.from_losses(
        ["ce", "focal", "dice", "dsc", "dsc-paper"], target=target
    )
    low, high = display.ax_.get_ylim()
    for name in ("dice", "dsc", "dsc-paper"):
        assert low < display.derivatives[name].min()
        assert display.derivatives[name].max() < high
    assert low < 0 < high
    assert 2 < high - low < 6  # Cross-entropy reaches 100.


def test_constant_loss_has_an_axis():
    display = LossDerivativeDisplay.from_losses(
        [WeightedCrossEntropyLoss(class_weight=[0.0, 1.0])], target=0, n_points=5
    )
    assert not display.derivatives.popitem()[1].any()
    low, high = display.ax_.get_ylim()
    assert low < high


def test_axes_of_ones_own():
    _, (left, right) = plt.subplots(1, 2)
    display = LossDerivativeDisplay.from_losses(["ce"], n_points=3, ax=left)
    assert display.ax_ is left
    assert display.plot(right) is display
    assert display.ax_ is right
    assert display.plot().ax_ not in (left, right)


@pytest.mark.parametrize(
    "losses, params, error, message",
    [
        ("ce", {}, TypeError, "losses"),
        (CrossEntropyLoss(), {}, TypeError, "losses"),
        (None, {}, TypeError, "losses"),
        ({"ce", "dice"}, {}, TypeError, "losses"),
        ([], {}, ValueError, "got none"),
        (["ce", "huber"], {}, ValueError, "'huber'"),
        (["wce"], {}, TypeError, "class_weight"),
        ([DiceLoss], {}, TypeError, "DiceLoss"),
        ({"a": 3}, {}, TypeError, "got 3"),
        ([FocalLoss(gamma=-1)], {}, ValueError, "'gamma' parameter of FocalLoss"),
        (["ce"], {"target": 2}, ValueError, "'target'"),
        (["ce"], {"target": "1"}, ValueError, "'target'"),
        (["ce"], {"n_points": 1}, ValueError, "'n_points'"),
    ],
)
def test_errors(losses, params, error, message):
    with pytest.raises(error, match=message):
        LossDerivativeDisplay.from_losses(losses, **params)


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install matplotlib.*skdice\[plot\]"):
        LossDerivativeDisplay.from_losses({"dice": "dice"})
