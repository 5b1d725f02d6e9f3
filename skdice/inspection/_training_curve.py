"""Loss and score of fitted estimators over the epochs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from .._pipeline import final_step
from ._pyplot import load_pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class TrainingCurveDisplay:
    """Training loss and validation score over the epochs of one or several fits.

    Make it with :meth:`from_estimator`; the parameters are kept as attributes.

    Parameters
    ----------
    histories : dict of str to DataFrame
        ``history_`` of each estimator by its label: column ``train_loss``, and ``valid_score`` if
        there was a validation part; the index is the epoch.
    best_epochs : dict of str to int
        ``best_epoch_`` of each estimator, the epoch of the weights that are kept.

    Attributes
    ----------
    ax_ : matplotlib Axes
        With the training loss.
    score_ax_ : matplotlib Axes or None
        The same with the validation score, its axis on the right; None if there is no score.
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        The training losses, one for each estimator.
    score_lines_ : list of matplotlib Line2D
        The validation scores, one for each estimator that has them.
    best_epoch_points_ : list of matplotlib Line2D
        The mark of each estimator, on its validation score or else on its training loss.

    Examples
    --------
    >>> from skdice.inspection import TrainingCurveDisplay
    >>> tagger = DiceTokenTagger(validation_fraction=0.1, max_epochs=10)  # doctest: +SKIP
    >>> TrainingCurveDisplay.from_estimator(tagger.fit(X, y))  # doctest: +SKIP
    """

    ax_: Any
    score_ax_: Any
    figure_: Any
    lines_: list[Any]
    score_lines_: list[Any]
    best_epoch_points_: list[Any]

    def __init__(self, *, histories: dict[str, pd.DataFrame], best_epochs: dict[str, int]) -> None:
        self.histories = histories
        self.best_epochs = best_epochs

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator | Mapping[str, BaseEstimator],
        *,
        ax: "Axes | None" = None,
    ) -> "TrainingCurveDisplay":
        """Plot the curves of fitted estimators.

        Parameters
        ----------
        estimator : fitted estimator, or dict of label to fitted estimator
            Of this package, or a Pipeline that ends in one. Several are compared in one picture.
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.

        Returns
        -------
        TrainingCurveDisplay

        Raises
        ------
        TypeError
            If an estimator is of another kind.
        NotFittedError
            If one is not fitted.
        ValueError
            If there is none, or the fit of one stopped before the end of its first epoch.
        """
        estimators = estimator if isinstance(estimator, Mapping) else {"": estimator}
        if not estimators:
            raise ValueError("estimator must be an estimator or a dict of some; got an empty dict.")
        trained = {str(label): _trained(value) for label, value in estimators.items()}
        display = cls(
            histories={label: value.history_ for label, value in trained.items()},
            best_epochs={label: value.best_epoch_ for label, value in trained.items()},
        )
        return display.plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "TrainingCurveDisplay":
        """Plot the curves.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.

        Returns
        -------
        TrainingCurveDisplay
            self
        """
        plt = load_pyplot()
        from matplotlib.ticker import MaxNLocator

        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        self.ax_, self.figure_, self.score_ax_ = ax, ax.figure, None
        if any("valid_score" in history for history in self.histories.values()):
            self.score_ax_ = ax.twinx()
            self.score_ax_.set_ylabel("Validation score (dashed)")
        self.lines_, self.score_lines_, self.best_epoch_points_ = [], [], []
        for number, label in enumerate(self.histories):
            self._plot_one(label, f"C{number}")
        ax.set(xlabel="Epoch", ylabel="Training loss")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        self._add_legend()
        return self

    def _plot_one(self, label: str, color: str) -> None:
        history, best_epoch = self.histories[label], self.best_epochs[label]
        style = {"color": color, "marker": ".", "label": label}
        self.lines_ += self.ax_.plot(history.index, history["train_loss"], "-", **style)
        marked = self.lines_[-1]
        if "valid_score" in history:
            scores = history["valid_score"]
            self.score_lines_ += self.score_ax_.plot(history.index, scores, "--", **style)
            marked = self.score_lines_[-1]
        # An interrupted fit may have kept no epoch.
        at = history.index == best_epoch
        self.best_epoch_points_ += marked.axes.plot(
            history.index[at], marked.get_ydata()[at], "*", color=color, markersize=14
        )

    def _add_legend(self) -> None:
        """Explain colors by label, and line styles and the mark once."""
        from matplotlib.lines import Line2D

        handles = [line for line, label in zip(self.lines_, self.histories) if label]
        handles.append(Line2D([], [], color="grey", label="Training loss"))
        if self.score_lines_:
            handles.append(Line2D([], [], color="grey", linestyle="--", label="Validation score"))
        handles.append(Line2D([], [], color="grey", linestyle="", marker="*", label="Epoch kept"))
        # Above the axes, for it cannot keep clear of the lines of two of them.
        self.ax_.legend(
            handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False
        )


def _trained(estimator: BaseEstimator) -> BaseEstimator:
    """Return the estimator with ``history_``: itself, or the last step of a Pipeline."""
    _, estimator = final_step(estimator)
    history = getattr(estimator, "history_", None)
    if isinstance(history, pd.DataFrame) and not isinstance(estimator, type):
        if "train_loss" not in history:
            raise ValueError(
                f"The fit of {type(estimator).__name__} stopped before the end of its first "
                f"epoch; there is no curve to plot."
            )
        return estimator
    # Only what trains by epochs will have a history once it is fitted.
    is_instance = isinstance(estimator, BaseEstimator)
    if is_instance and "max_epochs" in estimator.get_params(deep=False):
        raise NotFittedError(
            f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with "
            f"appropriate arguments before plotting its training."
        )
    raise TypeError(
        f"TrainingCurveDisplay takes fitted estimators of skdice, or Pipelines that end in one; "
        f"got {estimator!r}."
    )
