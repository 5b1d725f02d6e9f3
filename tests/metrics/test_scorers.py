"""The scorers in scikit-learn's cross-validation and search."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold, cross_validate

from skdice.metrics import (
    entity_f1_scorer,
    squad_exact_match_scorer,
    squad_f1_scorer,
    tag_f1_scorer,
)

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
@pytest.mark.parametrize(
    "estimator, X, y, scoring, expected",
    [
        (Guess(), SENTENCES, TAGS, {"entity": entity_f1_scorer, "tag": tag_f1_scorer}, [0.5, 0.8]),
        (
            Guess(None),
            QUESTIONS,
            ANSWERS,
            {"exact_match": squad_exact_match_scorer, "f1": squad_f1_scorer},
            [0, 1 / 3],
        ),
    ],
)
def test_cross_validation(container, estimator, X, y, scoring, expected):
    scores = cross_validate(estimator, container(X), container(y), cv=KFold(3), scoring=scoring)
    found = [scores[f"test_{name}"] for name in scoring]
    np.testing.assert_allclose(found, np.repeat([expected], 3, axis=0).T)
