"""Scores of entities and of single tags, by hand, and scorers; test_seqeval.py has many more."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import KFold, cross_validate

from skdice.metrics import (
    entity_classification_report,
    entity_f1_score,
    entity_f1_scorer,
    entity_precision_recall_fscore_support,
    squad_exact_match_scorer,
    squad_f1_scorer,
    tag_f1_score,
    tag_f1_scorer,
)

SCORES = [entity_f1_score, entity_precision_recall_fscore_support, entity_classification_report]


@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
@pytest.mark.parametrize("zero_division", [0, 1])
@pytest.mark.parametrize("rows", [[], [[]], [["O", "O"]]])
def test_nothing_to_find_and_nothing_found(rows, average, zero_division):
    scores = entity_precision_recall_fscore_support(
        rows, rows, average=average, zero_division=zero_division
    )
    assert scores == (zero_division, zero_division, zero_division, 0)
    assert entity_f1_score(rows, rows, average=None).shape == (0,)
    if not any(rows):
        score = tag_f1_score(rows, rows, average=average, zero_division=zero_division)
        assert type(score) is float
        assert score == zero_division


@pytest.mark.parametrize("score", [*SCORES, tag_f1_score])
@pytest.mark.parametrize("y_true, y_pred, error, message", [
    ([["O"], ["O"]], [["O"]], ValueError, "got 2 and 1"),
    ([["O"], ["O", "O"]], [["O"], ["O", "O", "O"]], ValueError, "row 1 has 2 and 3"),
    (["O", "B-X"], [["O"], ["O"]], TypeError, "row 0 of y_true .* got 'O'"),
    ([["O"]], None, TypeError, "y_pred .* got None"),
    ([["O"]], [[None]], TypeError, "row 0 of y_pred: tag 0"),
])  # fmt: skip
def test_bad_tags(score, y_true, y_pred, error, message):
    with pytest.raises(error, match=message):
        score(y_true, y_pred)


@pytest.mark.parametrize("score", [*SCORES, tag_f1_score])
@pytest.mark.parametrize("options, message", [
    ({"zero_division": "warn"}, "'zero_division'.*'warn'"),
    ({"zero_division": 2}, "'zero_division'.*2"),
])  # fmt: skip
def test_bad_options(score, options, message):
    with pytest.raises(ValueError, match=message):
        score(TAGS, TAGS, **options)


def test_tag_of_another_scheme_names_row_and_side():
    with pytest.raises(ValueError, match="row 1 of y_pred: tag 0 is 'E-X'"):
        entity_f1_score([["O"], ["O"]], [["O"], ["E-X"]], mode="strict", scheme="IOB2")


AVERAGES = ["micro", "macro", "weighted", None]


@pytest.mark.parametrize("average", AVERAGES)
def test_equals_sklearn_on_the_flat_tags(average):
    random = np.random.default_rng(0)
    for _ in range(20):
        lengths = random.integers(0, 9, 40)
        y_true = [random.choice(["O", "B-X", "I-X", "B-Y"], n).tolist() for n in lengths]
        y_pred = [random.choice(["O", "B-X", "I-X", "E-Z"], len(row)).tolist() for row in y_true]
        flat_true, flat_pred = np.concatenate(y_true), np.concatenate(y_pred)
        np.testing.assert_allclose(
            tag_f1_score(y_true, y_pred, average=average),
            f1_score(flat_true, flat_pred, average=average, zero_division=0),
            rtol=1e-12,
        )
        assert tag_f1_score(y_true, y_pred) == accuracy_score(flat_true, flat_pred)


SENTENCES = [["Ada", "sleeps"], ["in", "Paris", "now"]] * 6
TAGS = [["B-PER", "O"], ["O", "B-LOC", "O"]] * 6
QUESTIONS = [("Who?", "Ada Byron sleeps."), ("Where?", "In Paris or Rome.")] * 3
ANSWERS = [{"text": ["Ada Byron", "Ada Byron sleeps"]}, {"text": []}] * 3


class Guess(BaseEstimator):
    """Tags each capitalised word with one tag, or answers with the first word of the context."""

    def __init__(self, tag="B-PER"):
        self.tag = tag

    def fit(self, X, y):
        return self

    def predict(self, X):
        if self.tag is None:
            return np.array([context.split()[0] for _, context in X], dtype=object)
        return [[self.tag if word[0].isupper() else "O" for word in words] for words in X]


@pytest.mark.parametrize("container", [list, pd.Series])
@pytest.mark.parametrize("estimator, X, y, scoring, expected", [
    (Guess(), SENTENCES, TAGS, {"entity": entity_f1_scorer, "tag": tag_f1_scorer}, [0.5, 0.8]),
    (Guess(None), QUESTIONS, ANSWERS,
     {"exact_match": squad_exact_match_scorer, "f1": squad_f1_scorer}, [0, 1 / 3]),
])  # fmt: skip
def test_cross_validation(container, estimator, X, y, scoring, expected):
    scores = cross_validate(estimator, container(X), container(y), cv=KFold(3), scoring=scoring)
    found = [scores[f"test_{name}"] for name in scoring]
    np.testing.assert_allclose(found, np.repeat([expected], 3, axis=0).T)
