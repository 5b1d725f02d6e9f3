"""Pictures of entities: how predicted ones differ from gold ones, and precision by recall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from .._extras import axes_or_new
from .._typing import TokenLists
from ._entity_pairs import EntityRows, pair_entities, read_entities

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BORDER, _NONE = "wrong border", "none"
_MARKERS = "os^Dvp>"


class EntityDisplay:
    """Base of the pictures of entities."""

    from_predictions: ClassVar[Callable[..., Any]]

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, X: TokenLists, y: EntityRows, **options: Any
    ) -> Any:
        """Plot the entities that a fitted tagger finds.

        Parameters
        ----------
        estimator : fitted estimator
            A `DiceTokenTagger` or `DiceQueryTagger`, or anything with ``predict_spans``.
        X : list, Series or object array of n_sentences lists of str
            Sentences as words.
        y : the same of tags, or of (start, end, label)
            Gold entities.
        **options
            Of :meth:`from_predictions`, with its errors.
        """
        return cls.from_predictions(y, estimator.predict_spans(X), **options)


class EntityConfusionDisplay(EntityDisplay):
    """Counts of gold labels by predicted labels, of whole entities.

    Made by :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    frame : DataFrame of shape (n_labels + 2, n_labels + 2)
        Counts of entities with the same words on both sides, by gold label (rows) and predicted
        label (columns). ``"wrong border"``, the last column but one, has the gold entities that
        only overlap with a predicted one; ``"none"``, the last column, those that were missed.
        The rows of these names have the predicted entities that only overlap with a gold one, and
        the spurious ones.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    im_ : matplotlib AxesImage
        Shares of each row.
    text_ : ndarray of shape (n_labels + 2, n_labels + 2), dtype=object
        The matplotlib Text of each count; None where it is 0.

    Notes
    -----
    Each entity is counted once: a row adds up to the gold entities of the label, a column to the
    predicted ones. Entities are paired as in :class:`TaggingErrors`, so that both count the same
    errors. An entity with a wrong border is wrong in the metrics, as is a missed or spurious one.

    Examples
    --------
    >>> from skdice.inspection import EntityConfusionDisplay
    >>> y_true = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "O", "B-LOC", "I-LOC"]]
    >>> y_pred = [["B-PER", "I-PER", "O", "B-PER"], ["O", "B-PER", "B-LOC", "O"]]
    >>> display = EntityConfusionDisplay.from_predictions(y_true, y_pred)  # doctest: +SKIP
    >>> display.frame  # doctest: +SKIP
    predicted     LOC  PER  wrong border  none
    gold
    LOC             0    1             1     1
    PER             0    1             0     0
    wrong border    1    0             0     0
    none            0    1             0     0
    """

    def __init__(self, *, frame: pd.DataFrame) -> None:
        self.frame = frame

    @classmethod
    def from_predictions(
        cls, y_true: EntityRows, y_pred: EntityRows, *, ax: Axes | None = None
    ) -> EntityConfusionDisplay:
        """Plot how predicted entities differ from gold ones.

        Parameters
        ----------
        y_true, y_pred : list, Series or object array of n_sentences lists
            Of tags, read as :func:`skdice.metrics.get_entities` does by default; or of (start, end,
            label), positions in words and ``end`` exclusive, as ``predict_spans`` gives them.
        ax : matplotlib Axes, optional
            A new figure by default.

        Raises
        ------
        TypeError, ValueError
            If the numbers of sentences or tags differ, a row is of another kind, or an entity does
            not lie in its sentence, with the row; or if a label is "none" or "wrong border".
        """
        gold = read_entities(y_true, "y_true")
        predicted = read_entities(y_pred, "y_pred", gold)
        counts = Counter[tuple[str, str]]()
        for true_row, pred_row in zip(gold, predicted):
            for pair in pair_entities(list(true_row.spans), list(pred_row.spans)):
                gold_label, label = (span.label if span else _NONE for span in pair)
                if "border" in pair.kind:
                    counts.update([(gold_label, _BORDER), (_BORDER, label)])
                else:
                    counts[gold_label, label] += 1
        labels = sorted({span.label for row in (*gold, *predicted) for span in row.spans})
        for name in (_BORDER, _NONE):
            if name in labels:
                raise ValueError(
                    f"The label {name!r} stands for entities without a counterpart; rename yours."
                )
        names = [*labels, _BORDER, _NONE]
        frame = pd.DataFrame(
            [[counts[row, column] for column in names] for row in names],
            index=pd.Index(names, dtype=object, name="gold"),
            columns=pd.Index(names, dtype=object, name="predicted"),
            dtype=np.int64,
        )
        return cls(frame=frame).plot(ax)

    def plot(self, ax: Axes | None = None) -> EntityConfusionDisplay:
        """Plot the counts, coloured by their share of the row, on `ax` or in a new figure."""
        counts = self.frame.to_numpy()
        n = len(counts)
        ax = axes_or_new(ax, figsize=(2.9 + 0.42 * n, 2.8 + 0.42 * n))
        self.ax_, self.figure_ = ax, ax.figure
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        self.im_ = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        self.text_ = np.full(counts.shape, None, dtype=object)
        for i, j in zip(*np.nonzero(counts)):
            color = "white" if shares[i, j] > 0.65 else "black"
            text = ax.text(j, i, counts[i, j], color=color, fontsize=8, ha="center", va="center")
            self.text_[i, j] = text
        # The last two are no labels.
        ax.axhline(n - 2.5, color="black", linewidth=0.8)
        ax.axvline(n - 2.5, color="black", linewidth=0.8)
        labels = [str(label).replace("$", r"\$") for label in self.frame.index]
        ax.set_xticks(range(n), labels, rotation=45, ha="right", rotation_mode="anchor")
        ax.set_yticks(range(n), labels)
        ax.set(xlabel="Predicted", ylabel="Gold")
        ax.set_title("Entities; colour: share of the row", fontsize=9, loc="left")
        return self


class EntityCurve(NamedTuple):
    """Precision and recall of the entities with at least the score of each threshold, rising.

    As in `precision_recall_curve`, the last point stands for no entity: precision 1, recall 0.
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


