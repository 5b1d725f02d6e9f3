"""Pictures of losses: their derivatives (the paper's Figure 1) and what they reach."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .._extras import axes_or_new
from .._parameters import check_option
from ..losses import Loss, make_loss

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOR = "#c44e52"


class LossDerivativeDisplay:
    """Derivatives of losses with respect to the probability of one item, by :meth:`from_losses`.

    Parameters
    ----------
    probabilities : ndarray of shape (n_points,)
        Probability p of the positive class.
    derivatives : dict of str to ndarray of shape (n_points,)
        dL/dp of each loss, by its label.
    target : {0, 1}, default=1
        True class of the item.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        One for each loss, in order.

    Examples
    --------
    >>> from skdice.inspection import LossDerivativeDisplay
    >>> display = LossDerivativeDisplay.from_losses(["ce", "dice", "dsc-paper"])  # doctest: +SKIP
    """

    def __init__(
        self, *, probabilities: np.ndarray, derivatives: dict[str, np.ndarray], target: int = 1
    ) -> None:
        self.probabilities = probabilities
        self.derivatives = derivatives
        self.target = target

    @classmethod
    def from_losses(
        cls,
        losses: Sequence[str | Loss] | Mapping[str, str | Loss],
        *,
        target: int = 1,
        ax: "Axes | None" = None,
    ) -> "LossDerivativeDisplay":
        """Plot dL/dp of a batch of one item with one binary logit, by autograd.

        Parameters
        ----------
        losses : sequence, or dict of label to loss
            Names of :func:`skdice.losses.make_loss` or ``Loss`` objects; their str labels a
            sequence.
        target : {0, 1}, default=1
            True class of the item: a negative derivative pushes p up, a positive one down.
        ax : matplotlib Axes, optional
            A new figure by default.

        Raises
        ------
        TypeError, ValueError
            If there is no loss, a name is unknown, ``"wce"`` has no class weights, or `target` is
            neither 0 nor 1.
        """
        check_option(cls.__name__, "target", target, (0, 1))
        if not losses:
            raise ValueError("losses must have at least one loss; got none.")
        if not isinstance(losses, Mapping):
            losses = {" ".join(str(loss).split()): loss for loss in losses}
        p = np.arange(1, 100) / 100
        derivatives = {label: _derivative(loss, p, target) for label, loss in losses.items()}
        return cls(probabilities=p, derivatives=derivatives, target=target).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "LossDerivativeDisplay":
        """Plot on `ax` or in a new figure; where a curve such as -1 / p runs off, it is cut."""
        ax = axes_or_new(ax)
        self.ax_, self.figure_ = ax, ax.figure
        self.lines_: list[Any] = []
        ax.axhline(0, color="black", linewidth=0.8)
        ax.axvline(0.5, color="grey", linewidth=0.8, linestyle=":")
        size = 0.0
        # Curves may lie on top of one another, such as dice and DSC with alpha 0.
        for (label, values), style in zip(self.derivatives.items(), cycle(["-", "--", "-.", ":"])):
            self.lines_ += ax.plot(self.probabilities, values, linestyle=style, label=label)
            largest, median = np.abs(values).max(), np.median(np.abs(values))
            size = max(size, 1.5 * median if largest > 10 * median else largest)
        curves = np.array([*self.derivatives.values()])
        size = size or 1.0
        bottom, top = np.clip([min(0, curves.min()), max(0, curves.max())], -size, size)
        item = "a positive" if self.target else "a negative"
        ax.set(xlim=(0, 1), ylim=(bottom - 0.05 * size, top + 0.05 * size))
        ax.set(xlabel="Probability p of the positive class", ylabel=f"dL / dp of {item} item")
        ax.legend()
        return self


def _derivative(loss: str | Loss, probabilities: np.ndarray, target: int) -> np.ndarray:
    """Return dL/dp at each probability, (n_points,), each a batch of one item."""
    if not isinstance(loss, Loss):
        loss = make_loss(loss, binary=True)
    p = torch.from_numpy(probabilities)
    logits = p.logit().requires_grad_()
    item = torch.tensor([target])
    with torch.enable_grad():
        total = torch.stack([loss(logit, item).sum() for logit in logits.split(1)]).sum()
        (gradient,) = torch.autograd.grad(total, logits)
    return (gradient / (p * (1 - p))).numpy()


class LossComparisonDisplay:
    """Means of a metric by loss, with intervals and seeds; ``LossComparison.plot`` draws it.

    Parameters
    ----------
    comparison : LossComparison
    metric : str, default="f1"
        One of ``comparison.metrics``; another is a ValueError.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    baseline_line_ : matplotlib Line2D
    mean_points_, seed_points_ : matplotlib PathCollection
    interval_lines_ : matplotlib LineCollection

    Notes
    -----
    The bar of a loss is the 95 % interval of its difference, over test rows but not over seeds,
    drawn from the baseline's mean and cut at 0 and 100 %.
    """

    def __init__(self, comparison: Any, *, metric: str = "f1") -> None:
        self.comparison = comparison
        self.metric = metric

    def plot(self, ax: "Axes | None" = None) -> "LossComparisonDisplay":
        """Draw, on `ax` or in a new figure, a line per loss with the first one on top."""
        differences = self.comparison.differences(self.metric)  # It checks the metric.
        scores = self.comparison.frame.pivot(index="loss", columns="seed", values=self.metric)
        scores = 100 * scores.loc[list(self.comparison.losses)]
        n_losses, n_seeds = scores.shape
        ax = axes_or_new(ax, figsize=(6.5, 1.4 + 0.42 * n_losses))
        self.ax_, self.figure_ = ax, ax.figure
        y, means, baseline = np.arange(n_losses), scores.mean(axis=1), self.comparison.baseline
        base = float(means[baseline])
        self.baseline_line_ = ax.axvline(
            base, color="grey", linestyle="--", linewidth=1, label=f"mean of {baseline}"
        )
        bounds = base + differences[["delta_low", "delta_high"]].to_numpy().T
        interval = f"95 % interval of the difference to {baseline}"
        self.interval_lines_ = ax.hlines(
            y, *bounds.clip(0, 100), color=_COLOR, linewidth=5, alpha=0.3, label=interval
        )
        self.mean_points_ = ax.scatter(
            means, y, marker="D", color=_COLOR, zorder=3, label="mean over the seeds"
        )
        # Seeds lie next to each other, in order, so that equal ones stay apart.
        shift = np.linspace(-0.18, 0.18, n_seeds) if n_seeds > 1 else np.zeros(1)
        heights = (y[:, None] + shift).ravel()
        self.seed_points_ = ax.scatter(
            scores.to_numpy().ravel(), heights, s=12, color="black", zorder=4, label="seeds"
        )
        ax.set_yticks(y, labels=list(scores.index))
        name = self.metric.replace("_", " ").capitalize()
        ax.set(xlabel=f"{name} (%)", ylabel="Loss", ylim=(n_losses - 0.5, -0.5))
        ax.set_xlim(*np.clip(ax.get_xlim(), -1, 101))
        ax.grid(axis="x", alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, fontsize=8)
        return self
