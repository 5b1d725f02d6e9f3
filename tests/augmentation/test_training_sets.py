import pickle
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import skdice.augmentation
from skdice.augmentation import TrainingSets, make_training_sets

from .toy import GAZETTEER, FakeTagger, find, find_all, make_pairs

NAMES = ["original", "+positive", "+negative", "-negative", "+positive&negative"]
X, Y, MENTIONS = make_pairs()
TEXTS = [f"Bo saw {city} in {year}" for year in range(1900, 1904) for city in GAZETTEER["LOC"]]
TEXT_LABELS = ["yes" if i % 4 == 0 else "no" for i in range(len(TEXTS))]


def make(X=X, y=Y, **options):
    options = {"gazetteer": GAZETTEER, "random_state": 0, **options}
    if "tagger" not in options:
        options.setdefault("mentions", MENTIONS)
    return make_training_sets(X, y, **options)


def make_texts(**options):
    return make(TEXTS, TEXT_LABELS, mentions=find_all(TEXTS), **options)


@pytest.mark.parametrize("extra_negatives, n_both", [(0.25, 14 + 4), (0, 14), (0.4, 14 + 6)])
def test_report(extra_negatives, n_both):
    report = make(*make_pairs(6, 14)[:2], extra_negatives=extra_negatives).report()
    assert report.index.tolist() == NAMES
    expected = {
        "n_rows": [20, 28, 28, 12, 2 * n_both],
        "n_positive": [6, 14, 6, 6, n_both],
        "n_negative": [14, 14, 22, 6, n_both],
        "positive_share": [0.3, 0.5, 6 / 28, 0.5, 0.5],
        "n_added": [0, 8, 8, 0, 2 * n_both - 20],
        "n_removed": [0, 0, 0, 8, 0],
    }
    pd.testing.assert_frame_equal(
        report, pd.DataFrame(expected, index=pd.Index(NAMES, name="set")), check_index_type=False
    )


@pytest.mark.parametrize("build", [make, make_texts])
def test_sets(build):
    sets = build(random_state=3)
    rows, labels = sets["original"]
    for name, (X_new, y_new) in sets.items():
        assert len(X_new) == len(y_new) == len(set(X_new))
        if name == "-negative":
            index = [rows.index(row) for row in X_new]
            assert index == sorted(index)
            assert [labels[i] for i in index] == y_new
            continue
        assert X_new[: len(rows)] == rows
        assert y_new[: len(rows)] == labels
        assert not set(X_new[len(rows) :]) & set(rows)
    added = {name: Counter(sets[name][1][len(rows) :]) for name in NAMES}
    low, high = min(labels), max(labels)
    assert set(added["+positive"]) == {high}
    assert set(added["+negative"]) == {low}
    assert set(added["+positive&negative"]) == {low, high}


def test_new_pairs_keep_their_meaning():
    """Positives stay about one city and keep the person; some negatives get another person."""
    sets = make(extra_negatives=0.4)
    for name in ("+positive", "+positive&negative"):
        X_new, y_new = sets[name]
        new = [row for row, label in zip(X_new[20:], y_new[20:]) if label == 1]
        assert new
        for first, second in new:
            assert f" {first.split()[1]} " in second
            year = int(second.split()[-1].strip("?"))
            assert GAZETTEER["PER"][(year - 1900) % 4] in second
    people = []
    for pair in sets["+negative"][0][20:]:
        (person,) = [text[e.start : e.end] for text in pair for e in find(text) if e.label == "PER"]
        people.append((person, pair))
    years = [int("".join(c for c in pair[0] if c.isdigit())) % 100 for _, pair in people]
    assert all(person != GAZETTEER["PER"][i % 4] for (person, _), i in zip(people, years))


def test_other_labels_are_negatives_and_keep_their_label():
    labels = [["a", "c"][i % 2] if i % 4 else "b" for i in range(len(TEXTS))]
    sets = make(TEXTS, labels, mentions=find_all(TEXTS), pos_label="b", extra_negatives=0.5)
    assert sets.report()["n_positive"].tolist() == [6, 18, 6, 6, 27]
    new_texts, new_labels = (part[24:] for part in sets["+negative"])
    assert set(new_labels) == {"a", "c"}
    years_and_labels = {(text.split()[-1], label) for text, label in zip(TEXTS, labels)}
    assert {(t.split()[-1], label) for t, label in zip(new_texts, new_labels)} <= years_and_labels


def test_pos_label_can_be_the_smaller_one():
    labels = [1 - label for label in Y]
    sets = make(y=labels, pos_label=0)
    assert sets["+positive"] == (make()["+positive"][0], [1 - i for i in make()["+positive"][1]])


def test_mapping():
    sets = make()
    assert isinstance(sets, TrainingSets)
    assert list(sets) == list(sets.keys()) == NAMES
    assert len(sets) == 5
    assert "+positive" in sets
    assert "positive" not in sets
    assert repr(sets) == f"TrainingSets({', '.join(map(repr, NAMES))})"
    assert sets["+positive"] is sets["+positive"]
    assert sets.get("positive") is None
    with pytest.raises(
        KeyError, match=r"'positive'; the training sets are 'original', '.positive'"
    ):
        sets["positive"]
    copy = pickle.loads(pickle.dumps(sets))
    assert copy["+negative"] == sets["+negative"]


def test_a_set_does_not_depend_on_the_others():
    everything = dict(make().items())
    assert all(make()[name] == everything[name] for name in NAMES)
    backwards = make()
    assert {name: backwards[name] for name in reversed(NAMES)} == everything


