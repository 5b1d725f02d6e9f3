import numpy as np
import pandas as pd
import pytest

from skdice.datasets import read_conll, read_squad
from skdice.inspection import imbalance_report

from ..corpora import published

TAGS = [["O", "O", "B-LOC"], [], ["O", "B-PER", "I-PER", "O", "B-PER"]]


def as_lists(report):
    rows = report.astype(object).where(report.notna(), None)
    return {name: rows.iloc[i].tolist() for i, name in enumerate(report.index)}


@pytest.mark.parametrize("y, expected", [
    (TAGS, {"all": [8, 4, 4, 1.0], "O": [4, 4, 4, 1.0], "B-PER": [2, 6, 2, 3.0],
            "B-LOC": [1, 7, 1, 7.0], "I-PER": [1, 7, 1, 7.0]}),
    # O is not the largest class of chunk tags; an O among part-of-speech tags; nothing but O.
    ([["B-PER", "B-PER", "O"]],
     {"all": [3, 1, 2, 0.5], "B-PER": [2, 1, 2, 0.5], "O": [1, 2, 1, 2.0]}),
    ([["NN", "NN"], ["NN", "O"]],
     {"all": [4, None, None, 3.0], "NN": [3, 1, 3, 1 / 3], "O": [1, 3, 1, 3.0]}),
    ([["O", "O"]], {"all": [2, 2, 0, np.inf], "O": [2, 0, 2, 0.0]}),
    (["ham", "spam", "ham", "ham"],
     {"all": [4, 3, 1, 3.0], "ham": [3, 1, 3, 1 / 3], "spam": [1, 3, 1, 3.0]}),
    (np.array([[1, 0, 0], [1, 1, 0]]),
     {"all": [6, 3, 3, 1.0], 0: [2, 0, 2, 0.0], 1: [1, 1, 1, 1.0], 2: [0, 2, 0, np.inf]}),
    (pd.DataFrame({"red": [True, False], "blue": [True, True]}),
     {"all": [4, 1, 3, 1 / 3], "blue": [2, 0, 2, 0.0], "red": [1, 1, 1, 1.0]}),
    # Ties in the order of numbers.
    ([10, 9, 9, 10, 1.5], {"all": [5, None, None, 2.0], 9: [2, 3, 2, 1.5], 10: [2, 3, 2, 1.5],
                           1.5: [1, 4, 1, 4.0]}),
])  # fmt: skip
def test_values(y, expected):
    report = imbalance_report(y)
    assert as_lists(report) == expected
    assert list(report.index) == list(expected)
    assert list(report.columns) == ["count", "negatives", "positives", "ratio"]
    assert report.index.name == "class"
    assert [str(dtype) for dtype in report.dtypes] == ["int64", "Int64", "Int64", "float64"]


def test_containers():
    y = [["O", "B-X"], ["O", "O"]]  # Tag sequences of one length are no indicators.
    labels = ["b", "a", "a"]
    matrix = np.array([[0, 1], [1, 1], [0, 1]])
    for same, plain in (
        (np.array(y), y),
        (np.array(y, dtype=object), y),
        (pd.Series(labels), labels),
        (np.array([2, 1, 1]), [2, 1, 1]),
        (matrix.astype(object), matrix),
        (matrix.tolist(), matrix),
        ([*map(tuple, matrix)], matrix),
    ):
        pd.testing.assert_frame_equal(imbalance_report(same), imbalance_report(plain))


answers = [{"text": ["Oslo"], "answer_start": [3]}]


@pytest.mark.parametrize("y, error, message", [
    ([], ValueError, "y is empty"), (np.empty((3, 0)), ValueError, r"shape \(3, 0\)"),
    ([[], []], ValueError, "every one is an empty sequence"), ("B-PER", TypeError, "'B-PER'"),
    (answers, ValueError, "answers.* got None"),
    (["spam", *answers], ValueError, "y, row 1: got {'answer"),
    ([["O"], "O"], TypeError, "y, row 1: got 'O'"),
    (["a", None], ValueError, "y, row 1: got None"),
    ([["O"], ["O", None]], ValueError, "y, row 1, position 1: got None"),
    ([["O"], [(0, 1, "PER")]], ValueError, "row 1, position 0"),
    (np.array([[0, 1], [2, 1]]), ValueError, "row 1, column 0 is .*2"),
])  # fmt: skip
def test_errors(y, error, message):
    with pytest.raises(error, match=message):
        imbalance_report(y)


QUESTIONS = [
    {"question": "Where is Oslo?", "context": "Oslo is in  Norway,\nin the south."},
    {"question": "Why?", "context": "Oslo is old."},
]
ANSWERS = [
    {"text": ["Norway", "in the south"], "answer_start": [12, 20]},
    {"text": [], "answer_start": []},
]
PAIRS = [(row["question"], row["context"]) for row in QUESTIONS]
EXPECTED = {
    "all": [10, 8, 2, 4.0], "other": [8, 2, 8, 0.25], "end": [1, 9, 1, 9.0],
    "start": [1, 9, 1, 9.0],
}  # fmt: skip


@pytest.mark.parametrize("X", [QUESTIONS, pd.DataFrame(QUESTIONS, index=[7, 7]), PAIRS])
def test_answers(X):
    assert as_lists(imbalance_report(ANSWERS, X)) == EXPECTED
    answers = [{"text": ["x"]}, {"text": []}, {"text": [""]}]  # The last one is none either.
    report = imbalance_report(answers, [("?", "  one,two .\t\u00a0three\n")] * 3)
    assert as_lists(report)["all"][:3] == [9, 7, 2]
    for y, X_bad, message in (
        (ANSWERS, QUESTIONS[:1], "got 1 rows of X and 2 of y"),
        (ANSWERS, [("a", "b"), ("a", "b", "c")], "row 1"),
        ([ANSWERS[0], {"a": 1}], QUESTIONS, r"row 1 of y .*\['a'\]"),
    ):
        with pytest.raises(ValueError, match=message):
            imbalance_report(y, X_bad)


def test_str_are_answers_if_the_questions_have_names():
    y = ["Norway", ""]
    assert as_lists(imbalance_report(y, QUESTIONS)) == EXPECTED
    assert as_lists(imbalance_report(y, pd.DataFrame(QUESTIONS))) == EXPECTED
    for X in (PAIRS, pd.DataFrame(PAIRS), np.array(PAIRS), ["a text", "another"]):
        pd.testing.assert_frame_equal(imbalance_report(y, X), imbalance_report(y))


@pytest.mark.slow
@pytest.mark.parametrize("name, negatives, positives, ratio", [
    ("ner/conll2003_en/train.conll", 169_578, 34_043, 4.98),
    ("ner/weibo_zh/train.conll", 68_827, 4_951, 13.90),
    ("pos/ritter_tweets/all.txt", None, None, 1931),
    ("mrc/squad_v1.1/dev.json", 1_289_061, 21_140, 60.98),
    ("mrc/squad_v2.0/dev.json", 1_506_786, 11_856, 127.09),
    ("mrc/quoref/dev.json", 797_981, 4_836, 165.01),
])  # fmt: skip
def test_published_counts(name, negatives, positives, ratio):
    has_questions = name.startswith("mrc")
    X, y = (read_squad if has_questions else read_conll)(published(name))
    count, *sides, got = as_lists(imbalance_report(y, X))["all"]
    assert count == (negatives + positives if has_questions else sum(map(len, y)))
    assert sides == [negatives, positives]
    assert round(got, 2) == ratio
