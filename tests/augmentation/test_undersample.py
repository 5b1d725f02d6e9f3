import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.augmentation import undersample_negatives

TEXTS = [f"text {i}" for i in range(12)]
LABELS = [0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0]


@pytest.mark.parametrize("ratio, n_negatives", [(1.0, 3), (2, 6), (3, 9), (0.5, 2), (0.34, 1)])
def test_ratio(ratio, n_negatives):
    X, y = undersample_negatives(TEXTS, LABELS, ratio=ratio, random_state=0)
    assert y.count(1) == 3
    assert y.count(0) == n_negatives
    positions = [TEXTS.index(text) for text in X]
    assert positions == sorted(set(positions))
    assert [LABELS[i] for i in positions] == y


@settings(deadline=None, max_examples=50)
@given(st.lists(st.booleans(), min_size=2), st.integers(0, 99))
def test_balanced(flags, seed):
    n_positives = sum(flags)
    if not 0 < n_positives <= len(flags) - n_positives:
        return
    rows, y = undersample_negatives(list(range(len(flags))), flags, random_state=seed)
    assert sum(y) == n_positives == len(y) / 2
    assert rows == sorted(set(rows))
    assert [i for i in rows if flags[i]] == [i for i, flag in enumerate(flags) if flag]
    assert [flags[i] for i in rows] == y


def test_every_negative_has_the_same_chance():
    counts = dict.fromkeys(TEXTS, 0)
    for seed in range(600):
        for text in undersample_negatives(TEXTS, LABELS, random_state=seed)[0]:
            counts[text] += 1
    kept = [count for text, count in counts.items() if not LABELS[TEXTS.index(text)]]
    assert min(kept) > 150
    assert max(kept) < 250


def make_frame(rows):
    return pd.DataFrame({"a": rows, "b": rows}, index=[f"row {i}" for i in range(len(rows))])


@pytest.mark.parametrize(
    "make_X, make_y",
    [
        (list, list),
        (tuple, tuple),
        (np.array, np.array),
        (lambda rows: np.array([[r, r] for r in rows], dtype=object), np.array),
        (lambda rows: pd.Series(rows, index=range(50, 62)), pd.Series),
        (make_frame, lambda labels: pd.Series(labels, dtype="category")),
    ],
)
def test_containers_are_kept(make_X, make_y):
    X, y = make_X(TEXTS), make_y(LABELS)
    X_new, y_new = undersample_negatives(X, y, random_state=3)
    expected, labels = undersample_negatives(TEXTS, LABELS, random_state=3)
    assert type(X_new) is type(X)
    assert type(y_new) is type(y)
    assert list(y_new) == labels
    index = [TEXTS.index(text) for text in expected]
    if isinstance(X, pd.DataFrame):
        pd.testing.assert_frame_equal(X_new, X.iloc[index])
    elif isinstance(X, pd.Series):
        pd.testing.assert_series_equal(X_new, X.iloc[index])
    elif isinstance(X, np.ndarray):
        np.testing.assert_array_equal(X_new, X[index])
    else:
        assert list(X_new) == expected


def test_result_does_not_share_memory():
    X, y = np.array(TEXTS, dtype=object), np.array(LABELS)
    X_new, y_new = undersample_negatives(X, y, random_state=0)
    X_new[:], y_new[:] = "changed", 7
    assert X.tolist() == TEXTS
    assert y.tolist() == LABELS


@pytest.mark.parametrize(
    "labels, pos_label, kept",
    [
        (["yes", "no", "no", "no"], None, ["no", "yes"]),
        (["yes", "no", "no", "no"], "yes", ["no", "yes"]),
        ([0, 1, 1, 1], 0, [0, 1]),
        (["b", "b", "a", "a", "c"], "c", ["c", "a or b"]),
        ([False, True, False, False], None, [False, True]),
    ],
)
def test_positive_label(labels, pos_label, kept):
    _, y = undersample_negatives(list(labels), labels, pos_label=pos_label, random_state=0)
    y = ["a or b" if label in ("a", "b") and "c" in labels else label for label in y]
    assert sorted(y, key=str) == sorted(kept, key=str)


@pytest.mark.parametrize(
    "make_state",
    [lambda: 7, lambda: np.int64(7), lambda: np.random.RandomState(7), np.random.default_rng],
)
def test_random_state(make_state):
    is_seeded = make_state is not np.random.default_rng
    texts, labels = list(range(400)), [1] * 50 + [0] * 350
    state = make_state()
    first = undersample_negatives(texts, labels, random_state=state)
    assert (undersample_negatives(texts, labels, random_state=make_state()) == first) is is_seeded
    is_int = isinstance(state, int | np.integer)
    assert (undersample_negatives(texts, labels, random_state=state) == first) is is_int
    assert undersample_negatives(texts, labels) != undersample_negatives(texts, labels)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"ratio": 4}, ValueError, "asks for 12 negatives, 4 for each of the 3 positives.* are 9"),
        ({"ratio": 1e308}, ValueError, "there are 9"),
        ({"ratio": 0.1}, ValueError, "asks for 0.3 negatives"),
        ({"ratio": 0}, ValueError, "'ratio' parameter .* in the range \\(0, inf\\). Got 0 inst"),
        ({"ratio": True}, ValueError, "'ratio' parameter"),
        ({"ratio": float("nan")}, ValueError, "'ratio' parameter"),
        ({"random_state": -1}, ValueError, "'random_state' parameter of undersample_negatives"),
        ({"random_state": "0"}, ValueError, "must be an int >= 0.* Got '0' instead"),
        ({"random_state": True}, ValueError, "Got True instead"),
        ({"pos_label": 2}, ValueError, "pos_label must be a label of y, one of 0, 1; got 2"),
        ({"pos_label": [1]}, ValueError, r"pos_label must be a label of y.*got \[1\]"),
        ({"y": [0, 1, 2] * 4}, ValueError, "exactly two labels.* y has 3: 0, 1, 2. Pass pos_la"),
        ({"y": [1] * 12}, ValueError, "exactly two labels.* y has 1: 1."),
        ({"y": list(range(12))}, ValueError, r"y has 12: 0, 1, 10, 11, 2, \.\.\. \(12 in all\)\."),
        ({"y": [1] * 12, "pos_label": 1}, ValueError, "12 positives; there are 0"),
        ({"y": [0, "a"] * 6}, ValueError, "'a', 0 cannot be ordered. Pass pos_label"),
        ({"y": LABELS[:-1]}, ValueError, "same number of rows; got 12 and 11"),
        ({"y": [*LABELS[:5], None, *LABELS[6:]]}, ValueError, "row 5 of y is None"),
        ({"y": [*LABELS[:5], float("nan"), *LABELS[6:]]}, ValueError, "row 5 of y is nan"),
        ({"y": [[0, 1]] * 12}, ValueError, r"row 0 of y is \[0, 1\] of type list"),
        ({"y": np.zeros((12, 2))}, TypeError, r"one dimension.*\(12, 2\)"),
        ({"y": "010101010101"}, TypeError, "y must be a list, tuple, Series or array"),
        ({"X": "text"}, TypeError, "X must be a list.* got 'text' of type str"),
        ({"X": iter(TEXTS)}, TypeError, "X must be a list"),
        ({"X": np.zeros((12, 2, 2))}, TypeError, r"shape \(12, 2, 2\)"),
    ],
)
def test_errors(arguments, error, message):
    arguments = {"X": TEXTS, "y": LABELS, **arguments}
    with pytest.raises(error, match=message):
        undersample_negatives(arguments.pop("X"), arguments.pop("y"), **arguments)
