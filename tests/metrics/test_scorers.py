"""The scorers in scikit-learn's cross-validation and search."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, KFold, cross_validate

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


class Names(BaseEstimator):
    """Gives each capitalised word one tag."""

    def __init__(self, tag="B-PER"):
        self.tag = tag

    def fit(self, X, y):
        return self

    def predict(self, X):
        return [[self.tag if word[0].isupper() else "O" for word in words] for words in X]


class FirstWords(BaseEstimator):
    """Answers each question with the first words of its context."""

    def __init__(self, n_words=1):
        self.n_words = n_words

    def fit(self, X, y):
        return self

    def predict(self, X):
        answers = [" ".join(context.split()[: self.n_words]) for _, context in X]
        return np.array(answers, dtype=object)


@pytest.mark.parametrize("container", [list, pd.Series])
def test_tags(container):
    X, y = container(SENTENCES), container(TAGS)
    scoring = {"entity": entity_f1_scorer, "tag": tag_f1_scorer}
    scores = cross_validate(Names(), X, y, cv=KFold(3), scoring=scoring)
    np.testing.assert_allclose(scores["test_entity"], [1 / 2] * 3)
    np.testing.assert_allclose(scores["test_tag"], [4 / 5] * 3)
    search = GridSearchCV(Names(), {"tag": ["O", "B-LOC"]}, scoring=entity_f1_scorer, cv=3)
    assert search.fit(X, y).best_params_ == {"tag": "B-LOC"}
    assert search.score(X, y) == 1 / 2


@pytest.mark.parametrize("container", [list, pd.Series])
def test_answers(container):
    X, y = container(QUESTIONS), container(ANSWERS)
    scoring = {"exact_match": squad_exact_match_scorer, "f1": squad_f1_scorer}
    scores = cross_validate(FirstWords(), X, y, cv=KFold(3), scoring=scoring)
    np.testing.assert_array_equal(scores["test_exact_match"], [0, 0, 0])
    np.testing.assert_allclose(scores["test_f1"], [1 / 3] * 3)
