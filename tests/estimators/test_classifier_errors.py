"""Bad input of the classifiers: what was got, what is allowed, and which row."""

import numpy as np
import pandas as pd
import pytest

from skdice import DicePairClassifier, DiceTextClassifier

from ..corpora import easy_pairs, easy_texts

PAIRS = [("a", "b"), ("c", "d"), ("e", "f")]
TEXTS = ["a", "b", "c"]
Y = [0, 1, 0]
NAN = float("nan")


def table(*columns):
    return pd.DataFrame(dict(zip(("left", "right", "more"), columns)))


BAD_PAIRS = {
    "wrong length": ([("a", "b"), ("c", "d", "e"), ("f", "g")], ["row 1", "length 3", "pair"]),
    "single text": (["ab", "cd", "ef"], ["row 0", "str of length 2", "pair"]),
    "two lists": ((TEXTS, TEXTS), ["list(zip(first, second))"]),
    "three columns": (table(TEXTS, TEXTS, TEXTS), ["3 columns", "['left', 'right', 'more']"]),
    "three columns of an array": (np.array([TEXTS] * 3), ["3 columns", "two columns"]),
    "None": ([("a", "b"), ("c", None), ("d", "e")], ["second text of row 1", "None"]),
    "NaN": (
        table(["a", NAN, "c"], ["a", "b", NAN]),
        ["first text of row 1", "second text of row 2"],
    ),
    "number": ([("a", "b"), (7, "d"), ("d", "e")], ["first text of row 1", "7 of type int"]),
    "bytes": ([("a", "b"), (b"c", "d"), ("d", "e")], ["first text of row 1", "bytes"]),
    "a row is None": ([("a", "b"), None, ("d", "e")], ["row 1", "None"]),
}
BAD_TEXTS = {
    "None": (["a", None, "c"], ["row 1", "None"]),
    "NaN": (pd.Series(["a", NAN, None]), ["row 1", "row 2"]),
    "NA": (pd.Series(["a", pd.NA, "c"], dtype="string"), ["row 1"]),
    "words": ([["a"], ["b"], ["c"]], ["row 0", "list"]),
    "two columns": (table(TEXTS, TEXTS), ["2 columns", "one column"]),
}
BAD_Y = {
    "None": (None, ["requires y", "None"]),
    "length": ([0, 1], ["3 rows of X and 2 of y"]),
    "one class": ([1, 1, 1], ["at least two classes", "one class, 1"]),
    "missing": ([0, None, 1], ["row 1", "missing"]),
    "NaN": ([0, NAN, NAN], ["rows 1, 2", "missing"]),
    "NaN of str": (pd.Series(["a", "b", NAN]), ["row 2", "missing"]),
    "mixed": (["a", "b", 1], ["one type", "row 0", "'a'", "row 2", "1"]),
    "bool and int": ([True, False, 1], ["one type", "row 2"]),
    "continuous": ([0, 0.5, 1], ["row 1", "0.5", "continuous"]),
    "infinite": ([0, float("inf"), 1], ["row 1", "inf"]),
    "dict": ([{}, {}, {}], ["row 0", "dict"]),
}
BAD_MATRICES = {
    "values": ([[0, 1], [1, 2], [0, 0]], ["row 1, column 1", "2", "MultiLabelBinarizer"]),
    "names": ([["a", "b"], ["b", "c"], ["c", "a"]], ["row 0, column 0", "MultiLabelBinarizer"]),
    "lists of labels": ([["a"], ["a", "b"], []], ["different lengths", "MultiLabelBinarizer"]),
    "one column": ([[0], [1], [0]], ["two columns or more", "per row"]),
    "no label": (np.zeros((3, 2), dtype=int), ["no 1 in y"]),
    "length": (np.eye(2, dtype=int), ["3 rows of X and 2 of y"]),
}


def check(parts, fit, kind=ValueError):
    with pytest.raises(kind) as error:
        fit()
    message = str(error.value)
    assert all(part in message for part in parts), message


@pytest.mark.parametrize("case", BAD_PAIRS)
def test_bad_pairs(tiny_bert, case):
    X, parts = BAD_PAIRS[case]
    check(parts, lambda: DicePairClassifier(tiny_bert).fit(X, Y))


@pytest.mark.parametrize("case", BAD_TEXTS)
def test_bad_texts(tiny_bert, case):
    X, parts = BAD_TEXTS[case]
    check(parts, lambda: DiceTextClassifier(tiny_bert).fit(X, Y))


@pytest.mark.parametrize("case", BAD_Y)
def test_bad_labels(tiny_bert, case):
    y, parts = BAD_Y[case]
    check(parts, lambda: DiceTextClassifier(tiny_bert).fit(TEXTS, y))
    check(parts, lambda: DicePairClassifier(tiny_bert).fit(PAIRS, y))


