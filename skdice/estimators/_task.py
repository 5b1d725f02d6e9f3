"""What an estimator is about, in one record that all rooms above ask."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..io._model_card import CardTexts
from ..metrics._row_counts import RowCounts


@dataclass(frozen=True)
class Task:
    """What an estimator is about.

    Attributes
    ----------
    row : {"sentence", "text", "pair", "question"}
        What a row of X is called.
    parts : tuple of str
        What a row is made of: in a table each is a column.
    is_classifier : bool
        Whether a row has a label, or several, and not words with tags or an answer.
    read_X : callable
        From X to a list of checked rows.
    read_y : callable
        From y and the rows to checked labels; it raises a ValueError that names the row. Of rows
        that are not known their number is enough, and of sentences y itself.
    find_measure : callable
        From y of the training rows to a key of ``skdice.metrics._row_counts.METRICS``.
    count_rows : callable
        From a fitted estimator, that key, y and predictions to the RowCounts.
    find_groups : callable or None
        From X to what rows have in common that have to be in the same part of a split.
    state : mapping of str to type or tuple of types
        What a fit sets, for checks of saved directories.
    """

    row: str
    parts: tuple[str, ...]
    read_X: Callable[[Any], Any]
    read_y: Callable[[Any, Any], Any]
    find_measure: Callable[[Any], str]
    count_rows: Callable[[Any, str, Any, Any], RowCounts]
    state: Mapping[str, Any]
    card: CardTexts
    takes_words: bool = False
    is_classifier: bool = False
    find_groups: Callable[[Any], Sequence[Any]] | None = None

    @property
    def reads_two_texts(self) -> bool:
        """Whether the model reads two texts together."""
        return len(self.parts) > 1
