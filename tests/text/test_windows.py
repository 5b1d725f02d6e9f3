"""Cutting long texts into windows, choosing the window of a word, and truncating instead."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.text._windows import central_window, cut_windows, truncated_lengths


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


@pytest.mark.parametrize(
    "n_pieces, capacity, stride, start, stop",
    [
        (0, 4, 1, [0], [0]),
        (4, 4, 3, [0], [4]),
        (5, 4, 0, [0, 1], [4, 5]),
        (8, 4, 0, [0, 4], [4, 8]),
        (9, 4, 0, [0, 4, 5], [4, 8, 9]),
        (10, 6, 2, [0, 4], [6, 10]),
        (11, 6, 2, [0, 4, 5], [6, 10, 11]),
        (6, 4, 3, [0, 1, 2], [4, 5, 6]),
        (3, 1, 0, [0, 1, 2], [1, 2, 3]),
    ],
)
def test_cut_windows(n_pieces, capacity, stride, start, stop):
    """Alone, and between other texts."""
    for before in (0, 2):
        texts = np.array([capacity + 3] * before + [n_pieces, 1])
        text, got_start, got_stop = cut_windows(texts, capacity, stride)
        mine = text == before
        assert (got_start[mine].tolist(), got_stop[mine].tolist()) == (start, stop)
        assert (np.diff(text) >= 0).all()


@given(cuts())
@settings(deadline=None, max_examples=50)
def test_windows_cover_the_text_and_overlap(cut):
    n_pieces, capacity, stride = cut
    _, start, stop = cut_windows(np.array([n_pieces]), capacity, stride)
    assert start[0] == 0
    assert stop[-1] == n_pieces
    assert (np.diff(start) > 0).all()
    assert (stop[:-1] - start[1:] >= stride).all()
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
