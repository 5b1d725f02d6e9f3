"""A table of gold labels by predicted labels: entities that were found, confused or missed."""

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .._extras import axes_or_new
from ._entity_pairs import EntityDisplay, EntityRows, pair_entities, read_entities

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BORDER, _NONE = "wrong border", "none"


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
        cls, y_true: EntityRows, y_pred: EntityRows, *, ax: "Axes | None" = None
    ) -> "EntityConfusionDisplay":
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
        predicted = read_entities(y_pred, "y_pred", [row.n_words for row in gold])
        counts = Counter[tuple[str, str]]()
        for true_row, pred_row in zip(gold, predicted):
            for pair in pair_entities(list(true_row.spans), list(pred_row.spans)):
                if pair.kind in ("correct", "wrong label"):
                    counts[pair.spans[0].label, pair.spans[1].label] += 1
                    continue
                other = _BORDER if pair.gold and pair.predicted else _NONE
                counts.update((span.label, other) for span in [pair.gold] if span)
                counts.update((other, span.label) for span in [pair.predicted] if span)
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

    def plot(self, ax: "Axes | None" = None) -> "EntityConfusionDisplay":
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