@pytest.mark.parametrize("case", BAD_MATRICES)
def test_bad_matrices(tiny_bert, case):
    Y, parts = BAD_MATRICES[case]
    check(parts, lambda: DiceTextClassifier(tiny_bert).fit(TEXTS, Y))


@pytest.mark.parametrize("X", ["text", {"a": 1}, 7, None])
def test_no_rows_at_all(tiny_bert, X):
    check(
        ["X must be a list, Series or object array"],
        lambda: DiceTextClassifier(tiny_bert).fit(X, Y),
        TypeError,
    )
    check(
        ["X must be a list, Series or object array"],
        lambda: DicePairClassifier(tiny_bert).fit(X, Y),
        TypeError,
    )


@pytest.mark.parametrize(
    "params, y, parts",
    [
        ({"pos_label": "spam"}, [0, 1, 0], ["'pos_label'", "0, 1", "'spam'"]),
        ({"pos_label": 2}, [0, 1, 0], ["'pos_label'", "0, 1", "Got 2"]),
        ({"pos_label": 1}, [0, 1, 2], ["'pos_label'", "more than two classes"]),
        ({"truncation": "first"}, Y, ["'truncation'", "'longest_first'", "'first'"]),
        ({"max_length": 3}, Y, ["'max_length'", "range [4, 64]"]),
        ({"class_weight": {7: 1.0}}, Y, ["class_weight", "7", "0, 1"]),
    ],
)
def test_bad_parameters_of_pairs(tiny_bert, params, y, parts):
    check(parts, lambda: DicePairClassifier(tiny_bert, **params).fit(PAIRS, y))


@pytest.mark.parametrize(
    "params, y, parts",
    [
        ({"truncation": "second"}, Y, ["'truncation'", "'longest_first', 'error'", "'second'"]),
        ({"pos_label": 1}, [[0, 1], [1, 0], [1, 1]], ["'pos_label'", "multi-label"]),
        ({"max_length": 2}, Y, ["'max_length'", "range [3, 64]"]),
    ],
)
def test_bad_parameters_of_texts(tiny_bert, params, y, parts):
    check(parts, lambda: DiceTextClassifier(tiny_bert, **params).fit(TEXTS, y))


def test_a_class_without_weight_is_absent(tiny_bert):
    fit = DiceTextClassifier(tiny_bert, max_epochs=1, verbose=0).fit
    check(["one class, 0"], lambda: fit(TEXTS, Y, sample_weight=[1, 0, 1]))
    fitted = fit([*TEXTS, "d"], [*Y, 5], sample_weight=[1, 1, 1, 0])
    assert fitted.classes_.tolist() == [0, 1]


LONG = [("the", "saw"), ("the saw in was by " * 20, "by " * 9), ("in " * 70, "by")]


class TestTruncation:
    def test_warning_counts_the_rows(self, tiny_bert):
        classifier = DicePairClassifier(tiny_bert, max_epochs=1, verbose=0)
        with pytest.warns(
            UserWarning, match="2 of 3 pairs are longer than max_length=64.*rows 1, 2"
        ):
            classifier.fit(LONG, Y)
        with pytest.warns(UserWarning, match="1 of 1 pairs"):
            classifier.predict(LONG[1:2])

    def test_no_warning_where_all_fit(self, tiny_bert, recwarn):
        X, y = easy_pairs(8)
        DicePairClassifier(tiny_bert, max_epochs=1, verbose=0).fit(X, y).predict(X)
        assert not [w for w in recwarn if "max_length" in str(w.message)]

    def test_error(self, tiny_bert):
        classifier = DicePairClassifier(tiny_bert, truncation="error", max_epochs=1, verbose=0)
        check(["Row 1", "61 are allowed", "2 rows"], lambda: classifier.fit(LONG, Y))
        classifier.fit(*easy_pairs(8))
        check(["Row 0", "61 are allowed"], lambda: classifier.predict(LONG[1:]))

    def test_second(self, tiny_bert):
        classifier = DicePairClassifier(tiny_bert, truncation="second", max_epochs=1, verbose=0)
        check(["first text of row 1", "100 pieces"], lambda: classifier.fit(LONG, Y))
        classifier.fit(*easy_pairs(8))
        with pytest.warns(UserWarning, match="1 of 2 pairs"):
            cut, short = classifier.decision_function(
                [("the saw", "by " * 80 + "oslo"), ("the saw", "by " * 59)]
            )
        assert cut == pytest.approx(short, abs=1e-5)

    def test_texts(self, tiny_bert):
        classifier = DiceTextClassifier(tiny_bert, max_length=8, max_epochs=1, verbose=0)
        X, y = easy_texts(8)
        with pytest.warns(UserWarning, match="1 of 9 texts are longer than max_length=8.*row 8"):
            classifier.fit([*X, "the " * 9], [*y, "place"])
