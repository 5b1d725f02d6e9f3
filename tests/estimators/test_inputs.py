"""Checks of X, y and sample_weight by themselves: odd values that once got a foreign error."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from skdice._inputs import (
    check_sample_weight,
    check_token_lists,
)
from skdice.tasks import align_answers, check_entities, check_indicator, check_labels


def test_weights_that_are_all_zero():
    """In words that scikit-learn's own check looks for."""
    with pytest.raises(ValueError, match=r"(.*weight.*zero.*)|(.*zero.*weight.*)"):
        check_sample_weight([0, 0.0], 2)


SCALAR = np.array("0-d")
SENTENCES = [["john", "saw"], ["in", "oslo"], ["by", "rome"]]
SPANS = [[(0, 1, "PER")], [(1, 2, "LOC")], [(1, 2, "LOC")]]


def spans_with(row):
    return [SPANS[0], row, SPANS[2]]


@pytest.mark.parametrize(
    "call, message",
    [
        # A 0-d array has a length that fails.
        (lambda: check_entities(spans_with([SCALAR]), SENTENCES), "row 1 has array("),
        (
            lambda: align_answers(
                [{"text": ["a"], "answer_start": SCALAR}], ["a in oslo"], "repair"
            ),
            "Each answer_start of row 0 of y must be an int; got array(",
        ),
        # One row that is wrong does not make the others wrong.
        (lambda: check_entities(spans_with((0, 1, "PER")), SENTENCES), "row 1 has 0"),
        (lambda: check_entities(spans_with("PER"), SENTENCES), "row 1 is 'PER' of type str"),
        (lambda: check_entities(spans_with(["O", "B-PER"]), SENTENCES), "row 1 has 'O'"),
        (lambda: check_entities([["O", "O"], ["O", "X"], ["O", "O"]], SENTENCES), "row 1 of y"),
        # Numbers that no float or int64 holds, and that Python does not print.
        (lambda: check_labels([1, 10**400], 2), "row 1 of y is an int of 1329 bits"),
        (lambda: check_labels([1, 10**5000], 2), "row 1 of y is an int of 16610 bits"),
        (lambda: check_labels([1, 2**63], 2), "must fit in 64 bits; row 1"),
        (lambda: check_token_lists("john saw"), "'john saw' of type str. For raw text call pred"),
        (lambda: check_token_lists(["john saw"]), "call predict_entities, which takes raw texts"),
        (lambda: check_token_lists([["a"], [10**5000]]), "row 1 of X is an int of 16610 bits"),
        # What numpy would turn into another thing, and blame the first row for.
        (lambda: check_indicator([[0, 1], [1, 1j]], 2), "row 1, column 1 is 1j of type complex"),
        (lambda: check_indicator([[0, 1], ["1", 0]], 2), "row 1, column 0 is '1' of type str"),
        (lambda: check_indicator([[0, 1], [pd.NA, 1]], 2), "row 1, column 0 is <NA> of type NA"),
        (lambda: check_indicator([[0, 1], [[1], 1]], 2), "row 1, column 0 is [1] of type list"),
        (lambda: check_indicator([[0, 1], 5], 2), "got a row 5 of type int, row 1"),
        (lambda: check_indicator([[0, 1], np.zeros((2, 2))], 2), "row 1, column 0 is array("),
        (lambda: check_indicator([[0, 1], [1]], 2), "2 in row 0 and 1 in row 1"),
        (lambda: check_labels(np.eye(2), 2), "one label per row; got array("),
        # Weights that are no numbers.
        (lambda: check_sample_weight(["a", "b"], 2), "shape (2,), one number per row of X"),
        (lambda: check_sample_weight([[1], [1, 2]], 2), "shape (2,), one number per row of X"),
        (lambda: check_sample_weight(pd.Series([1, pd.NA]), 2), "shape (2,), one number per row"),
        (lambda: check_sample_weight(10**400, 2), "shape (2,), one number per row of X"),
        (lambda: check_sample_weight([1, 1e300], 2), "row 1 has inf"),
    ],
)
def test_errors(call, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        call()


@pytest.mark.parametrize(
    "y, names",
    [
        (np.array([[0, 1], [1, 0]], dtype=object), [0, 1]),
        ([[False, True], [True, False]], [0, 1]),
        ([(0.0, 1.0), (1.0, 0.0)], [0, 1]),
        ([[np.int8(0), True], [1.0, 0]], [0, 1]),
        (sparse.csr_matrix([[0, 1], [1, 0]]), [0, 1]),
        (pd.DataFrame({"a": [0, 1], "b": [1, 0]}, dtype="Int64"), ["a", "b"]),
    ],
    ids=["objects", "bool", "tuples", "mixed", "sparse", "table of nullable int"],
)
def test_indicators(y, names):
    matrix, columns = check_indicator(y, 2)
    assert matrix.dtype == np.int64
    assert matrix.tolist() == [[0, 1], [1, 0]]
    assert columns.tolist() == names
