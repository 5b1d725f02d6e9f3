"""Cutting long texts into windows, choosing the window of a word, and truncating instead."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.text._encoding import central_window, cut_windows, room_beside, truncated_lengths


@st.composite
def cuts(draw):
    """Return (n_pieces, capacity, stride)."""
    capacity = draw(st.integers(1, 24))
    return draw(st.integers(0, 120)), capacity, draw(st.integers(0, capacity - 1))


def slow_central_window(position, start, stop):
    """The window whose poorer side has most context; the ends of the text count as unlimited."""

    def context(window):
        left = math.inf if window == 0 else position - start[window]
        right = math.inf if window == len(start) - 1 else stop[window] - 1 - position
        return min(left, right)

    inside = [i for i in range(len(start)) if start[i] <= position < stop[i]]
    return max(inside, key=lambda window: (context(window), -window))


@given(cuts())
@settings(deadline=None, max_examples=50)
def test_windows_cover_the_text_and_overlap(cut):
    n_pieces, capacity, stride = cut
    _, start, stop = cut_windows(np.array([n_pieces]), capacity, stride)
    assert start[0] == 0
    assert stop[-1] == n_pieces
    assert (np.diff(start) > 0).all()
    assert (stop[:-1] - start[1:] >= stride).all()
    assert (np.diff(start)[:-1] == capacity - stride).all()
    if n_pieces <= capacity:
        assert len(start) == 1
    else:
        assert (stop - start == capacity).all()
        assert len(start) == 1 + math.ceil((n_pieces - capacity) / (capacity - stride))


@given(cuts(), st.integers(1, 60))
@settings(deadline=None, max_examples=50)
def test_central_window_is_the_one_with_most_context(cut, n_before):
    n_pieces, capacity, stride = cut
    text, start, stop = cut_windows(np.array([n_before, n_pieces]), capacity, stride)
    first = np.array([0, n_before])[text]
    owner = central_window(np.arange(n_before + n_pieces), text, start + first, stop + first)
    mine = text == 1
    assert (owner[n_before:] - (~mine).sum()).tolist() == [
        slow_central_window(i, start[mine], stop[mine]) for i in range(n_pieces)
    ]


@pytest.mark.parametrize(
    "stride, n_pieces, message",
    [
        (None, 0, "Text 1 has 10 pieces, which leaves 0 pieces of max_length=12"),
        (2, 3, "Text 0 has 8 pieces, .* 2 pieces .*2 are too long.* At least 3 .*stride=2"),
    ],
)
def test_too_little_room(stride, n_pieces, message):
    with pytest.raises(ValueError, match=message):
        room_beside(np.array([8, 10]), 2, 12, stride, n_pieces, lambda i: f"Text {i}")


def test_room():
    room, shared = room_beside(np.array([1, 5]), 2, 12, None, np.inf, str)
    assert (room.tolist(), shared.tolist()) == ([9, 5], [2, 1])
    room, shared = room_beside(np.array([1, 5]), 2, 12, 6, np.array([20, 5]), str)
    assert (room.tolist(), shared.tolist()) == ([9, 5], [6, 6])


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
