"""How hard losses push the probability of one item (the paper's Figure 1)."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .._parameters import check_number, check_option
from ..losses import Loss, make_loss
from ._pyplot import load_pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Of a curve that runs off to infinity, such as -1 / p, this multiple of its median is shown.
_SHOWN_MEDIANS = 1.5
# A curve does so if its largest value is more than this multiple of its median.
_UNBOUNDED_MEDIANS = 10.0


class LossDerivativeDisplay:
    """Derivatives of losses with respect to the probability of one item.

    Make it with :meth:`from_losses`; the parameters are kept as attributes.

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

    See Also
    --------
    skdice.losses.make_loss : The losses by name.

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
        n_points: int = 99,
        ax: "Axes | None" = None,
        line_kw: dict[str, Any] | None = None,
    ) -> "LossDerivativeDisplay":
        """Compute the derivatives by autograd and plot them.

        A loss sees a single item with one binary logit z and p = sigmoid(z); dL/dp is
        dL/dz / (p (1 - p)). Over one item the batch and the example level are the same.

        Parameters
        ----------
        losses : sequence, or dict of label to loss
            Losses by name, see :func:`skdice.losses.make_loss`, or ``Loss`` objects. Labels are by
            default the names, and the repr of objects. ``"wce"`` has no weights to offer here:
            pass ``WeightedCrossEntropyLoss(class_weight=...)``.
        target : {0, 1}, default=1
            True class of the item: a negative derivative pushes p up, a positive one down.
        n_points : int, default=99
            Values of p, at equal steps between 0 and 1 and without these two.
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.
        line_kw : dict, optional
            For ``ax.plot`` of all lines.

        Returns
        -------
        LossDerivativeDisplay

        Raises
        ------
        TypeError
            If `losses` or one of them is of another kind.
        ValueError
            If there is no loss, two have one label, a name is unknown, a loss has parameters that
            are not allowed, or `target` or `n_points` is not allowed.
        """
        check_option(cls.__name__, "target", target, (0, 1))
        check_number(cls.__name__, "n_points", n_points, low=2, integer=True)
        probabilities = np.arange(1, n_points + 1) / (n_points + 1)
        derivatives = {
            label: _derivative(loss, probabilities, target)
            for label, loss in _labelled(losses).items()
        }
        display = cls(probabilities=probabilities, derivatives=derivatives, target=target)
        return display.plot(ax, line_kw=line_kw)

    def plot(
        self, ax: "Axes | None" = None, *, line_kw: dict[str, Any] | None = None
    ) -> "LossDerivativeDisplay":
        """Plot the derivatives.

        The vertical axis shows bounded curves in full and is cut where a curve such as -1 / p runs
        off to infinity; ``display.ax_.set_ylim`` changes that.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.
        line_kw : dict, optional
            For ``ax.plot`` of all lines.

        Returns
        -------
        LossDerivativeDisplay
            self
        """
        plt = load_pyplot()

        if ax is None:
            _, ax = plt.subplots()
        ax.axhline(0, color="black", linewidth=0.8)
        ax.axvline(0.5, color="grey", linewidth=0.8, linestyle=":")
        # Curves may lie on top of one another, such as dice and DSC with alpha 0.
        styles = zip(self.derivatives.items(), cycle(["-", "--", "-.", ":"]))
        self.lines_ = [
            ax.plot(
                self.probabilities,
                values,
                **{"label": label, "linestyle": style, **(line_kw or {})},
            )[0]
            for (label, values), style in styles
        ]
        ax.set(
            xlim=(0, 1),
            ylim=_limits(list(self.derivatives.values())),
            xlabel="Probability p of the positive class",
            ylabel=f"dL / dp of {'a positive' if self.target else 'a negative'} item",
        )
        ax.legend()
        self.ax_ = ax
        self.figure_ = ax.figure
        return self


def _labelled(
    losses: Sequence[str | Loss] | Mapping[str, str | Loss],
) -> dict[str, Loss]:
    """Return the losses as objects by label."""
    expected = "losses must be a sequence of names and Loss objects, or a dict of label to these"
    if isinstance(losses, Mapping):
        pairs = list(losses.items())
    elif isinstance(losses, Sequence) and not isinstance(losses, str):
        pairs = [(_label(loss), loss) for loss in losses]
    else:
        raise TypeError(f"{expected}; got {losses!r}.")
    if not pairs:
        raise ValueError(f"{expected}; got none.")
    labelled: dict[str, Loss] = {}
    for label, loss in pairs:
        if label in labelled:
            raise ValueError(
                f"Each loss needs a label of its own; got {label!r} twice. Pass a dict of label to "
                f"loss."
            )
        labelled[label] = _as_loss(loss)
    return labelled


def _label(loss: object) -> str:
    return loss if isinstance(loss, str) else " ".join(repr(loss).split())


def _as_loss(loss: object) -> Loss:
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str):
        raise TypeError(
            f"A loss must be a name or an object of skdice.losses.Loss; got {loss!r} of type "
            f"{type(loss).__name__}."
        )
    if loss == "wce":
        raise ValueError(
            "'wce' has no class weights to take from data here. Pass an object, for instance "
            "WeightedCrossEntropyLoss(class_weight=[0.5, 2.0]) of skdice.losses."
        )
    return make_loss(loss, binary=True)


def _derivative(loss: Loss, probabilities: np.ndarray, target: int) -> np.ndarray:
    """Return dL/dp at each probability, (n_points,), each a batch of one item."""
    p = torch.from_numpy(probabilities)
    logits = p.logit().requires_grad_()
    item = torch.tensor([target])
    with torch.enable_grad():
        total = torch.stack([loss(logit, item).sum() for logit in logits.split(1)]).sum()
        (gradient,) = torch.autograd.grad(total, logits)
    return (gradient / (p * (1 - p))).numpy()


def _limits(curves: Sequence[np.ndarray]) -> tuple[float, float]:
    """Return the range to show of curves, some of which may run off to infinity."""
    low = min(0.0, *(float(curve.min()) for curve in curves))
    high = max(0.0, *(float(curve.max()) for curve in curves))
    size = max(map(_shown_size, curves)) or 1.0
    margin = 0.05 * size
    return max(low, -size) - margin, min(high, size) + margin


def _shown_size(curve: np.ndarray) -> float:
    """Return up to which absolute value a curve is shown."""
    size = np.abs(curve)
    largest, median = float(size.max()), float(np.median(size))
    return _SHOWN_MEDIANS * median if largest > _UNBOUNDED_MEDIANS * median else largest
