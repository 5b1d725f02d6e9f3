"""Ragged arrays: rows of different lengths in one flat array."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths: row i is ``values[offsets[i]:offsets[i + 1]]``."""

    values: np.ndarray
    offsets: np.ndarray  # (n_rows + 1,), int64

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    @classmethod
    def cut(cls, values: np.ndarray, start: np.ndarray, stop: np.ndarray) -> "Ragged":
        """Return the rows ``values[start[0]:stop[0]], values[start[1]:stop[1]], ...``."""
        return cls(values[ranges(start, stop)], offsets_from_lengths(stop - start))

    def take(self, rows: np.ndarray) -> "Ragged":
        return Ragged.cut(self.values, self.offsets[rows], self.offsets[rows + 1])

    def heads(self, lengths: np.ndarray) -> "Ragged":
        """Return the first values of each row, as many as ``lengths`` says."""
        return Ragged.cut(self.values, self.offsets[:-1], self.offsets[:-1] + lengths)


def ranges(start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """Return ``start[0]..stop[0]-1, start[1]..stop[1]-1, ...`` in one array."""
    offsets = offsets_from_lengths(stop - start)
    return np.arange(offsets[-1]) + np.repeat(start - offsets[:-1], stop - start)


def offsets_from_lengths(lengths: Sequence[int] | np.ndarray) -> NDArray[np.int64]:
    """Return where rows of the given lengths start and end, of shape (n_rows + 1,)."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
