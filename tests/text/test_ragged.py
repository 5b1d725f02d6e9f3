"""Ragged arrays against lists of lists."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.text._ragged import Ragged, offsets_from_lengths, ranges

rows_of_ints = st.lists(st.lists(st.integers(-9, 9), max_size=5), max_size=6)


def as_lists(ragged):
    return [ragged[i].tolist() for i in range(len(ragged))]


@given(rows_of_ints)
@settings(deadline=None, max_examples=50)
def test_from_rows_keeps_the_rows(rows):
    ragged = Ragged.from_rows(rows, np.int32)
    assert as_lists(ragged) == rows
    assert ragged.lengths.tolist() == [len(row) for row in rows]
    assert ragged.values.dtype == np.int32
    assert ragged.offsets.dtype == np.int64


@given(rows_of_ints.filter(len), st.data())
@settings(deadline=None, max_examples=50)
def test_take_gives_rows_in_the_order_asked_for(rows, data):
    index = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8))
    taken = Ragged.from_rows(rows, np.int32).take(np.array(index, dtype=np.int64))
    assert as_lists(taken) == [rows[i] for i in index]
    assert taken.values.dtype == np.int32


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), max_size=6))
@settings(deadline=None, max_examples=50)
def test_ranges(bounds):
    start = np.array([first for first, _ in bounds], dtype=np.int64)
    stop = start + np.array([length for _, length in bounds], dtype=np.int64)
    expected = [i for first, length in bounds for i in range(first, first + length)]
    assert ranges(start, stop).tolist() == expected


@pytest.mark.parametrize("lengths, offsets", [([], [0]), ([0], [0, 0]), ([2, 0, 3], [0, 2, 2, 5])])
def test_offsets_from_lengths(lengths, offsets):
    got = offsets_from_lengths(lengths)
    assert got.tolist() == offsets
    assert got.dtype == np.int64