class EntityPrecisionRecallDisplay(EntityDisplay):
    """Precision against recall of entities as a threshold on ``Entity.score`` rises.

    Make it with :meth:`from_estimator` or :meth:`from_predictions`. A curve starts at the
    predictions of the estimator as it is (the mark).

    Parameters
    ----------
    curves : dict of str to EntityCurve
        By label, with the arrays ``precision``, ``recall`` and ``thresholds`` as of
        ``sklearn.metrics.precision_recall_curve``, the number ``n_gold``, and ``chosen``, the
        precision, recall and F1 of all entities found.
    micro : EntityCurve
        The entities of all labels together.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : dict of str to matplotlib Line2D
        The curve of each label with its mark; without points if it has no gold entity, or none was
        found.
    micro_line_ : matplotlib Line2D
        The same of all labels together.

    Notes
    -----
    A curve only reaches the recall of the entities found; the others have no score and are missed
    at any threshold.

    Examples
    --------
    >>> from skdice.inspection import EntityPrecisionRecallDisplay
    >>> y_true = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-LOC"]]
    >>> entities = [[(0, 2, "PER", 0.9), (3, 4, "LOC", 0.6)], [(0, 1, "LOC", 0.7)]]
    >>> display = EntityPrecisionRecallDisplay.from_predictions(y_true, entities)  # doctest: +SKIP
    >>> display.micro.thresholds, display.micro.precision  # doctest: +SKIP
    (array([0.6, 0.7, 0.9]), array([0.66666667, 0.5       , 1.        , 1.        ]))
    """

    def __init__(self, *, curves: dict[str, EntityCurve], micro: EntityCurve) -> None:
        self.curves = curves
        self.micro = micro

    @classmethod
    def from_predictions(
        cls, y_true: EntityRows, entities: Any, *, ax: Axes | None = None
    ) -> EntityPrecisionRecallDisplay:
        """Plot the curves of entities with scores.

        Parameters
        ----------
        y_true : list, Series or object array of n_sentences lists of tags or (start, end, label)
            Gold entities; tags are read as :func:`skdice.metrics.get_entities` does by default.
        entities : the same of Entity(start, end, label, score)
            What ``predict_spans`` gives: positions are words, ``end`` is exclusive.
        ax : matplotlib Axes, optional
            A new figure by default.

        Raises
        ------
        TypeError, ValueError
            If the numbers of sentences differ, a row is of another kind, an entity does not lie in
            its sentence or has no finite score, with the row.
        """
        rows = read_entities(y_true, "y_true")
        scored = read_entities(entities, "entities", rows, has_scores=True)
        gold = [span.label for row in rows for span in row.spans]
        found = [
            (span.label, (score, span in row.spans))
            for row, other in zip(rows, scored)
            for span, score in other.spans.items()
        ]
        curves = {
            label: _curve(gold.count(label), [item for name, item in found if name == label])
            for label in sorted({*gold, *(name for name, _ in found)})
        }
        micro = _curve(len(gold), [item for _, item in found])
        return cls(curves=curves, micro=micro).plot(ax)

    def plot(self, ax: Axes | None = None) -> EntityPrecisionRecallDisplay:
        """Plot the curves on lines of equal F1, on `ax` or in a new figure."""
        ax = axes_or_new(ax, figsize=(7.2, 5))
        self.ax_, self.figure_ = ax, ax.figure
        ax.set(xlim=(0, 1.01), ylim=(0, 1.01), aspect="equal")
        ax.set(xlabel="Recall of entities", ylabel="Precision of entities")
        for f1 in (0.2, 0.4, 0.6, 0.8, 0.9):
            lowest = f1 / (2 - f1)
            recall = np.linspace(lowest, 1, 100)
            ax.plot(recall, f1 * recall / (2 * recall - f1), "#B0B0B0", linewidth=0.8, zorder=1)
            ax.text(1.03, lowest, f"F1 {f1}", color="#606060", fontsize=7, va="center")
        # Wide, so that it shows below the curve of a label that is the only one.
        wide = {"color": "black", "marker": "*", "markersize": 15, "linewidth": 3, "zorder": 2}
        self.micro_line_ = _plot_curve(ax, "micro", self.micro, wide)
        self.lines_ = {}
        for i, (name, curve) in enumerate(self.curves.items()):
            style = {"color": f"C{i}", "marker": _MARKERS[i % len(_MARKERS)]}
            self.lines_[name] = _plot_curve(ax, name, curve, style)
        place = {"loc": "upper left", "bbox_to_anchor": (1.12, 1)}
        ax.legend(title="F1 of all found (mark)", fontsize=8, title_fontsize=8, **place)
        return self


