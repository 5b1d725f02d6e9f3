"""Bad input of the extractor: what was got, what is allowed, and which row."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from skdice import DiceSpanExtractor
from skdice.losses import CrossEntropyLoss, DiceLoss
from skdice.model_selection import tune_decision

QUESTIONS = ["city ?", "met ?", "city ?"]
CONTEXTS = ["anna in oslo", "the mary saw", "by rome to"]
X = list(zip(QUESTIONS, CONTEXTS))
Y = ["oslo", "mary", "rome"]
NAN = float("nan")
FAST = {"max_epochs": 1, "random_state": 0, "verbose": 0}


def table(questions=QUESTIONS, contexts=CONTEXTS):
    return pd.DataFrame({"question": questions, "context": contexts})


def dicts(**changed):
    """Rows as dicts, of which the second is changed."""
    rows = [{"question": question, "context": context} for question, context in X]
    rows[1].update(changed)
    return rows


def without(name):
    rows = dicts()
    del rows[1][name]
    return rows


def squad(text, start):
    return [*Y[:1], {"text": [text], "answer_start": [start]}, *Y[2:]]


BAD_X = {
    "no column question": (table().drop(columns="question"), ["'question'", "['context']"]),
    "no column context": (
        table().rename(columns={"context": "text"}),
        ["'context'", "['question', 'text']"],
    ),
    "column twice": (
        pd.DataFrame([["q", "q", "c"]] * 3, columns=["question", "question", "context"]),
        ["'question'", "['question', 'question', 'context']"],
    ),
    "question missing in a table": (table(["a", None, "c"]), ["question of row 1"]),
    "context missing in a table": (table(contexts=["a", "b", NAN]), ["context of row 2", "nan"]),
    "NA in a table": (
        pd.DataFrame({"question": ["a", pd.NA, "c"], "context": CONTEXTS}, dtype="string"),
        ["question of row 1"],
    ),
    "three columns of an array": (np.array([QUESTIONS] * 3), ["two columns", "got 3"]),
    "one column of an array": (np.array(QUESTIONS).reshape(-1, 1), ["two columns", "got 1"]),
    "dict without question": (without("question"), ["Row 1", "'question'", "['context']"]),
    "dict without context": (without("context"), ["Row 1", "'context'", "['question']"]),
    "question is None": (dicts(question=None), ["question of row 1", "str", "None"]),
    "context is None": (dicts(context=None), ["context of row 1", "str", "None"]),
    "context is a number": (dicts(context=7), ["context of row 1", "str", "7 of type int"]),
    "context is bytes": (dicts(context=b"a"), ["context of row 1", "str", "bytes"]),
    "question is a list": (dicts(question=["a"]), ["question of row 1", "str", "list"]),
    "question is empty": (dicts(question=""), ["question of row 1", "is empty", "''"]),
    "question is white space": (dicts(question=" \n"), ["question of row 1", "is empty"]),
    "context is empty": (dicts(context=""), ["context of row 1", "is empty", "''"]),
    "context is white space": (dicts(context="\u3000\t"), ["context of row 1", "is empty"]),
    "three in a row": ([X[0], ("a", "b", "c"), X[2]], ["row 1", "tuple of length 3", "pair"]),
    "a row is None": ([X[0], None, X[2]], ["row 1", "None", "dict"]),
    "texts": (QUESTIONS, ["row 0", "str of length 6", "pair"]),
}
BAD_Y = {
    "None": (None, ValueError, ["requires y", "None"]),
    "length": (Y[:2], ValueError, ["3 questions and 2 answers"]),
    "a row is None": (["oslo", None, "rome"], TypeError, ["row 1 of y", "None", "str"]),
    "a row is NaN": (pd.Series(["oslo", "mary", NAN]), TypeError, ["row 2 of y", "nan"]),
    "a row is a number": (["oslo", 7, "rome"], TypeError, ["row 1 of y", "7", "int"]),
    "a list of numbers": (["oslo", [7], "rome"], TypeError, ["row 1 of y", "[7]"]),
    "a dict without text": (
        ["oslo", {"answers": ["mary"]}, "rome"],
        ValueError,
        ["row 1 of y", "['answers']"],
    ),
    "the text is a str": (
        ["oslo", {"text": "mary", "answer_start": 4}, "rome"],
        TypeError,
        ["row 1 of y", "'mary'"],
    ),
    "more texts than starts": (
        ["oslo", {"text": ["mary", "saw"], "answer_start": [4]}, "rome"],
        ValueError,
        ["row 1 of y", "2 texts and 1 starts"],
    ),
    "start is a float": (
        squad("mary", 4.0),
        ValueError,
        ["row 1 of y", "int", "4.0 of type float"],
    ),
    "start is None": (squad("mary", None), ValueError, ["row 1 of y", "int", "None"]),
    "start is a bool": (squad("mary", True), ValueError, ["row 1 of y", "int", "True"]),
    "nowhere": (["oslo", "rome", "rome"], ValueError, ["row 1", "'rome'", "nowhere"]),
    "nowhere, with a start": (
        squad("paris", 4),
        ValueError,
        ["row 1", "'paris'", "nowhere", "answer_start=4", "'skip'"],
    ),
    "white space": (squad(" ", 3), ValueError, ["row 1", "nothing that the tokenizer keeps"]),
    "a table": (pd.DataFrame({"answer": Y}), TypeError, ["y must be a list", "DataFrame"]),
    "one answer": ("oslo", TypeError, ["y must be a list", "str"]),
}


def check(parts, call, kind=ValueError):
    with pytest.raises(kind) as error:
        call()
    message = str(error.value)
    assert all(part in message for part in parts), message


@pytest.fixture(scope="module")
def fitted(tiny_bert):
    return DiceSpanExtractor(tiny_bert, **FAST).fit(table(), Y)


@pytest.mark.parametrize("case", BAD_X)
def test_bad_questions(tiny_bert, fitted, case):
    bad, parts = BAD_X[case]
    check(parts, lambda: DiceSpanExtractor(tiny_bert).fit(bad, Y))
    for method in (fitted.predict, fitted.predict_spans, fitted.no_answer_score):
        check(parts, lambda method=method: method(bad))
    check(parts, lambda: fitted.score(bad, Y))


@pytest.mark.parametrize("case", BAD_Y)
def test_bad_answers(tiny_bert, case):
    bad, kind, parts = BAD_Y[case]
    check(parts, lambda: DiceSpanExtractor(tiny_bert).fit(X, bad), kind)


@pytest.mark.parametrize("bad", ["text", {"question": "a", "context": "b"}, {X[0]}, 7, None])
def test_no_rows_at_all(tiny_bert, bad):
    check(
        ["X must be a list, Series or object array of questions"],
        lambda: DiceSpanExtractor(tiny_bert).fit(bad, Y),
        TypeError,
    )


@pytest.mark.parametrize(
    "params, parts",
    [
        ({"null_threshold": NAN}, ["'null_threshold'", "float", "nan"]),
        ({"null_threshold": "never"}, ["'null_threshold'", "float", "'never'"]),
        ({"null_threshold": None}, ["'null_threshold'", "float", "None"]),
        ({"null_threshold": True}, ["'null_threshold'", "float", "True"]),
        ({"n_best": 0}, ["'n_best'", "range [1, inf)", "0"]),
        ({"n_best": 2.0}, ["'n_best'", "int", "2.0"]),
        ({"max_answer_length": 0}, ["'max_answer_length'", "[1, inf)", "0"]),
        ({"max_answer_length": None}, ["'max_answer_length'", "int", "None"]),
        ({"on_misaligned": "ignore"}, ["'on_misaligned'", "'repair', 'raise', 'skip'", "'ignore'"]),
        ({"max_length": 3}, ["'max_length'", "range [4, 64]", "3"]),
        ({"max_length": 65}, ["'max_length'", "range [4, 64]", "65"]),
        ({"max_length": 7, "stride": 2}, ["'stride'", "2 pieces in row 0", "3 questions", "Got 2"]),
        ({"max_length": 5}, ["question of row 0", "2 pieces", "1 are allowed", "max_length=5"]),
        ({"loss": "ce", "class_weight": "balanced"}, ["class_weight='balanced'", "cross-entropy"]),
        ({"loss": "ce", "K": 3.0}, ["K=3.0", "cross-entropy", "'wce'"]),
        ({"loss": CrossEntropyLoss(), "class_weight": "log"}, ["class_weight='log'", "positions"]),
        (
            {"loss": CrossEntropyLoss(class_weight=[1.0, 2.0])},
            ["class_weight of the loss=[1.0, 2.0]", "cross-entropy"],
        ),
        ({"loss": DiceLoss(), "gamma": 1.0}, ["'gamma' must be None", "1.0", "DiceLoss"]),
        ({"class_weight": {"PER": 2.0}}, ["class_weight", "'PER'", "0, 1"]),
        ({"loss": "focal", "alpha": 0.5}, ["alpha=0.5", "'focal'", "tversky"]),
    ],
)
def test_bad_parameters(tiny_bert, params, parts):
    check(parts, lambda: DiceSpanExtractor(tiny_bert, **params).fit(X, Y))


def test_messages_about_the_threshold_name_auto(tiny_bert):
    check(["'auto'"], lambda: DiceSpanExtractor(tiny_bert, null_threshold="never").fit(X, Y))


class TestLongQuestions:
    LONG = (X[0], ("the saw " * 31, "in oslo"), ("in " * 61, "by rome"))

    def test_fit_and_predict(self, tiny_bert, fitted):
        parts = ["row 1", "62 pieces", "60 are allowed", "max_length=64", "2 questions"]
        check(parts, lambda: DiceSpanExtractor(tiny_bert).fit(self.LONG, Y[:1] + ["oslo", "rome"]))
        check(parts, lambda: fitted.predict(self.LONG))

    def test_longest_that_is_allowed(self, fitted):
        assert fitted.predict([("in " * 60, "by rome")]).shape == (1,)
        check(["row 0", "61 pieces", "60 are"], lambda: fitted.predict([("in " * 61, "by rome")]))


class TestNothingToTrainOn:
    def test_every_row_is_left_out(self, tiny_bert):
        y = [{"text": ["berlin"], "answer_start": [0]}] * 3
        extractor = DiceSpanExtractor(tiny_bert, on_misaligned="skip")
        with pytest.warns(UserWarning, match="3 questions without another answer"):
            check(["no question to train on", "3 rows"], lambda: extractor.fit(X, y))

    def test_the_rows_that_are_left_have_no_weight(self, tiny_bert):
        y = [Y[0], {"text": ["berlin"], "answer_start": [0]}, Y[2]]
        extractor = DiceSpanExtractor(tiny_bert, on_misaligned="skip")
        with pytest.warns(UserWarning, match="1 questions without another answer"):
            check(["no question"], lambda: extractor.fit(X, y, sample_weight=[0, 1, 0]))

    def test_a_single_question_with_a_validation_part(self, tiny_bert):
        extractor = DiceSpanExtractor(tiny_bert, validation_fraction=0.5)
        check(["validation_fraction=0.5", "no row"], lambda: extractor.fit(X[:1], Y[:1]))


@pytest.mark.parametrize(
    "weight, parts",
    [
        ([1, 1], ["sample_weight", "(3,)", "(2,)"]),
        ([1, -1, 1], ["sample_weight", "row 1", "-1.0"]),
        ([1, NAN, 1], ["sample_weight", "row 1", "nan"]),
        ([0, 0, 0], ["sample_weight", "above zero"]),
    ],
)
def test_bad_weights(tiny_bert, weight, parts):
    check(parts, lambda: DiceSpanExtractor(tiny_bert).fit(X, Y, sample_weight=weight))


def test_answers_longer_than_what_windows_share(tiny_bert):
    X_long = [("city ?", "the " * 20 + "saw " * 14 + "by oslo"), X[0]]
    y = [("saw " * 14).strip(), Y[0]]
    extractor = DiceSpanExtractor(tiny_bert, max_length=20, stride=2, **FAST)
    with pytest.warns(UserWarning, match=r"answers of 1 questions .* not learned.*: row 0\."):
        extractor.fit(X_long, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        extractor.set_params(max_length=32, stride=24).fit(X_long, y)


def test_raise_on_misaligned(tiny_bert):
    extractor = DiceSpanExtractor(tiny_bert, on_misaligned="raise")
    parts = ["row 1", "'mary'", "answer_start=5", "'ary saw'", "'repair'", "'skip'"]
    check(parts, lambda: extractor.fit(X, squad("mary", 5)))


class TestAfterFit:
    @pytest.mark.parametrize("n_best", [0, -1, 1.5, "all"])
    def test_bad_n_best(self, fitted, n_best):
        check(["'n_best'", repr(n_best)], lambda: fitted.predict_spans(X, n_best=n_best))

    @pytest.mark.parametrize("method", ["score", "exact_match"])
    def test_bad_answers_to_score(self, fitted, method):
        score = getattr(fitted, method)
        check(["same number of rows", "2 and 3"], lambda: score(X, Y[:2]))
        check(["row 1 of y_true", "None"], lambda: score(X, ["oslo", None, "rome"]), TypeError)

    def test_scoring_does_not_look_at_offsets(self, fitted):
        wrong = [{"text": [text], "answer_start": [-1]} for text in Y]
        assert fitted.score(X, wrong) == fitted.score(X, Y)

    def test_failed_fit_does_not_leave_an_old_network_behind(self, tiny_bert):
        extractor = DiceSpanExtractor(tiny_bert, **FAST).fit(X, Y)
        with pytest.raises(ValueError, match="'max_length'"):
            extractor.set_params(max_length=3).fit(X, Y)
        with pytest.raises(NotFittedError):
            extractor.predict(X)

    def test_tune_decision(self, fitted):
        check(["sample_weight", "None"], lambda: tune_decision(fitted, X, Y, sample_weight=[1] * 3))
        check(["same number of rows"], lambda: tune_decision(fitted, X, Y[:2]))
        check(["question of row 1"], lambda: tune_decision(fitted, dicts(question=""), Y))
        with pytest.raises(NotFittedError):
            tune_decision(DiceSpanExtractor(), X, Y)
