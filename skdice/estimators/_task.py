"""What an estimator is about, in one record that all rooms above ask."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..io._model_card import CardTexts
from ..metrics._row_counts import RowCounts


@dataclass(frozen=True)
class Task:
    """What an estimator is about."""

    row: str  # What a row of X is called: "sentence", "text", "pair" or "question".
    read_X: Callable[[Any], Any]  # From X to a list of checked rows.
    # From y and the rows to checked labels; a ValueError names the row. Of rows that are not known
    # their number is enough, and of sentences y itself.
    read_y: Callable[[Any, Any], Any]
    # From y of the training rows to a key of ``skdice.metrics._row_counts.METRICS``.
    find_measure: Callable[[Any], str]
    # From a fitted estimator, that key, y and predictions to their counts.
    count_rows: Callable[[Any, str, Any, Any], RowCounts]
    state: Mapping[str, Any]  # What a fit sets and of which types, to check saved directories by.
    card: CardTexts
    reads_two_texts: bool = False  # Together.
    is_classifier: bool = False
    # From X to what rows have in common that have to be in the same part of a split.
    find_groups: Callable[[Any], Sequence[Any]] | None = None
