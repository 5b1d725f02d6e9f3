"""Cutting texts that are too long, into windows or off: pure functions on positions and lengths."""

from collections.abc import Callable

import numpy as np

from ._ragged import ranges


def cut_windows(
    n_pieces: np.ndarray, capacity: np.ndarray | int, stride: np.ndarray | int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut texts into windows that cover them: the text, start and stop of each, ascending.

    A window has up to ``capacity`` pieces, special ones not counted, and shares ``stride`` or more
    with its neighbour; all windows of a cut text are full (the last one overlaps more).
    """
    n_pieces, capacity, stride = np.broadcast_arrays(n_pieces, capacity, stride)
    too_many = np.maximum(n_pieces - capacity, 0)
    step = np.maximum(capacity - stride, 1)  # It is no matter for texts of one window.
    n_windows = 1 - (-too_many // step)
    text = np.repeat(np.arange(len(n_pieces)), n_windows)
    number = ranges(np.zeros_like(n_windows), n_windows)
    start = np.minimum(number * step[text], too_many[text])
    return text, start, np.minimum(start + capacity[text], n_pieces[text])


def central_window(
    position: np.ndarray, text: np.ndarray, start: np.ndarray, stop: np.ndarray
) -> np.ndarray:
    """Return, for each position, the number of the window in which it is most central.

    A position is taken from the window that leaves it most context on its poorer side; the ends of
    a text are no lack of context. Ties go to the earlier window. Positions and the windows of
    :func:`cut_windows` are counted through all texts.
    """
    last = 2 * stop - 1
    _, high = span_bounds(text, start, stop)
    return np.searchsorted(np.minimum(last, high), 2 * position)


def span_bounds(
    row: np.ndarray, start: np.ndarray, stop: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return between which centres the spans of each window lie.

    A span from position i to position j has the centre i + j (twice its middle). It belongs to the
    window in which it is most central, as in :func:`central_window`: so every span that is in a
    window belongs to exactly one, whose ``low < i + j <= high``. The windows of a row lie side by
    side in ascending order.
    """
    low = np.full(len(row), -1, dtype=np.int64)
    high = np.full(len(row), np.iinfo(np.int64).max)
    is_same = row[1:] == row[:-1]
    halfway = (start[1:] + stop[:-1] - 1)[is_same]
    low[1:][is_same] = halfway
    high[:-1][is_same] = halfway
    return low, high


def room_beside(
    n_asked: np.ndarray,
    n_special: int,
    max_length: int,
    stride: int | None,
    n_pieces: np.ndarray | float,
    name: Callable[[int], str],
) -> tuple[np.ndarray, np.ndarray]:
    """Return how many pieces of a text fit beside what is asked, and how many windows share.

    Windows share ``stride`` pieces, by default a quarter of those that fit. If what is asked leaves
    no room, or leaves too little to cut a text of ``n_pieces``, that is a ValueError. It calls what
    is asked ``name(i)``.
    """
    room = max_length - n_special - n_asked
    least = 1 if stride is None else stride + 1
    too_long = np.flatnonzero((room < 1) | ((room < least) & (room < n_pieces)))
    if len(too_long):
        i = int(too_long[0])
        others = f"; so do {len(too_long) - 1} others" if len(too_long) > 1 else ""
        raise ValueError(
            f"{name(i)} has {n_asked[i]} pieces, which leaves {max(room[i], 0)} pieces of "
            f"max_length={max_length} for its text{others}. At least {least} must be left with "
            f"stride={stride}."
        )
    return room, room // 4 if stride is None else np.full_like(room, stride)


def truncated_lengths(
    lengths: list[np.ndarray], capacity: int, truncation: str
) -> list[np.ndarray]:
    """Return how many pieces of each text are kept, of rows of one or two texts.

    A row may have ``capacity`` pieces. "longest_first" takes pieces from the end of the longer text
    until the row fits (of a tie, from the second), "second" from the second text only. A row that
    is too long with "error", or whose first text alone is with "second", is a ValueError, which
    names it.
    """
    total = np.sum(lengths, axis=0)
    if truncation == "error":
        _refuse(np.flatnonzero(total > capacity), total, capacity, "Row {row} has {n} pieces")
        return lengths
    if len(lengths) == 1:
        return [np.minimum(lengths[0], capacity)]
    first, second = lengths
    if truncation == "second":
        too_long = np.flatnonzero((first > capacity) & (total > capacity))
        _refuse(too_long, first, capacity, "The first text of row {row} has {n} pieces")
    else:
        first = np.minimum(first, np.maximum(capacity - second, capacity - capacity // 2))
    return [first, np.minimum(second, capacity - first)]


def _refuse(rows: np.ndarray, lengths: np.ndarray, capacity: int, what: str) -> None:
    if len(rows):
        others = f" ({len(rows)} rows are too long)" if len(rows) > 1 else ""
        raise ValueError(
            f"{what.format(row=rows[0], n=lengths[rows[0]])}, and {capacity} are allowed{others}. "
            f"Raise max_length, or take truncation='longest_first'."
        )
