"""What an estimator is about, in one record that all rooms above ask."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..io._model_card import CardTexts
from ..text._frame import Frame
from ..text._tokenizer import WordTokenizer


@dataclass(frozen=True)
class Task:
    """What an estimator is about.

    Attributes
    ----------
    row : {"sentence", "text", "pair", "question"}
        What a row of X is called.
    takes_words : bool
        Whether a row is a list of words.
    parts : tuple of str
        What a row is made of: in a table each is a column.
    is_classifier : bool
        Whether a row has a label, or several, and not words with tags or an answer.
    read_X : callable
        From X to a list of checked rows.
    read_y : callable
        From y and the rows to checked labels; it raises a ValueError that names the row.
    state : mapping of str to type or tuple of types
        What a fit sets, for checks of saved directories.
    card : CardTexts
        What the model card says.
    """

    row: str
    takes_words: bool
    parts: tuple[str, ...]
    is_classifier: bool
    read_X: Callable[[Any], Any]
    read_y: Callable[[Any, Any], Any]
    state: Mapping[str, Any]
    card: CardTexts

    @property
    def reads_two_texts(self) -> bool:
        """Whether the model reads two texts together."""
        return len(self.parts) > 1


def frame_of(task: Task, tokenizer: WordTokenizer) -> Frame:
    """Return the special tokens around the texts of a row."""
    return tokenizer.pair_frame if task.reads_two_texts else tokenizer.frame
