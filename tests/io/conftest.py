"""Fitted estimators of every class, and the directories they are saved in."""

import functools
import shutil

import pytest

from skdice import (
    DicePairClassifier,
    DiceQueryTagger,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
)

from ..corpora import easy_corpus, easy_labels, easy_pairs, easy_texts
from ..estimators.test_span import easy_questions

FAST = {"max_epochs": 1, "lr": 5e-3, "batch_size": 8, "random_state": 0, "verbose": 0}
N_ROWS = 16
CASES = {
    "tagger": (DiceTokenTagger, lambda: easy_corpus(N_ROWS)),
    "pairs": (DicePairClassifier, lambda: easy_pairs(N_ROWS)),
    "texts": (DiceTextClassifier, lambda: easy_texts(N_ROWS, n_classes=3)),
    "labels": (DiceTextClassifier, lambda: easy_labels(N_ROWS)),
    "questions": (DiceSpanExtractor, lambda: easy_questions(N_ROWS, unanswerable=0.3)),
    "queries": (DiceQueryTagger, lambda: easy_corpus(N_ROWS)),
}


def make(case, model, **params):
    """Return an estimator with its rows."""
    cls, rows = CASES[case]
    if case == "queries":  # The default ones are too long for the tiny models.
        params = {"queries": {"PER": "who ?", "LOC": "where ?"}, **params}
    return cls(model, **{**FAST, **params}), *rows()


def fit_once(models):
    """Return a function that gives a fitted estimator with its rows, by case and family."""

    @functools.cache
    def fit(case, family="bert"):
        estimator, X, y = make(case, models(family))
        return estimator.fit(X, y), X, y

    return fit


@pytest.fixture(scope="session")
def fitted(tiny_models):
    """Return a fitted estimator with its rows, by case and family."""
    return fit_once(tiny_models)


@pytest.fixture(scope="session")
def fitted_shallow(shallow_models):
    """The same, of networks with one layer."""
    return fit_once(shallow_models)


@pytest.fixture(scope="session")
def saved_tagger(fitted, tmp_path_factory):
    """A directory with a tagger; not to be written into."""
    directory = tmp_path_factory.mktemp("saved") / "tagger"
    fitted("tagger")[0].save_pretrained(directory)
    return directory


@pytest.fixture
def copied_tagger(saved_tagger, tmp_path):
    """The same, to be written into."""
    return shutil.copytree(saved_tagger, tmp_path / "copy")
