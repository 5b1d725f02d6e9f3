"""What becomes of gold entities, label by label: found, confused, cut wrongly, missed."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .._extras import axes_or_new
from ._entity_pairs import EntityDisplay, EntityPair, EntityRows, pair_entities, read_entities

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NONE = "none"


class EntityConfusionDisplay(EntityDisplay):
    """Counts of gold labels by predicted labels, of whole entities.

    Made by :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    frame : DataFrame of shape (n_labels + 1, n_labels + 1)
        Counts of entities with the same words on both sides, by gold label (rows) and predicted
        label (columns). The last column, ``"none"``, has the missed gold entities; the last row,
        ``"none"``, the invented ones.
    borders : DataFrame of shape (n_labels, n_labels)
        Counts of pairs that have some words in common, but not all: border errors, which count as
        wrong in the metrics.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    im_ : matplotlib AxesImage
        Shares of each row.
    text_ : ndarray of shape (n_labels + 1, n_labels + 3), dtype=object
        The matplotlib Text of each count; None where it is 0.

    Notes
    -----
    Each entity is counted once, and paired as in :class:`TaggingErrors`: a row of `frame` and that
    of `borders` add up to the gold entities of the label, a column of both to the predicted ones.

    Examples
    --------
    >>> from skdice.inspection import EntityConfusionDisplay
    >>> y_true = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "O", "B-LOC", "I-LOC"]]
    >>> y_pred = [["B-PER", "I-PER", "O", "B-PER"], ["O", "B-PER", "B-LOC", "O"]]
    >>> display = EntityConfusionDisplay.from_predictions(y_true, y_pred)  # doctest: +SKIP
    >>> display.frame  # doctest: +SKIP
    predicted  LOC  PER  none
    gold
    LOC          0    1     1
    PER          0    1     0
    none         0    1     0
    """

    def __init__(self, *, frame: pd.DataFrame, borders: pd.DataFrame) -> None:
        self.frame = frame
        self.borders = borders

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
            not lie in its sentence, with the row; or if a label is "none".
        """
        gold = read_entities(y_true, "y_true")
        predicted = read_entities(y_pred, "y_pred", [row.n_words for row in gold])
        if any(span.label == _NONE for row in (*gold, *predicted) for span in row.spans):
            raise ValueError(
                f"The label {_NONE!r} stands for entities without a counterpart; rename yours."
            )
        pairs = [
            pair
            for true_row, pred_row in zip(gold, predicted)
            for pair in pair_entities(list(true_row.spans), list(pred_row.spans))
        ]
        labels = sorted({span.label for pair in pairs for span in pair.spans})
        at_borders = [pair for pair in pairs if pair.kind.startswith("wrong border")]
        others = [pair for pair in pairs if not pair.kind.startswith("wrong border")]
        display = cls(frame=_count(others, [*labels, _NONE]), borders=_count(at_borders, labels))
        return display.plot(ax)

    def plot(self, ax: "Axes | None" = None) -> "EntityConfusionDisplay":
        """Plot the counts, coloured by their share of the row, on `ax` or in a new figure.

        To the right of `frame` stand the border errors of each gold label: with the same, and with
        another predicted label.
        """
        borders = self.borders.to_numpy()
        same = np.diag(borders)
        border_columns = np.column_stack([same, borders.sum(axis=1) - same])
        counts = np.hstack([self.frame.to_numpy(), np.pad(border_columns, ((0, 1), (0, 0)))])
        n_rows, n_columns = counts.shape
        ax = axes_or_new(ax, figsize=(2.9 + 0.42 * n_columns, 2.8 + 0.42 * n_rows))
        self.ax_, self.figure_ = ax, ax.figure
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        self.im_ = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        self.text_ = np.full(counts.shape, None, dtype=object)
        for i, j in zip(*np.nonzero(counts)):
            color = "white" if shares[i, j] > 0.65 else "black"
            text = ax.text(j, i, counts[i, j], color=color, fontsize=8, ha="center", va="center")
            self.text_[i, j] = text
        # Entities without a counterpart and border errors are no labels.
        ax.axhline(n_rows - 1.5, color="black", linewidth=0.8)
        for edge in (n_rows - 1.5, n_rows - 0.5):
            ax.axvline(edge, color="black", linewidth=0.8)
        labels = [str(label).replace("$", r"\$") for label in self.borders.index]
        columns = [*labels, "none (missed)", "wrong border", "wrong border and label"]
        ax.set_xticks(range(n_columns), columns, rotation=45, ha="right", rotation_mode="anchor")
        ax.set_yticks(range(n_rows), [*labels, "none (invented)"])
        ax.set(xlabel="Predicted", ylabel="Gold")
        ax.set_title("Entities; colour: share of the row", fontsize=9, loc="left")
        return self


def _count(pairs: Sequence[EntityPair], labels: list[str]) -> pd.DataFrame:
    """Count pairs by the labels of both sides."""
    counts = Counter(
        tuple(_NONE if span is None else span.label for span in (pair.gold, pair.predicted))
        for pair in pairs
    )
    return pd.DataFrame(
        [[counts[gold, predicted] for predicted in labels] for gold in labels],
        index=pd.Index(labels, dtype=object, name="gold"),
        columns=pd.Index(labels, dtype=object, name="predicted"),
        dtype=np.int64,
    )
