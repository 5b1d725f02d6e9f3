"""Strategies of texts and labels, and of what is none, for test_any_input and test_bad_input.

Each estimator gets at least as many cases as SKDICE_HYPOTHESIS_EXAMPLES says, few by default;
every property has a share of them.
"""

import linecache
import os
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from scipy import sparse

import skdice

N_CASES = int(os.environ.get("SKDICE_HYPOTHESIS_EXAMPLES", "100"))
ONE_EPOCH = {"max_epochs": 1, "lr": 1e-2, "batch_size": 8, "random_state": 0, "verbose": 0}
NAN = float("nan")
PACKAGE = Path(skdice.__file__).parent


def cases(share):
    """Return the settings of a property that gets a share of the cases of its estimator."""
    return settings(
        max_examples=max(3, round(N_CASES * share)),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


# -- texts -----------------------------------------------------------------------------------------

# Lone surrogates, unassigned code points and control characters included.
ANY_CHARACTER = st.characters(exclude_categories=())
ODD_WORDS = ["", " ", "\u200b", "\x00", "\ufeff", "[CLS]", "[SEP]", "<s>", "\ud800", "a" * 200]


def text(max_size):
    """Return a strategy of texts over all of Unicode."""
    return st.text(ANY_CHARACTER, max_size=max_size)


words = text(12) | st.sampled_from([*ODD_WORDS, "john", "oslo"])
sentences = st.lists(st.lists(words, max_size=40), max_size=5)
# Short ones, and some that are longer than the models can read.
texts = (
    text(80)
    | st.lists(words, max_size=60).map(" ".join)
    | st.sampled_from([*ODD_WORDS, "the [SEP] in oslo [PAD]", "oslo " * 300, "\u0301" * 50])
)


def as_array(rows):
    """Return an object array of shape (n_rows,), whatever the rows are."""
    array = np.empty(len(rows), dtype=object)
    for i, row in enumerate(rows):
        array[i] = row
    return array


def as_series(rows):
    """Return a Series whose index does not start at 0."""
    return pd.Series(as_array(rows), index=range(7, 7 + len(rows)), dtype=object)


# -- what is no text -------------------------------------------------------------------------------


def generator_of(rows):
    """Return a generator, which has no length."""
    return (row for row in rows)


NO_ROWS = {
    "None": None,
    "int": 5,
    "NaN": NAN,
    "str": "john lives in oslo",
    "bytes": b"john",
    "dict": {"a": ["john"]},
    "set": {"john"},
    "0-d array": np.array("john"),
    "0-d array of objects": np.array(None, dtype=object),
    "class": list,
    "object": object(),
    "sparse matrix": sparse.csr_matrix(np.eye(3)),
    "generator": generator_of([["john"]]),
}


# Neither a text nor a list of texts.
JUNK = [
    None,
    NAN,
    2.5,
    True,
    1j,
    10**400,
    Decimal("NaN"),
    np.float32("nan"),
    np.datetime64("NaT"),
    pd.NA,
    pd.NaT,
    b"bytes",
    {"a": "b"},
    {"a"},
    frozenset(),
    np.array("0-d"),
    np.array(0.5),
    object(),
    str,
    range(3),
    generator_of(["a"]),
    pd.DataFrame({"a": ["b"]}),
    sparse.csr_matrix([[1]]),
    [[["deep"]]],
    [None],
    ["a", NAN],
    [1, 2],
    [b"a"],
    np.zeros((2, 2)),
]
junk = st.sampled_from(JUNK)


def with_row(rows, i, row):
    """Return the rows, one of them replaced."""
    return [*rows[:i], row, *rows[i + 1 :]]


@st.composite
def one_bad_row(draw, rows, bad):
    """Draw a container in which one row is bad, and the number of that row."""
    i = draw(st.integers(0, len(rows) - 1))
    contain = draw(st.sampled_from([list, tuple, as_series, as_array]))
    return contain(with_row(rows, i, draw(bad))), i


# -- labels, and what is none ----------------------------------------------------------------------

# Labels of one type: what y may have.
KINDS = [
    text(6),
    st.sampled_from(["spam", "ham", "", "\x00", "a\x00", "\ud800"]),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2),
    st.integers(-3, 3).map(float),
    st.integers(0, 2).map(np.int8),
    st.booleans(),
    st.booleans().map(np.bool_),
]


@st.composite
def labels_for(draw, n_rows):
    """Draw so many labels of one type, in any container."""
    labels = draw(st.lists(draw(st.sampled_from(KINDS)), min_size=n_rows, max_size=n_rows))
    contain = draw(st.sampled_from([list, tuple, as_series, in_column, in_categories]))
    return labels, contain(labels) if labels else labels


def in_column(labels):
    """Return a DataFrame of one column, as target tables are."""
    return pd.DataFrame({"label": as_series(labels)})


def in_categories(labels):
    """Return a Categorical of Python objects: Arrow's strings have no lone surrogates."""
    return pd.Categorical(pd.Series(labels, dtype=object))


# Not lists, which make a row of several labels.
NO_LABELS = [
    *[junk for junk in JUNK if not isinstance(junk, list | np.ndarray)],
    "a str among numbers",
    float("inf"),
    2**63,
    Fraction(1, 2),
    np.datetime64("2020-01-01"),
    pd.Timestamp("2020-01-01"),
    1 + 0j,
]
no_labels = st.sampled_from(NO_LABELS)


# -- errors ----------------------------------------------------------------------------------------


def check_error(error, row=None):
    """Require a ValueError or TypeError that skdice raised and that says which row is bad."""
    assert type(error) in (ValueError, TypeError), repr(error)
    assert raised_by_skdice(error), f"raised elsewhere: {error!r}"
    assert len(str(error)) > 30, f"says too little: {error!r}"
    if row is not None:
        assert re.search(rf"\brows? (\d+, )*{row}\b", str(error), re.IGNORECASE), error


def raised_by_skdice(error):
    """Whether a raise statement of skdice raised the error, not Python or a library below."""
    traceback = error.__traceback__
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    path = traceback.tb_frame.f_code.co_filename
    statement = linecache.getline(path, traceback.tb_lineno).strip()
    return statement.startswith("raise ") and Path(path).is_relative_to(PACKAGE)


def fails(call, row=None):
    """Require that a call fails as it should."""
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    check_error(caught.value, row)


def attempt(call):
    """Return what a call gives, or the error it raises, which must be as it should."""
    try:
        return call()
    except (ValueError, TypeError) as error:
        check_error(error)
        return error
