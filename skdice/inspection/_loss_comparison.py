"""The picture of a comparison of losses."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ._pyplot import load_pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLES = {
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "accuracy": "Accuracy",
    "exact_match": "Exact match",
}
_BASELINE_COLOR = "#7d93a6"
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
        Mean of the baseline.
    mean_points_, seed_points_ : matplotlib PathCollection
    interval_lines_ : matplotlib LineCollection

    See Also
    --------
    skdice.model_selection.compare_losses : Makes what is shown here.

    Notes
    -----
    The bar of a loss is the 95 % interval of its difference to the baseline, drawn from the line of
    the baseline's mean. So a bar that does not touch the line is a difference that other test rows
    would hardly turn around; it does not cover other seeds or training rows, for which the spread
    of the small points is a hint.

    Examples
    --------
    >>> from skdice.inspection import LossComparisonDisplay
    >>> display = LossComparisonDisplay.from_comparison(comparison)  # doctest: +SKIP
    >>> display.figure_.savefig("losses.png")  # doctest: +SKIP
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
        """Draw a comparison.

        Parameters
        ----------
        comparison : LossComparison
            What ``compare_losses`` returns.
        metric : str, default="f1"
            One of ``comparison.metrics``.
        ax : matplotlib Axes, optional
            A new figure by default.

        Returns
        -------
        LossComparisonDisplay

        Raises
        ------
        ValueError
            If the comparison has no such metric.
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
        """Draw, a line per loss with the first one on top.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure by default.

        Returns
        -------
        LossComparisonDisplay
            self
        """
        plt = load_pyplot()

        n_losses, n_seeds = self.scores.shape
        is_own = ax is None
        if ax is None:
            _, ax = plt.subplots(figsize=(6.5, 1.4 + 0.42 * n_losses), layout="constrained")
        y = np.arange(n_losses)
        is_baseline = self.scores.index == self.baseline
        means = self.scores.mean(axis=1).to_numpy()
        base = float(means[is_baseline][0])
        colors = np.where(is_baseline, _BASELINE_COLOR, _COLOR)

        self.baseline_line_ = ax.axvline(
            base,
            color=_BASELINE_COLOR,
            linestyle="--",
            linewidth=1,
            label=f"mean of {self.baseline}",
        )
        bounds = base + self.differences[["delta_low", "delta_high"]].to_numpy()
        self.interval_lines_ = ax.hlines(
            y[~is_baseline],
            *bounds[~is_baseline].T,
            color=_COLOR,
            linewidth=5,
            alpha=0.3,
            label=f"95 % interval of the difference to {self.baseline}",
        )
        self.mean_points_ = ax.scatter(
            means, y, marker="D", s=36, c=colors, zorder=3, label="mean over the seeds"
        )
        # Seeds lie next to each other, in order, so that equal ones stay apart.
        shift = np.linspace(-0.18, 0.18, n_seeds) if n_seeds > 1 else np.zeros(1)
        self.seed_points_ = ax.scatter(
            self.scores.to_numpy().ravel(),
            (y[:, None] + shift).ravel(),
            s=12,
            color="#333333",
            zorder=4,
            label="single seeds",
        )
        ax.set_yticks(y, labels=list(self.scores.index))
        ax.set(xlabel=f"{_TITLES[self.metric]} (%)", ylabel="Loss", ylim=(n_losses - 0.5, -0.5))
        ax.grid(axis="x", alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
        if is_own:
            ax.figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
        else:
            ax.legend(fontsize=8)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self
