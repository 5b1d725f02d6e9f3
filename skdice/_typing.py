"""What users pass as X and y, for signatures; what is allowed is checked where it is used."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias, TypedDict

import numpy as np
import pandas as pd

Strings: TypeAlias = Sequence[str] | np.ndarray | pd.Series
TokenLists: TypeAlias = Sequence[Strings] | np.ndarray | pd.Series
TagSequences: TypeAlias = TokenLists
Labels: TypeAlias = Sequence[Hashable] | np.ndarray | pd.Series
Numbers: TypeAlias = Sequence[float] | np.ndarray | pd.Series
Questions: TypeAlias = Sequence[Mapping[str, str] | Sequence[str]] | np.ndarray | pd.DataFrame
Answer: TypeAlias = str | Sequence[str] | Mapping[str, object]
Answers: TypeAlias = Sequence[Answer] | np.ndarray | pd.Series


class SquadAnswer(TypedDict):
    """The answers to a question as SQuAD files have them; empty lists if there is none."""

    text: list[str]
    answer_start: list[int]
