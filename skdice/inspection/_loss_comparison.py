"""The picture of a comparison of losses."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ._pyplot import axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOR = "#c44e52"


class LossComparisonDisplay:
    """Means of a metric by loss, with intervals and single seeds.

    Use :meth:`from_comparison` or ``LossComparison.plot`` to make one.

    Parameters
    ----------
    scores : DataFrame of shape (n_losses, n_seeds)
        The metric in percent; the index has the losses.
    differences : DataFrame of shape (n_losses, 3)
        ``delta``, ``delta_low``, ``delta_high`` to the baseline in percentage points, missing for
        the baseline itself.
    baseline : str
    metric : str

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    baseline_line_ : matplotlib Line2D
    mean_points_, seed_points_ : matplotlib PathCollection
    interval_lines_ : matplotlib LineCollection

    Notes
    -----
    The bar of a loss is the 95 % interval of its difference to the baseline over test rows, drawn
    from the baseline's mean. It does not cover other seeds, for which the small points are a hint.
    """

    def __init__(
        self, *, scores: pd.DataFrame, differences: pd.DataFrame, baseline: str, metric: str
    ) -> None:
        self.scores = scores
        self.differences = differences
        self.baseline = baseline
        self.metric = metric

    @classmethod
    def from_comparison(
        cls, comparison: Any, *, metric: str = "f1", ax: "Axes | None" = None
    ) -> "LossComparisonDisplay":
        """Draw what ``compare_losses`` returns.

        Parameters
        ----------
        comparison : LossComparison
        metric : str, default="f1"
            One of ``comparison.metrics``; another is a ValueError.
        ax : matplotlib Axes, optional
            A new figure by default.
        """
        differences = comparison.differences(metric)
        scores = comparison.frame.pivot(index="loss", columns="seed", values=metric)
        display = cls(
            scores=100 * scores.loc[list(comparison.losses)],
            differences=differences,
            baseline=comparison.baseline,
            metric=metric,
        )
        return display.plot(ax=ax)

    def plot(self, ax: "Axes | None" = None) -> "LossComparisonDisplay":
        """Draw, on `ax` or in a new figure, a line per loss with the first one on top."""
        n_losses, n_seeds = self.scores.shape
        ax = axes_or_new(ax, figsize=(6.5, 1.4 + 0.42 * n_losses))
        self.ax_, self.figure_ = ax, ax.figure
        y = np.arange(n_losses)
        means = self.scores.mean(axis=1)
        base = float(means[self.baseline])
        self.baseline_line_ = ax.axvline(
            base, color="grey", linestyle="--", linewidth=1, label=f"mean of {self.baseline}"
        )
        bounds = base + self.differences[["delta_low", "delta_high"]].to_numpy().T
        interval = f"95 % interval of the difference to {self.baseline}"
        self.interval_lines_ = ax.hlines(
            y, *bounds, color=_COLOR, linewidth=5, alpha=0.3, label=interval
        )
        self.mean_points_ = ax.scatter(
            means, y, marker="D", color=_COLOR, zorder=3, label="mean over the seeds"
        )
        # Seeds lie next to each other, in order, so that equal ones stay apart.
        shift = np.linspace(-0.18, 0.18, n_seeds) if n_seeds > 1 else np.zeros(1)
        heights = (y[:, None] + shift).ravel()
        self.seed_points_ = ax.scatter(
            self.scores.to_numpy().ravel(), heights, s=12, color="black", zorder=4, label="seeds"
        )
        ax.set_yticks(y, labels=list(self.scores.index))
        name = "F1" if self.metric == "f1" else self.metric.replace("_", " ").capitalize()
        ax.set(xlabel=f"{name} (%)", ylabel="Loss", ylim=(n_losses - 0.5, -0.5))
        ax.grid(axis="x", alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, fontsize=8)
        return self