@pytest.mark.parametrize(
    "make_state",
    [lambda: 7, lambda: np.random.RandomState(7), lambda: np.random.default_rng(7)],
)
def test_random_state(make_state):
    state = make_state()
    first = dict(make(random_state=state).items())
    assert dict(make(random_state=make_state()).items()) == first
    assert (dict(make(random_state=state).items()) == first) is isinstance(state, int)
    others = make(random_state=8), make(random_state=None), make(random_state=None)
    for name in NAMES[1:]:
        assert len({repr(sets[name]) for sets in (first, *others)}) == 4


def test_tagger():
    tagger = FakeTagger()
    sets = make(tagger=tagger)
    assert len(tagger.calls) == 1
    assert dict(sets.items()) == dict(make().items())


def test_inputs_are_untouched():
    rows, labels = list(X), list(Y)
    sets = make(rows, labels)
    expected = make()["+positive"]
    rows[:] = [("gone", "gone")] * 20
    labels[:] = [0] * 20
    assert sets["+positive"] == expected
    sets["original"][0].clear()
    assert sets["-negative"] == make()["-negative"]
    array = np.array(X, dtype=object)
    make(array)["original"][0][:] = "changed"
    assert list(map(tuple, array)) == X


@pytest.mark.parametrize(
    "make_X",
    [
        tuple,
        lambda rows: np.array(rows, dtype=object),
        lambda rows: pd.Series(rows, index=range(100, 120), name="pairs"),
        lambda rows: pd.DataFrame(rows, columns=["q1", "q2"], index=range(100, 120)),
    ],
)
@pytest.mark.parametrize("make_y", [tuple, np.array, lambda y: pd.Series(y, index=range(100, 120))])
def test_containers(make_X, make_y):
    rows, labels = make_X(X), make_y(Y)
    sets, expected = make(rows, labels), make()
    for name in NAMES:
        X_new, y_new = sets[name]
        assert type(X_new) is type(rows)
        assert type(y_new) is type(labels)
        assert list(y_new) == expected[name][1]
        values = X_new.values if isinstance(X_new, pd.DataFrame) else X_new
        assert list(map(tuple, values)) == expected[name][0]
        if isinstance(X_new, pd.Series | pd.DataFrame):
            is_new = len(X_new) > 20
            kept = [100 + X.index(row) for row in expected[name][0]] if not is_new else None
            assert X_new.index.tolist() == (list(range(len(X_new))) if is_new else kept)
            assert X_new.index.is_unique
        if isinstance(y_new, pd.Series) and isinstance(X_new, pd.Series | pd.DataFrame):
            assert y_new.index.equals(X_new.index)


def test_a_set_that_cannot_be_built_leaves_the_others():
    sets = make(gazetteer={"PER": GAZETTEER["PER"]})
    assert len(sets["-negative"][0]) == 12
    assert len(sets["+negative"][0]) == 28
    message = "set '.positive' cannot be built. Cannot make 8 new positive rows, only 0 .* of the 6"
    with pytest.raises(ValueError, match=message):
        sets["+positive"]
    with pytest.raises(ValueError, match=r"set '.positive' cannot be built"):
        sets.report()
    with pytest.raises(ValueError, match=r"set '.negative' .* 8 new negative rows, only 0"):
        make(gazetteer={})["+negative"]


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"mentions": None}, ValueError, "exactly one of mentions and tagger; got neither"),
        ({"mentions": MENTIONS, "tagger": FakeTagger()}, ValueError, "got both"),
        ({"tagger": object()}, TypeError, "tagger must have a method predict_entities"),
        ({"y": [1 - i for i in Y]}, ValueError, "14 rows with the positive label 1 and 6 others"),
        ({"y": [0, 1] * 10}, ValueError, "must be the minority; y has 10 rows .* and 10 others"),
        ({"pos_label": 0}, ValueError, "14 rows with the positive label 0 and 6 others"),
        ({"pos_label": 5}, ValueError, "pos_label must be a label of y"),
        ({"y": [0, 1, 2, 0] * 5}, ValueError, "pos_label=None .* y has 3: 0, 1, 2"),
        ({"y": Y[1:]}, ValueError, "got 20 and 19"),
        ({"extra_negatives": -0.1}, ValueError, "'extra_negatives' parameter of make_training_se"),
        ({"extra_negatives": float("nan")}, ValueError, "Got nan instead"),
        ({"extra_negatives": float("inf")}, ValueError, "Got inf instead"),
        ({"extra_negatives": None}, ValueError, "Got None instead"),
        ({"gazetteer": []}, TypeError, "gazetteer must map"),
        ({"mentions": MENTIONS[1:]}, ValueError, "got 19 for 20 rows"),
        ({"mentions": [([], [(0, 99, "A")]), *MENTIONS[1:]]}, ValueError, "row 0 has .0, 99, 'A'."),
        ({"random_state": 1.5}, ValueError, "'random_state' parameter of make_training_sets"),
        ({"X": [*X[:3], "text", *X[4:]]}, ValueError, "row 3 is a text"),
        ({"X": [*X[:3], ("a", 1), *X[4:]]}, ValueError, "row 3 of X"),
    ],
)
def test_errors(options, error, message):
    with pytest.raises(error, match=message):
        make(**options)


def test_no_import_of_the_estimators():
    files = sorted(Path(skdice.augmentation.__file__).parent.glob("*.py"))
    assert len(files) > 5
    for file in files:
        assert not re.search("import.*Tagger|estimators", file.read_text(encoding="utf-8"))
