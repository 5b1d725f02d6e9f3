"""The scorers in scikit-learn's cross-validation and search."""

import pickle
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate

from skdice.metrics import (
    entity_f1_score,
    entity_f1_scorer,
    squad_exact_match_scorer,
    squad_f1_score,
    squad_f1_scorer,
    tag_f1_scorer,
)

SENTENCES = [["Ada", "Byron", "sleeps"], ["in", "Paris"], ["Ada", "sleeps"]] * 4
TAGS = [["B-PER", "I-PER", "O"], ["O", "B-LOC"], ["B-PER", "O"]] * 4


class MostFrequentTag(BaseEstimator):
    """Gives each word the tag it had most often, or `unknown`."""

    def __init__(self, unknown="O", ignore=()):
        self.unknown = unknown
        self.ignore = ignore

    def fit(self, X, y):
        counts = defaultdict(Counter)
        for words, tags in zip(X, y):
            for word, tag in zip(words, tags):
                counts[word][tag] += 1
        self.tag_of_ = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
        return self

    def predict(self, X):
        known = {word: tag for word, tag in self.tag_of_.items() if word not in self.ignore}
        return [[known.get(word, self.unknown) for word in words] for words in X]


class FirstWords(BaseEstimator):
    """Answers each question with the first words of its context."""

    def __init__(self, n_words=1):
        self.n_words = n_words

    def fit(self, X, y):
        return self

    def predict(self, X):
        contexts = X["context"] if isinstance(X, pd.DataFrame) else [row[1] for row in X]
        return object_array([" ".join(context.split()[: self.n_words]) for context in contexts])


QUESTIONS = [("Who?", "Ada Byron sleeps."), ("Where?", "In Paris or Rome.")] * 3
ANSWERS = [
    {"text": ["Ada Byron", "Ada Byron sleeps"], "answer_start": [0, 0]},
    {"text": [], "answer_start": []},
] * 3


def object_array(rows):
    array = np.empty(len(rows), dtype=object)
    array[:] = rows
    return array


@pytest.mark.parametrize("container", [list, pd.Series, object_array])
def test_cross_val_score(container):
    X, y, cv = container(SENTENCES), container(TAGS), KFold(3)
    perfect = cross_val_score(MostFrequentTag(), X, y, cv=cv, scoring=entity_f1_scorer)
    np.testing.assert_array_equal(perfect, [1, 1, 1])
    # Without Byron the two-word entities are missed: one of three in every three sentences.
    forgetful = MostFrequentTag(ignore=("Byron",))
    scoring = {"entity": entity_f1_scorer, "tag": tag_f1_scorer}
    scores = cross_validate(forgetful, X, y, cv=KFold(4), scoring=scoring)
    np.testing.assert_allclose(scores["test_entity"], [2 / 3] * 4)
    np.testing.assert_allclose(scores["test_tag"], [6 / 7] * 4)


def test_grid_search():
    search = GridSearchCV(
        MostFrequentTag(ignore=("sleeps",)),
        {"unknown": ["B-PER", "O"]},
        scoring=entity_f1_scorer,
        cv=3,
    )
    search.fit(SENTENCES, TAGS)
    assert search.best_params_ == {"unknown": "O"}
    assert search.score(SENTENCES, TAGS) == 1


def test_pickle():
    strict = make_scorer(entity_f1_score, average="macro", mode="strict", scheme="IOB2")
    tagger = MostFrequentTag(ignore=("Byron",)).fit(SENTENCES, TAGS)
    for scorer in (strict, entity_f1_scorer, tag_f1_scorer):
        expected = scorer(tagger, SENTENCES, TAGS)
        assert 0 < expected < 1
        assert pickle.loads(pickle.dumps(scorer))(tagger, SENTENCES, TAGS) == expected


@pytest.mark.parametrize(
    "X",
    [QUESTIONS, object_array(QUESTIONS), pd.DataFrame(QUESTIONS, columns=["question", "context"])],
)
@pytest.mark.parametrize("container", [list, pd.Series, object_array])
def test_answers(container, X):
    y = container(ANSWERS)
    scoring = {"exact_match": squad_exact_match_scorer, "f1": squad_f1_scorer}
    scores = cross_validate(FirstWords(), X, y, cv=KFold(3), scoring=scoring)
    np.testing.assert_array_equal(scores["test_exact_match"], [0, 0, 0])
    np.testing.assert_allclose(scores["test_f1"], [1 / 3] * 3)
    search = GridSearchCV(FirstWords(), {"n_words": [0, 1, 2]}, scoring=squad_f1_scorer, cv=3)
    search.fit(X, y)
    assert list(search.cv_results_["mean_test_score"]) == pytest.approx([1 / 2, 1 / 3, 1 / 2])
    old = make_scorer(squad_f1_score, version="1.1")
    assert pickle.loads(pickle.dumps(old))(FirstWords(2), X[::2], y[::2]) == 1
