from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.augmentation import augment

from .toy import GAZETTEER, find_all, make_pairs

X, Y, MENTIONS = make_pairs()
TEXTS = ["Oslo is wet", "Bo left", "Kiel is wet", "nothing", "Carla left", "Lund is wet"]
TEXT_LABELS = [0, 1, 0, 0, 1, 1]
TEXT_MENTIONS = find_all(TEXTS)


def augment_pairs(n_new, label, **options):
    options = {"mentions": MENTIONS, "gazetteer": GAZETTEER, "random_state": 0, **options}
    return augment(options.pop("X", X), options.pop("y", Y), n_new, label=label, **options)


def augment_texts(n_new, label, **options):
    options = {"mentions": TEXT_MENTIONS, "gazetteer": GAZETTEER, "random_state": 0, **options}
    X, y = options.pop("X", TEXTS), options.pop("y", TEXT_LABELS)
    return augment(X, y, n_new, label=label, **options)


@pytest.mark.parametrize("n_new", [0, 1, 7, 20])
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("shared_only", ["auto", True, False])
def test_new_rows_are_new(n_new, label, shared_only):
    X_new, y_new = augment_pairs(n_new, label, shared_only=shared_only)
    assert y_new == [label] * n_new
    assert len(set(X_new)) == n_new
    assert not set(X_new) & set(X)


def test_inputs_are_untouched():
    rows, labels = list(X), list(Y)
    mentions = [tuple(map(list, row)) for row in MENTIONS]
    augment_pairs(15, 1, X=rows, y=labels, mentions=mentions)
    assert (rows, labels, mentions) == (X, Y, MENTIONS)


def get_template(pair):
    """Return the number of the toy pair that a new one was made of: its year tells it."""
    return int(pair[0].split()[-1].strip("?")) % 100


def test_templates_are_used_evenly():
    swappable = {i for i in range(len(X)) if Y[i] == 0 and i % 3 != 2}
    for n_new in (5, len(swappable), 2 * len(swappable) + 3):
        uses = Counter(get_template(pair) for pair in augment_pairs(n_new, 0, shared_only=True)[0])
        assert set(uses) <= swappable
        least = min(uses[i] for i in swappable)
        assert least == n_new // len(swappable)
        assert max(uses.values()) - least <= 1


def test_templates_are_drawn_at_random():
    used = Counter()
    for seed in range(200):
        used.update(get_template(pair) for pair in augment_pairs(3, 0, random_state=seed)[0])
    assert min(used.values()) > 0.5 * max(used.values())


@pytest.mark.parametrize("label, is_shared", [(1, True), (0, False)])
def test_auto_is_shared_only_for_the_larger_label(label, is_shared):
    automatic = augment_pairs(15, label)
    assert automatic == augment_pairs(15, label, shared_only=is_shared)
    assert automatic != augment_pairs(15, label, shared_only=not is_shared)


def test_auto_needs_no_two_labels_with_texts():
    y = ["a", "b", "c", "a", "b", "c"]
    X_new, y_new = augment_texts(3, "c", y=y)
    assert y_new == ["c"] * 3
    assert all(text.endswith("is wet") for text in X_new)


def test_shared_mentions_stay_shared():
    for first, second in augment_pairs(20, 1)[0]:
        city = first.split()[1]
        assert city in GAZETTEER["LOC"]
        assert f"in {city} in" in second


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.sampled_from(["a", "b", "A", "c", "d"]), unique=True),
    st.lists(
        st.lists(st.sampled_from(["a", "b", "e", "x"]), min_size=1, max_size=3).map("".join),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 3),
)
def test_all_rows_that_can_be_made_are_made(entries, texts, seed):
    """Letters are mentions, except x: an oracle lists what is possible."""
    mentions = [[(i, i + 1, "L") for i, c in enumerate(text) if c != "x"] for text in texts]
    possible = set()
    for text in texts:
        letters = sorted(set(text) - {"x"})
        options = [[e for e in entries if e.lower() != letter] for letter in letters]
        movable = [letter for letter, found in zip(letters, options) if found]
        kept = set(letters) - set(movable)
        choices = [dict(zip(movable, new)) for new in product(*filter(None, options))]

        def n_different(new, others=frozenset()):
            return len({e.lower() for e in new.values()} | others)

        strict = [c for c in choices if n_different(c, kept) == len(letters)]
        loose = [c for c in choices if n_different(c) == len(movable)]
        best = max((n_different(c) for c in choices), default=0)
        if not strict and not loose and best > 1:
            return  # Which of several second-best choices are made is left open.
        for new in strict or loose or choices:
            possible.add("".join(new.get(c, c) for c in text))
    possible -= set(texts)
    arguments = {"label": 0, "mentions": mentions, "gazetteer": {"L": entries}}
    made, _ = augment(texts, [0] * len(texts), len(possible), random_state=seed, **arguments)
    assert set(made) == possible
    with pytest.raises(ValueError, match=f"only {len(possible)} distinct ones"):
        augment(texts, [0] * len(texts), len(possible) + 1, random_state=seed, **arguments)


@pytest.mark.parametrize(
    "n_new, options, message",
    [
        (
            100,
            {"label": 1},
            "Cannot make 100 new rows with the label 1, only 20 distinct ones: of the 6 rows with "
            "the label 1, 4 have a mention in both texts that the gazetteer can replace",
        ),
        (1, {"label": 0, "gazetteer": {}}, "only 0 distinct ones: of the 14 .* 0 have a mention"),
        (
            4,
            {"label": 1, "gazetteer": {"LOC": ["Rome"]}},
            "only 3 distinct ones: of the 6 .* 3 have",
        ),
    ],
)
def test_too_many_rows(n_new, options, message):
    with pytest.raises(ValueError, match=message):
        augment_pairs(n_new, **options)


