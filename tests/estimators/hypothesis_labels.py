"""Strategies of labels for the classifiers, and of what is no label."""

from fractions import Fraction

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from .hypothesis_inputs import JUNK, as_series, text

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
    contain = draw(st.sampled_from([list, tuple, as_series, in_column, pd.Categorical]))
    return labels, contain(labels) if labels else labels


def in_column(labels):
    """Return a DataFrame of one column, as target tables are."""
    return pd.DataFrame({"label": as_series(labels)})


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
