"""Cutting texts that are too long for the model: pure functions on lengths."""

import numpy as np


def truncated_lengths(
    lengths: list[np.ndarray], capacity: int, truncation: str
) -> list[np.ndarray]:
    """Return how many pieces of each text are kept.

    Parameters
    ----------
    lengths : list of one or two ndarrays of shape (n_rows,)
        Pieces of the first and, with pairs, of the second texts.
    capacity : int
        Pieces that a row may have.
    truncation : {"longest_first", "second", "error"}
        "longest_first" takes pieces from the end of the longer text until the row fits (of a tie,
        from the second), "second" from the second text only.

    Raises
    ------
    ValueError
        If a row is too long with "error", or its first text alone with "second"; it names the row.

    Examples
    --------
    >>> truncated_lengths([np.array([9, 2]), np.array([5, 9])], 8, "longest_first")
    [array([4, 2]), array([4, 6])]
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
