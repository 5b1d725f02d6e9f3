import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from skdice.inspection import LossComparisonDisplay, LossDerivativeDisplay
from skdice.losses import DiceLoss, FocalLoss, WeightedCrossEntropyLoss

from ..model_selection.test_comparison import make_comparison


@pytest.mark.parametrize("loss, target, expected", [
    ("ce", 1, lambda p: -1 / p),
    ("ce", 0, lambda p: 1 / (1 - p)),
    (WeightedCrossEntropyLoss(class_weight=[0.5, 3.0]), 1, lambda p: -3 / p),
    (WeightedCrossEntropyLoss(class_weight=[0.5, 3.0]), 0, lambda p: 0.5 / (1 - p)),
    ("dice", 0, lambda p: 2 * p / (p**2 + 1) ** 2),
    (DiceLoss(square_denominator=False), 1, lambda p: -3 / (p + 2) ** 2),
    ("dsc-paper", 0, lambda p: (1 - 2 * p) / ((1 - p) * p + 1) ** 2),
])  # fmt: skip
def test_closed_forms(loss, target, expected):
    display = LossDerivativeDisplay.from_losses([loss, "focal"], target=target)
    p = display.probabilities
    np.testing.assert_allclose(p, np.linspace(0.01, 0.99, 99))
    values, _ = display.derivatives.values()
    np.testing.assert_allclose(values, expected(p), rtol=1e-7, atol=1e-9)
    assert display.figure_ is display.ax_.figure
    for line, values in zip(display.lines_, display.derivatives.values(), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), p)
        np.testing.assert_array_equal(line.get_ydata(), values)
    assert ("a negative item", "a positive item")[target] in display.ax_.get_ylabel()
    assert "Probability" in display.ax_.get_xlabel()


@pytest.mark.parametrize("losses, target, error, message", [
    ("ce", 1, ValueError, "'loss' parameter must be"), ([], 1, ValueError, "got none"),
    (["ce", "huber"], 1, ValueError, "'huber'"), (["wce"], 1, TypeError, "class_weight"),
    ([FocalLoss(gamma=-1)], 1, ValueError, "'gamma' parameter of FocalLoss"),
    (["ce"], 2, ValueError, "'target'"),
])  # fmt: skip
def test_errors(losses, target, error, message, monkeypatch):
    with pytest.raises(error, match=message):
        LossDerivativeDisplay.from_losses(losses, target=target)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install matplotlib.*skdice\[plot\]"):
        LossDerivativeDisplay.from_losses({"dice": "dice"})


def test_comparison_shows_the_table():
    comparison = make_comparison(("dice", "ce", "tversky"), (0, 1), baseline="ce")
    display = LossComparisonDisplay(comparison).plot()
    table, ax = comparison.table(), display.ax_
    assert display.figure_ is ax.figure
    assert [label.get_text() for label in ax.get_yticklabels()] == ["dice", "ce", "tversky"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # The first loss is on top.
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("F1 (%)", "Loss")
    means = display.mean_points_.get_offsets()
    np.testing.assert_allclose(means, np.column_stack([table["f1"], range(3)]))
    base = table.loc["ce", "f1"]
    assert display.baseline_line_.get_xdata() == pytest.approx([base, base])
    segments = display.interval_lines_.get_segments()
    shown = {int(segment[0, 1]): segment[:, 0] - base for segment in segments if len(segment)}
    borders = table[["f1_delta_low", "f1_delta_high"]].astype(float)
    for i, loss in ((0, "dice"), (2, "tversky")):
        np.testing.assert_allclose(shown[i], borders.loc[loss])
    seeds = display.seed_points_.get_offsets()
    np.testing.assert_allclose(seeds[:, 0], 100 * comparison.frame["f1"])
    assert np.round(seeds[:, 1]).tolist() == [0, 0, 1, 1, 2, 2]
    assert display.plot() is display
    assert display.ax_ is not ax
    near = make_comparison(("dice", "ce"), (0,), baseline="ce", error_rates=(0.0, 0.02)).plot()
    intervals = [segment[:, 0] for segment in near.interval_lines_.get_segments() if len(segment)]
    assert np.max(intervals) == 100
    assert near.ax_.get_xlim()[1] <= 101
    # Another metric on given axes.
    _, ax = plt.subplots()
    display = comparison.plot(ax, metric="recall")
    assert display.ax_ is ax
    assert ax.get_xlabel() == "Recall (%)"
    np.testing.assert_allclose(display.mean_points_.get_offsets()[:, 0], table["recall"])
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "95 % interval of the difference to ce" in legend
    with pytest.raises(ValueError, match="'metric'"):
        comparison.plot(metric="accuracy")
