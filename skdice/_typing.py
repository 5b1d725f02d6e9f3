"""What users pass as X and y, for signatures; what is allowed is checked where it is used."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypedDict

import numpy as np
import pandas as pd


class Column(Protocol):
    """A column of another library: polars, pyarrow, datasets, torch or whatever is an array."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Any: ...


class Table(Protocol):
    """A table of another library: polars, pyarrow or datasets."""

    def __len__(self) -> int: ...

    @property
    def shape(self) -> Any: ...


Strings: TypeAlias = Sequence[str] | np.ndarray | pd.Series | Column
TokenLists: TypeAlias = Sequence[Strings] | np.ndarray | pd.Series | Column
TagSequences: TypeAlias = TokenLists
Spans: TypeAlias = Sequence[Sequence[tuple[int, int, str]]] | np.ndarray | pd.Series | Column
Texts: TypeAlias = Strings | pd.DataFrame | Table
Pairs: TypeAlias = Sequence[Sequence[str]] | np.ndarray | pd.Series | pd.DataFrame | Column | Table
Labels: TypeAlias = Sequence[Hashable] | np.ndarray | pd.Series | Column
Indicators: TypeAlias = Sequence[Sequence[int]] | np.ndarray | pd.DataFrame | Table
Numbers: TypeAlias = Sequence[float] | np.ndarray | pd.Series | Column
Weights: TypeAlias = Numbers | float | None
Questions: TypeAlias = (
    Sequence[Mapping[str, str] | Sequence[str]] | np.ndarray | pd.DataFrame | Table
)
Answer: TypeAlias = str | Sequence[str] | Mapping[str, object]
Answers: TypeAlias = Sequence[Answer] | np.ndarray | pd.Series | Column


class SquadAnswer(TypedDict):
    """The answers to a question as SQuAD files have them; empty lists if there is none."""

    text: list[str]
    answer_start: list[int]
