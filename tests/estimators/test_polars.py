"""Series and frames of polars are rows like any others."""

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

from skdice import (
    DicePairClassifier,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
    imbalance_report,
)
from skdice._inputs import check_pairs, check_texts, check_token_lists
from skdice.estimators._questions import check_questions
from skdice.inspection import TaggingErrors
from skdice.metrics import entity_f1_score, squad_f1_score
from skdice.model_selection import StratifiedTagKFold, compare_losses, cross_val_predict_proba

from ..corpora import easy_corpus, easy_labels, easy_pairs, easy_texts
from .test_span import easy_questions

FAST = {"max_epochs": 1, "random_state": 0, "verbose": 0}


def frame(rows, *names):
    return pl.DataFrame([list(row) for row in rows], schema=list(names), orient="row")


def texts():
    X, y = easy_texts(12)
    return DiceTextClassifier, X, y, pl.DataFrame({"text": X}), pl.Series(y)


def series_of_texts():
    X, y = easy_texts(12)
    return DiceTextClassifier, X, y, pl.Series(X), pl.DataFrame({"label": y})


def labels():
    X, Y = easy_labels(12)
    return DiceTextClassifier, X, Y, pl.Series(X), pl.DataFrame(Y, schema=["person", "place"])


def pairs():
    X, y = easy_pairs(12)
    return DicePairClassifier, X, y, frame(X, "one", "two"), pl.Series(list(y))


def series_of_pairs():
    X, y = easy_pairs(12)
    return DicePairClassifier, X, y, pl.Series([list(pair) for pair in X]), pl.Series(list(y))


def words():
    X, y = easy_corpus(12)
    return DiceTokenTagger, X, y, pl.Series(X), pl.Series(y)


def questions():
    X, y = easy_questions(12)
    # By name, not by position.
    table = frame([pair[::-1] for pair in X], "context", "question")
    return DiceSpanExtractor, X, y, table, pl.Series(list(y))


@pytest.mark.parametrize(
    "case", [texts, series_of_texts, labels, pairs, series_of_pairs, words, questions]
)
def test_the_same_as_lists(case, tiny_bert):
    cls, X, y, polars_X, polars_y = case()
    estimator = cls(tiny_bert, **FAST)
    expected, got = clone(estimator).fit(X, y), clone(estimator).fit(polars_X, polars_y)
    assert got.score(polars_X, polars_y) == expected.score(X, y)
    np.testing.assert_array_equal(got.predict(polars_X), expected.predict(X))


def test_around_estimators(tiny_bert):
    _, X, y, polars_X, polars_y = words()
    assert entity_f1_score(polars_y, polars_y) == entity_f1_score(y, y) == 1
    assert imbalance_report(polars_y).equals(imbalance_report(y))
    found = TaggingErrors.from_predictions(polars_X, polars_y, polars_y).frame
    assert found.equals(TaggingErrors.from_predictions(X, y, y).frame)
    for one, other in zip(
        StratifiedTagKFold(2).split(polars_X, polars_y), StratifiedTagKFold(2).split(X, y)
    ):
        np.testing.assert_array_equal(one[1], other[1])
    _, Q, answers, table, _ = questions()
    assert imbalance_report(answers, table).equals(imbalance_report(answers, Q))
    strings = [row if isinstance(row, str) else (row["text"] or [""])[0] for row in answers]
    assert squad_f1_score(pl.Series(strings), pl.Series(strings)) == 1
    _, P, labels, polars_P, polars_labels = pairs()
    classifier = DicePairClassifier(tiny_bert, **FAST)
    np.testing.assert_array_equal(
        cross_val_predict_proba(classifier, polars_P, polars_labels, cv=2),
        cross_val_predict_proba(classifier, P, labels, cv=2),
    )
    options = {"losses": ("ce",), "seeds": (0,), "verbose": 0, "tune_threshold": True}
    parts = (polars_P, polars_labels, polars_P, polars_labels)
    got = compare_losses(classifier, *parts, **options).frame
    expected = compare_losses(classifier, P, labels, P, labels, **options).frame
    assert got.drop(columns="fit_seconds").equals(expected.drop(columns="fit_seconds"))


@pytest.mark.parametrize(
    "check, names, message",
    [
        (check_texts, "ab", r"must have one column of texts; got 2 columns: \['a', 'b'\]"),
        (check_pairs, "a", r"must have two columns of texts, the pairs; got 1 columns: \['a'\]"),
        (check_questions, "ab", r"'question' and 'context'; 'question' is not among \['a', 'b'\]"),
        (check_token_lists, "ab", "lists of words; got a DataFrame. Pass one of its columns"),
    ],
)
def test_errors_say_what_is_needed(check, names, message):
    with pytest.raises((TypeError, ValueError), match=message):
        check(frame([names, names], *names))
