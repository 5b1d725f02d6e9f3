"""The picture of a comparison of losses."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ._pyplot import axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
        n_losses, n_seeds = self.scores.shape
        is_own = ax is None
        ax = axes_or_new(ax, figsize=(6.5, 1.4 + 0.42 * n_losses))
        self.ax_, self.figure_ = ax, ax.figure
        y = np.arange(n_losses)
        is_baseline = self.scores.index == self.baseline
        means = self.scores.mean(axis=1).to_numpy()
        base = float(means[is_baseline][0])
        line: dict[str, Any] = {"color": _BASELINE_COLOR, "linestyle": "--", "linewidth": 1}
        self.baseline_line_ = ax.axvline(base, label=f"mean of {self.baseline}", **line)
        bounds = base + self.differences[["delta_low", "delta_high"]].to_numpy()[~is_baseline]
        bar: dict[str, Any] = {"color": _COLOR, "linewidth": 5, "alpha": 0.3}
        bar["label"] = f"95 % interval of the difference to {self.baseline}"
        self.interval_lines_ = ax.hlines(y[~is_baseline], *bounds.T, **bar)
        colors = np.where(is_baseline, _BASELINE_COLOR, _COLOR)
        diamond: dict[str, Any] = {
            "marker": "D",
            "s": 36,
            "zorder": 3,
            "label": "mean over the seeds",
        }
        self.mean_points_ = ax.scatter(means, y, c=colors, **diamond)
        # Seeds lie next to each other, in order, so that equal ones stay apart.
        shift = np.linspace(-0.18, 0.18, n_seeds) if n_seeds > 1 else np.zeros(1)
        dot: dict[str, Any] = {"s": 12, "color": "#333333", "zorder": 4, "label": "single seeds"}
        heights = (y[:, None] + shift).ravel()
        self.seed_points_ = ax.scatter(self.scores.to_numpy().ravel(), heights, **dot)
        ax.set_yticks(y, labels=list(self.scores.index))
        name = "F1" if self.metric == "f1" else self.metric.replace("_", " ").capitalize()
        ax.set(xlabel=f"{name} (%)", ylabel="Loss", ylim=(n_losses - 0.5, -0.5))
        ax.grid(axis="x", alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
        if is_own:
            ax.figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
        else:
            ax.legend(fontsize=8)
        return self