def make_object_pairs(rows):
    array = np.empty(len(rows), dtype=object)
    array[:] = rows
    return array


@pytest.mark.parametrize(
    "make_X",
    [
        list,
        tuple,
        make_object_pairs,
        lambda rows: pd.Series(rows, index=range(100, 120), name="pairs"),
        lambda rows: np.array(rows, dtype=object),
        np.array,
        lambda rows: pd.DataFrame(rows, columns=["q1", "q2"], index=range(100, 120)),
        lambda rows: pd.DataFrame(rows, columns=["q", "q"], dtype=object),
        lambda rows: pd.DataFrame(rows, columns=["q1", "q2"]).astype("category"),
    ],
)
@pytest.mark.parametrize(
    "make_y", [list, tuple, np.array, lambda y: pd.Series(y, index=range(100, 120), name="y")]
)
@pytest.mark.parametrize("n_new", [0, 9])
def test_containers(make_X, make_y, n_new):
    rows, labels = make_X(X), make_y(Y)
    X_new, y_new = augment_pairs(n_new, 1, X=rows, y=labels)
    expected, _ = augment_pairs(n_new, 1)
    assert type(X_new) is type(rows)
    assert type(y_new) is type(labels)
    assert list(y_new) == [1] * n_new
    if getattr(rows, "ndim", 1) == 2:
        assert X_new.shape == (n_new, 2)
        assert list(map(tuple, np.asarray(X_new, dtype=object).tolist())) == expected
    else:
        assert list(X_new) == expected
    if isinstance(rows, np.ndarray):
        assert X_new.dtype.kind == rows.dtype.kind
    if isinstance(rows, pd.DataFrame):
        assert X_new.columns.equals(rows.columns)
        assert X_new.index.tolist() == list(range(n_new))
    if hasattr(labels, "dtype"):
        assert y_new.dtype == labels.dtype
    if isinstance(labels, pd.Series):
        assert y_new.index.tolist() == list(range(n_new))
        assert y_new.name == "y"


def test_longer_texts_fit_into_arrays_of_str():
    mentions, gazetteer = [[(0, 1, "L")], []], {"L": ["a much longer name"]}
    X_new, y_new = augment(
        np.array(["x", "y"]), np.array(["a", "b"]), 1, label="a", mentions=mentions,
        gazetteer=gazetteer,
    )  # fmt: skip
    assert X_new.tolist() == ["a much longer name"]
    assert y_new.tolist() == ["a"]


@pytest.mark.parametrize("make_state", [lambda: 7, lambda: np.random.RandomState(7)])
def test_random_state(make_state):
    state = make_state()
    first = augment_pairs(9, 1, random_state=state)
    assert augment_pairs(9, 1, random_state=make_state()) == first
    assert (augment_pairs(9, 1, random_state=state) == first) is isinstance(state, int)
    assert augment_pairs(9, 1, random_state=8) != first
    assert augment_pairs(9, 1, random_state=None) != augment_pairs(9, 1, random_state=None)


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"n_new": -1}, ValueError, r"'n_new' parameter of augment must be an int in .*\[0, inf"),
        ({"n_new": 2.0}, ValueError, "Got 2.0 instead"),
        ({"n_new": True}, ValueError, "Got True instead"),
        ({"label": 2}, ValueError, "label must be a label of y, one of 0, 1; got 2"),
        ({"label": None}, ValueError, "got None"),
        ({"label": "1"}, ValueError, "got '1'"),
        ({"shared_only": "yes"}, ValueError, "of {True, False, 'auto'}. Got 'yes'"),
        ({"shared_only": 1}, ValueError, "'shared_only' parameter of augment .* Got 1"),
        ({"y": [0, 1, 2, 0] * 5}, ValueError, "shared_only='auto' .* y has 3: 0, 1, 2. Pass sha"),
        ({"y": [1] * 20}, ValueError, "shared_only='auto' .* y has 1: 1."),
        ({"y": [1, "a"] * 10}, ValueError, "'a', 1 cannot be ordered. Pass shared_only="),
        ({"y": Y[:-1]}, ValueError, "got 20 and 19"),
        ({"mentions": MENTIONS[:-1]}, ValueError, "got 19 for 20 rows"),
        ({"mentions": None}, TypeError, "mentions must be a list.* got None"),
        ({"mentions": [*MENTIONS[:4], [], *MENTIONS[5:]]}, ValueError, "mentions of row 4 must be"),
        (
            {"mentions": [*MENTIONS[:4], ([(0, 99, "LOC")], []), *MENTIONS[5:]]},
            ValueError,
            "row 4 has .0, 99, 'LOC'.",
        ),
        (
            {"mentions": [*MENTIONS[:4], ([(0, 2, "A"), (1, 3, "A")], []), *MENTIONS[5:]]},
            ValueError,
            "mentions of row 4 must not overlap",
        ),
        ({"gazetteer": None}, TypeError, "gazetteer must map .* got None"),
        ({"random_state": "a"}, ValueError, "'random_state' parameter of augment"),
        ({"X": X[:-1]}, ValueError, "got 19 and 20"),
        ({"X": [*X[:-1], None]}, ValueError, "row 19 of X is None"),
        ({"X": [], "y": [], "mentions": []}, ValueError, "label must be a label of y"),
    ],
)
def test_errors(options, error, message):
    options = {"n_new": 1, "label": 1, **options}
    with pytest.raises(error, match=message):
        augment_pairs(options.pop("n_new"), options.pop("label"), **options)


def test_shared_only_needs_pairs():
    with pytest.raises(ValueError, match="shared_only=True needs pairs"):
        augment_texts(1, 1, shared_only=True)
