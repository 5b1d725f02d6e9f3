"""Cutting long texts into overlapping windows: pure functions on positions."""

import numpy as np


def cut_windows(n_pieces: int, capacity: int, stride: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut a text into windows that cover it.

    Parameters
    ----------
    n_pieces : int
        Length of the text in pieces.
    capacity : int
        Pieces that fit in a window, special ones not counted.
    stride : int
        Pieces that neighbouring windows share at least, in [0, capacity).

    Returns
    -------
    start, stop : ndarrays of shape (n_windows,)
        Ascending; all windows of a cut text are full (the last one overlaps more).

    Examples
    --------
    >>> cut_windows(10, capacity=6, stride=2)
    (array([0, 4]), array([ 6, 10]))
    """
    if n_pieces <= capacity:
        return np.zeros(1, dtype=np.int64), np.full(1, n_pieces, dtype=np.int64)
    start = np.arange(0, n_pieces - stride, capacity - stride, dtype=np.int64)
    start[-1] = n_pieces - capacity
    return start, start + capacity


def central_window(position: np.ndarray, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """Return, for each position, the window in which it is most central.

    A position is taken from the window that leaves it most context on its poorer side; the ends of
    the text are no lack of context. Ties go to the earlier window.

    Parameters
    ----------
    position : ndarray of shape (n_positions,)
        Positions in the text.
    start, stop : ndarrays of shape (n_windows,)
        Windows of that text, as from :func:`cut_windows`.

    Returns
    -------
    ndarray of shape (n_positions,)
        Indices of windows.

    Examples
    --------
    >>> central_window(np.arange(10), np.array([0, 4]), np.array([6, 10]))
    array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1])
    """
    # Neighbours are equally good halfway between the start of the later and the end of the earlier.
    halfway = (start[1:] + stop[:-1] - 1) / 2
    return np.searchsorted(halfway, position, side="left")


def span_bounds(
    row: np.ndarray, start: np.ndarray, stop: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return between which centres the spans of each window lie.

    A span from position i to position j has the centre i + j (twice its middle). It belongs to the
    window in which it is most central, as in :func:`central_window`: so every span that is in a
    window belongs to exactly one, whose ``low < i + j <= high``.

    Parameters
    ----------
    row, start, stop : ndarrays of shape (n_windows,)
        Windows, those of a row side by side in ascending order.

    Returns
    -------
    low, high : ndarrays of shape (n_windows,), int64
    """
    low = np.full(len(row), -1, dtype=np.int64)
    high = np.full(len(row), np.iinfo(np.int64).max)
    is_same = row[1:] == row[:-1]
    halfway = (start[1:] + stop[:-1] - 1)[is_same]
    low[1:][is_same] = halfway
    high[:-1][is_same] = halfway
    return low, high
