"""Types of X and y for signatures; what is allowed is checked where the values are used."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Protocol,
    Self,
    SupportsIndex,
    TypeAlias,
    TypedDict,
    TypeVar,
    overload,
)

import numpy as np
import pandas as pd


class Column(Protocol):
    """A column of another library, such as polars, pyarrow, datasets or torch."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Any: ...


class Table(Protocol):
    """A table of another library, such as polars, pyarrow or datasets."""

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
# The training and the test rows of each fold.
Splits: TypeAlias = Sequence[tuple[np.ndarray, np.ndarray]]
Questions: TypeAlias = (
    Sequence[Mapping[str, str] | Sequence[str]] | np.ndarray | pd.DataFrame | Table
)
Answers: TypeAlias = (
    Sequence[str | Sequence[str] | Mapping[str, object]] | np.ndarray | pd.Series | Column
)

T = TypeVar("T")

if TYPE_CHECKING:

    class ObjectArray(np.ndarray[tuple[int], np.dtype[np.object_]], Generic[T]):
        """A one-dimensional object array with items of a known type."""

        def __iter__(self) -> Iterator[T]: ...  # type: ignore[override]
        @overload  # type: ignore[override]
        def __getitem__(self, key: SupportsIndex, /) -> T: ...
        @overload
        def __getitem__(self, key: Any, /) -> Self: ...
        def __getitem__(self, key: Any, /) -> Any: ...
        def tolist(self) -> list[T]: ...

else:
    ObjectArray = np.ndarray


class SquadAnswer(TypedDict):
    """The answers to a question as SQuAD files have them; empty lists if there is none."""

    text: list[str]
    answer_start: list[int]
