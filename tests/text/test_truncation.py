"""How many pieces of too long texts are kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdice.text._windows import truncated_lengths

lengths = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=20)


def one_by_one(first, second, capacity):
    """Take pieces from the longer text until both fit."""
    while first + second > capacity:
        if first > second:
            first -= 1
        else:
            second -= 1
    return first, second


@given(lengths, st.integers(1, 40))
def test_longest_first_takes_piece_by_piece(rows, capacity):
    first, second = map(np.array, zip(*rows))
    kept = truncated_lengths([first, second], capacity, "longest_first")
    assert list(zip(*kept)) == [one_by_one(a, b, capacity) for a, b in rows]


@given(lengths, st.integers(30, 40))
def test_second(rows, capacity):
    first, second = map(np.array, zip(*rows))
    kept = truncated_lengths([first, second], capacity, "second")
    np.testing.assert_array_equal(kept[0], first)
    np.testing.assert_array_equal(kept[1], np.minimum(second, capacity - first))


def test_single_texts():
    (kept,) = truncated_lengths([np.array([3, 9])], 8, "longest_first")
    assert kept.tolist() == [3, 8]


def test_error_names_the_row():
    with pytest.raises(ValueError, match=r"Row 1 has 10 pieces, and 8 are allowed \(2 rows"):
        truncated_lengths([np.array([3, 5, 9]), np.array([5, 5, 9])], 8, "error")


def test_first_text_alone_too_long():
    with pytest.raises(ValueError, match=r"The first text of row 2 has 9 pieces, and 8 are"):
        truncated_lengths([np.array([3, 5, 9]), np.array([5, 5, 9])], 8, "second")
