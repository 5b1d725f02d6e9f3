"""LossDerivativeDisplay: the derivatives against closed forms, and what is drawn."""

import sys

import numpy as np
import pytest

from skdice.inspection import LossDerivativeDisplay
from skdice.losses import (
    CrossEntropyLoss,
    DiceLoss,
    FocalLoss,
    WeightedCrossEntropyLoss,
)

CLOSED_FORMS = [
    ("ce", 1, lambda p: -1 / p),
    ("ce", 0, lambda p: 1 / (1 - p)),
    (WeightedCrossEntropyLoss(class_weight=[0.5, 3.0]), 1, lambda p: -3 / p),
    (WeightedCrossEntropyLoss(class_weight=[0.5, 3.0]), 0, lambda p: 0.5 / (1 - p)),
    ("dice", 0, lambda p: 2 * p / (p**2 + 1) ** 2),
    (DiceLoss(square_denominator=False), 1, lambda p: -3 / (p + 2) ** 2),
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
