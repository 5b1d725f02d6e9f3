"""The picture shows the numbers of the comparison."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from skdice.inspection import LossComparisonDisplay
from skdice.metrics._row_counts import RowCounts, count_labels
from skdice.model_selection import LossComparison
from skdice.model_selection._loss_comparison import ScoredRun


@pytest.fixture(scope="module")
def comparison():
    rng = np.random.default_rng(0)
    y_true = rng.integers(2, size=100)
    runs = []
    for loss, rate in {"dice": 0.2, "ce": 0.3, "tversky": 0.25}.items():
        for seed in (0, 1):
            y_pred = y_true ^ (rng.random(100) < rate)
            counts = RowCounts("pairs", count_labels(y_true, y_pred, 1))
            runs.append(ScoredRun(loss, seed, 1.0, counts))
    return LossComparison(runs, baseline="ce", n_train=100, n_epochs=3)


def test_it_shows_the_table(comparison):
    display = LossComparisonDisplay.from_comparison(comparison)
    table = comparison.table()
    ax = display.ax_
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
    for i, loss in ((0, "dice"), (2, "tversky")):
        np.testing.assert_allclose(
            shown[i], table.loc[loss, ["f1_delta_low", "f1_delta_high"]].astype(float)
        )

    seeds = display.seed_points_.get_offsets()
    np.testing.assert_allclose(seeds[:, 0], 100 * comparison.frame["f1"])
    assert np.round(seeds[:, 1]).tolist() == [0, 0, 1, 1, 2, 2]
    assert display.plot() is display
    assert display.ax_ is not ax


def test_another_metric_on_given_axes(comparison):
    _, ax = plt.subplots()
    display = comparison.plot(ax, metric="recall")
    assert display.ax_ is ax
    assert ax.get_xlabel() == "Recall (%)"
    np.testing.assert_allclose(
        display.mean_points_.get_offsets()[:, 0], comparison.table()["recall"]
    )
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "95 % interval of the difference to ce" in legend


def test_unknown_metric(comparison):
    with pytest.raises(ValueError, match="'metric'"):
        LossComparisonDisplay.from_comparison(comparison, metric="accuracy")


def test_one_loss_and_one_seed():
    counts = RowCounts("pairs", count_labels(np.array([0, 1]), np.array([0, 1]), 1))
    runs = [ScoredRun("ce", 0, 1.0, counts)]
    display = LossComparison(runs, baseline="ce", n_train=2, n_epochs=1).plot()
    assert display.seed_points_.get_offsets().tolist() == [[100, 0]]
    display.figure_.canvas.draw()