def _curve(n_gold: int, found: Sequence[tuple[float, bool]]) -> EntityCurve:
    """Return the curve of entities found, each as (score, is correct)."""
    scores, is_correct = np.array(found, dtype=np.float64).reshape(-1, 2).T
    thresholds, which = np.unique(scores, return_inverse=True)
    # Sums from the highest score down to each threshold.
    n_correct = np.bincount(which, is_correct, len(thresholds))[::-1].cumsum()[::-1]
    n_found = np.bincount(which, minlength=len(thresholds))[::-1].cumsum()[::-1]
    precision, recall = n_correct / n_found, n_correct / max(n_gold, 1)
    return EntityCurve(np.append(precision, 1.0), np.append(recall, 0.0), thresholds, n_gold)


def _plot_curve(ax: Axes, label: str, curve: EntityCurve, style: dict[str, Any]) -> Any:
    """Plot the curve with a mark at its start; without a curve, the legend says why."""
    label = label.replace("$", r"\$")  # A dollar would begin a formula.
    if not curve.n_gold or not len(curve.thresholds):
        reason = "none found" if curve.n_gold else "no gold"
        return ax.plot([], [], linestyle="", label=f"– {label} ({reason})")[0]
    label = f"{curve.chosen[2]:.2f} {label}"
    style = {"linewidth": 1.4, "markersize": 7, "zorder": 4, "markeredgecolor": "white", **style}
    style |= {"drawstyle": "steps-post", "markevery": [0], "clip_on": False, "label": label}
    return ax.plot(curve.recall, curve.precision, **style)[0]
