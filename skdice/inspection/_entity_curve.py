"""Precision against recall of entities as a threshold on their score rises."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._inputs import check_rows, describe, list_some
from .._typing import TokenLists
from ..metrics import EntitySpan
from ._entity_rows import (
    EntityRows,
    EntityTagger,
    find_entities,
    read_entities,
    read_scored_entities,
)
from ._pyplot import load_pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which colour-blind readers can tell apart; black is the micro curve's.
_COLORS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#7A7A7A")
_MARKERS = ("o", "s", "^", "D", "v")
_LINES = ("-", "--", ":", "-.")
# Wide, so that it shows below the curve of a label that is the only one.
_MICRO_STYLE = {"color": "black", "marker": "*", "markersize": 15, "linewidth": 3, "zorder": 2}
_ISO_F1 = (0.2, 0.4, 0.6, 0.8, 0.9)
_ISO_COLOR = "#B0B0B0"


class EntityCurve(NamedTuple):
    """Precision and recall at each threshold, laid out as `precision_recall_curve` of scikit-learn.

    Attributes
    ----------
    precision, recall : ndarray of shape (n_thresholds + 1,)
        Of the entities with a score of at least the threshold; the last point has no entity, which
        is precision 1 and recall 0.
    thresholds : ndarray of shape (n_thresholds,)
        The different scores of the entities found, rising.
    n_gold : int
        Gold entities.
    """

    precision: np.ndarray
    recall: np.ndarray
    thresholds: np.ndarray
    n_gold: int

    @property
    def chosen(self) -> tuple[float, float, float]:
        """Precision, recall and F1 of all entities found; 0 where there is none to divide by."""
        if not len(self.thresholds):
            return 0.0, 0.0, 0.0
        precision, recall = float(self.precision[0]), float(self.recall[0])
        f1 = 2 * precision * recall / (precision + recall) if precision and recall else 0.0
        return precision, recall, f1


class EntityPrecisionRecallDisplay:
    """Precision against recall of entities as a threshold on ``Entity.score`` rises.

    Make it with :meth:`from_estimator` or :meth:`from_predictions`; the parameters are kept as
    attributes. A curve starts at what the estimator predicts as it is (the mark) and shows what is
    left if only the entities with a high score are kept.

    Parameters
    ----------
    curves : dict of str to EntityCurve
        By label, with the arrays ``precision``, ``recall`` and ``thresholds``, the number
        ``n_gold``, and ``chosen``, the precision, recall and F1 of all entities found.
    micro : EntityCurve
        The entities of all labels together.

    Attributes
    ----------
    ax_ : matplotlib Axes
        That of the micro curve, if each label has one of its own.
    figure_ : matplotlib Figure
    lines_, points_ : dict of str to (matplotlib Line2D or None)
        The curve and the mark of each label; None if it has no gold entity, or none was found.
    micro_line_, micro_point_ : matplotlib Line2D or None
        The same of all labels together.
    iso_lines_ : list of matplotlib Line2D
        Where F1 is the same.

    See Also
    --------
    skdice.metrics.entity_precision_recall_fscore_support : The scores at the marks.
    EntityConfusionDisplay : Which entities are wrong, and how.
    sklearn.metrics.PrecisionRecallDisplay : The same of classifiers.

    Notes
    -----
    A curve only reaches the recall of the entities found: those that the estimator does not predict
    at all have no score and are missed at any threshold. Entities with the same score are kept or
    left out together, as one point. A label without a gold entity, or of which none was found, has
    no curve, but its line in the legend.

    Examples
    --------
    >>> from skdice.inspection import EntityPrecisionRecallDisplay
    >>> y_true = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-LOC"]]
    >>> entities = [[(0, 2, "PER", 0.9), (3, 4, "LOC", 0.6)], [(0, 1, "LOC", 0.7)]]
    >>> display = EntityPrecisionRecallDisplay.from_predictions(y_true, entities)  # doctest: +SKIP
    >>> display.micro.thresholds, display.micro.precision  # doctest: +SKIP
    (array([0.6, 0.7, 0.9]), array([0.66666667, 0.5       , 1.        , 1.        ]))
    """

    ax_: Any
    figure_: Any
    lines_: dict[str, Any]
    points_: dict[str, Any]
    micro_line_: Any
    micro_point_: Any
    iso_lines_: list[Any]

    def __init__(self, *, curves: dict[str, EntityCurve], micro: EntityCurve) -> None:
        self.curves = curves
        self.micro = micro

    @classmethod
    def from_estimator(
        cls,
        estimator: EntityTagger,
        X: TokenLists,
        y: EntityRows,
        *,
        ax: "Axes | None" = None,
        labels: Sequence[str] | None = None,
    ) -> "EntityPrecisionRecallDisplay":
        """Plot the curves of a fitted tagger.

        Parameters
        ----------
        estimator : fitted estimator
            A `DiceTokenTagger` or `DiceQueryTagger`, or anything with ``predict_spans``.
        X : list, Series or object array of n_sentences lists of str
            Sentences as words.
        y : the same of tags, or of (start, end, label)
            Gold entities.
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.
        labels : sequence of str, optional
            Labels to draw, all by default; the micro curve is that of all of them.

        Returns
        -------
        EntityPrecisionRecallDisplay

        Raises
        ------
        TypeError, ValueError
            As :meth:`from_predictions`, and TypeError if `estimator` has no ``predict_spans``.
        """
        entities = find_entities(estimator, X, y)
        return cls.from_predictions(y, entities, ax=ax, labels=labels)

    @classmethod
    def from_predictions(
        cls,
        y_true: EntityRows,
        entities: Any,
        *,
        ax: "Axes | None" = None,
        labels: Sequence[str] | None = None,
    ) -> "EntityPrecisionRecallDisplay":
        """Plot the curves of entities with scores.

        Parameters
        ----------
        y_true : list, Series or object array of n_sentences lists of tags or (start, end, label)
            Gold entities; tags are read as :func:`skdice.metrics.get_entities` does by default.
        entities : the same of Entity(start, end, label, score)
            What ``predict_spans`` gives: positions are words, ``end`` is exclusive.
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default.
        labels : sequence of str, optional
            Labels to draw, all by default; the micro curve is that of all of them.

        Returns
        -------
        EntityPrecisionRecallDisplay

        Raises
        ------
        TypeError, ValueError
            If the numbers of sentences differ, a row is of another kind, an entity does not lie in
            its sentence or has no finite score, or a label to draw does not occur; the message
            names the row.
        """
        rows = read_entities(y_true, "y_true")
        scored = read_scored_entities(entities, "entities", [row.n_words for row in rows])
        found = [
            (span.label, score, span in set(row.spans))
            for row, scores in zip(rows, scored)
            for span, score in scores.items()
        ]
        gold = [span for row in rows for span in row.spans]
        names = sorted({span.label for span in gold} | {label for label, _, _ in found})
        display = cls(
            curves={name: _curve(gold, found, name) for name in names},
            micro=_curve(gold, found, None),
        )
        return display.plot(ax, labels=labels)

    def plot(
        self, ax: "Axes | None" = None, *, labels: Sequence[str] | None = None
    ) -> "EntityPrecisionRecallDisplay":
        """Plot the curves.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to plot; a new figure by default, in which more than seven labels have axes of
            their own.
        labels : sequence of str, optional
            Labels to draw, all by default.

        Returns
        -------
        EntityPrecisionRecallDisplay
            self

        Raises
        ------
        ValueError
            If a label does not occur.
        """
        plt = load_pyplot()

        drawn = self._select(labels)
        self.iso_lines_, self.lines_, self.points_ = [], {}, {}
        if ax is None and len(drawn) > len(_COLORS):
            self._plot_panels(drawn)
            return self
        is_own = ax is None
        if ax is None:
            _, ax = plt.subplots(figsize=(7.2, 5), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self._prepare(ax)
        ax.set(xlabel="Recall of entities", ylabel="Precision of entities")
        self.micro_line_, self.micro_point_ = _plot_curve(ax, self.micro, _MICRO_STYLE)
        handles = [_legend_entry("micro", self.micro, _MICRO_STYLE)]
        for number, (label, curve) in enumerate(drawn.items()):
            style = {
                "color": _COLORS[number % len(_COLORS)],
                "marker": _MARKERS[number % len(_MARKERS)],
                "linestyle": _LINES[number // len(_COLORS) % len(_LINES)],
            }
            self.lines_[label], self.points_[label] = _plot_curve(ax, curve, style)
            handles.append(_legend_entry(label, curve, style))
        kind = {"handles": handles, "title": "F1 of all found (mark)", "handlelength": 3}
        kind |= {"fontsize": 8, "title_fontsize": 8, "frameon": False}
        if is_own:
            ax.figure.legend(loc="outside right upper", **kind)
        else:
            ax.legend(loc="lower left", **kind)
        return self

    def _plot_panels(self, drawn: dict[str, EntityCurve]) -> None:
        """Plot each label by itself, for in one picture so many curves would hide each other."""
        plt = load_pyplot()

        n_columns = math.ceil(math.sqrt(1 + len(drawn)))
        n_rows = math.ceil((1 + len(drawn)) / n_columns)
        self.figure_, grid = plt.subplots(
            n_rows,
            n_columns,
            figsize=(1.8 * n_columns + 0.6, 2 * n_rows + 0.4),
            sharex=True,
            sharey=True,
            layout="constrained",
        )
        axes = grid.ravel().tolist()
        for i, ax in enumerate(axes):
            ax.set_visible(i <= len(drawn))
            ax.tick_params(labelbottom=i + n_columns > len(drawn), labelsize=8)
        for ax, (label, curve) in zip(axes, [("micro", self.micro), *drawn.items()]):
            self._prepare(ax, is_labelled=ax.get_subplotspec().is_last_col())
            ax.set_title(_name(label, curve), fontsize=8)
        self.ax_ = axes[0]
        self.micro_line_, self.micro_point_ = _plot_curve(self.ax_, self.micro, _MICRO_STYLE)
        for ax, (label, curve) in zip(axes[1:], drawn.items()):
            _plot_curve(ax, self.micro, {"color": "#808080", "marker": "", "linewidth": 2})
            style = {"color": _COLORS[0], "marker": _MARKERS[0]}
            self.lines_[label], self.points_[label] = _plot_curve(ax, curve, style)
        self.figure_.suptitle("F1 of all found (mark); the micro curve in grey", fontsize=9)
        self.figure_.supxlabel("Recall of entities", fontsize=10)
        self.figure_.supylabel("Precision of entities", fontsize=10)

    def _prepare(self, ax: "Axes", is_labelled: bool = True) -> None:
        """Set the limits and draw where F1 is the same."""
        ax.set(xlim=(0, 1.01), ylim=(0, 1.01), aspect="equal")
        for f1 in _ISO_F1:
            recall = np.linspace(f1 / (2 - f1), 1, 100)
            style: dict[str, Any] = {"color": _ISO_COLOR, "linewidth": 0.8, "zorder": 1}
            self.iso_lines_ += ax.plot(recall, f1 * recall / (2 * recall - f1), **style)
            if is_labelled:  # Outside, where no curve is.
                height = f1 / (2 - f1)
                ax.text(1.03, height, f"F1 {f1}", color="#606060", fontsize=7, va="center")

    def _select(self, labels: Sequence[str] | None) -> dict[str, EntityCurve]:
        """Return the curves of the labels to draw."""
        if labels is None:
            return self.curves
        names = check_rows(labels, "labels", "str")
        for name in names:
            if name not in self.curves:
                raise ValueError(
                    f"labels must be some of {list_some(list(self.curves))}; got {describe(name)}."
                )
        return {name: self.curves[name] for name in names}


def _curve(
    gold: Sequence[EntitySpan], found: Sequence[tuple[str, float, bool]], label: str | None
) -> EntityCurve:
    """Return the curve of one label, or of all (None).

    Parameters
    ----------
    gold : sequence of EntitySpan
    found : sequence of (label, score, is correct)
    label : str or None
    """
    n_gold = sum(label in (None, span.label) for span in gold)
    chosen = [(score, correct) for name, score, correct in found if label in (None, name)]
    scores = np.array([score for score, _ in chosen], dtype=np.float64)
    is_correct = np.array([correct for _, correct in chosen], dtype=np.int64)
    thresholds, which = np.unique(scores, return_inverse=True)
    # Sums from the highest score down to each threshold.
    n_correct = np.bincount(which, is_correct, len(thresholds))[::-1].cumsum()[::-1]
    n_found = np.bincount(which, minlength=len(thresholds))[::-1].cumsum()[::-1]
    precision, recall = n_correct / n_found, n_correct / max(n_gold, 1)
    return EntityCurve(np.append(precision, 1.0), np.append(recall, 0.0), thresholds, n_gold)


def _plot_curve(ax: "Axes", curve: EntityCurve, style: dict[str, Any]) -> tuple[Any, Any]:
    """Plot the curve and its mark; return both, None if there is no gold or no found entity."""
    if not curve.n_gold or not len(curve.thresholds):
        return None, None
    line_style = {key: value for key, value in style.items() if not key.startswith("marker")}
    line_style = {"linewidth": 1.4, **line_style}
    (line,) = ax.plot(curve.recall, curve.precision, drawstyle="steps-post", **line_style)
    precision, recall, _ = curve.chosen
    # The mark may lie on the frame, and no curve hides it.
    mark_style = {"markersize": 7, "zorder": 4, **style, "linestyle": ""}
    (point,) = ax.plot(recall, precision, clip_on=False, markeredgecolor="white", **mark_style)
    return line, point


def _name(label: str, curve: EntityCurve) -> str:
    """Return the label after its F1, or with the reason why it has no curve."""
    text = f"{curve.chosen[2]:.2f} {label}"
    if not curve.n_gold:
        text = f"– {label} (no gold)"
    elif not len(curve.thresholds):
        text = f"– {label} (none found)"
    return text.replace("$", r"\$")  # A dollar would begin a formula.


def _legend_entry(label: str, curve: EntityCurve, style: dict[str, Any]) -> Any:
    from matplotlib.lines import Line2D

    name = _name(label, curve)
    if not curve.n_gold or not len(curve.thresholds):
        return Line2D([], [], label=name, linestyle="")
    size = style.get("markersize", 7)
    return Line2D([], [], label=name, markeredgecolor="white", **{**style, "markersize": size})
