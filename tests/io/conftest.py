"""Fitted estimators of every class, and the directories they are saved in."""

import functools
import shutil

import numpy as np
import pytest

import skdice

from ..corpora import easy_corpus, easy_labels, easy_pairs, easy_texts
from ..estimators.test_span import easy_questions
from ..spies import encoded_rows, internals

FAST = {"max_epochs": 1, "lr": 5e-3, "batch_size": 8, "random_state": 0, "verbose": 0}
N_ROWS = 16


def two_texts(n, seed=0):
    """Return two texts again and again, which even a random encoder tells apart."""
    return ["john", " ".join(["to"] * 8)] * (n // 2), ["person", "place"] * (n // 2)


# Estimators, and their rows by number and seed.
CASES = {
    "tagger": (skdice.DiceTokenTagger, easy_corpus),
    "pairs": (skdice.DicePairClassifier, easy_pairs),
    "texts": (skdice.DiceTextClassifier, functools.partial(easy_texts, n_classes=3)),
    "two texts": (skdice.DiceTextClassifier, two_texts),  # Its head begins as a regression.
    "labels": (skdice.DiceTextClassifier, easy_labels),
    "questions": (skdice.DiceSpanExtractor, functools.partial(easy_questions, unanswerable=0.3)),
    "queries": (skdice.DiceQueryTagger, easy_corpus),
}


def make(case, model, **params):
    cls, rows = CASES[case]
    if case == "tagger":  # By default it would train two networks.
        params = {"loss": "dice", **params}
    if case == "queries":  # The default ones are too long for the tiny models.
        params = {"queries": {"PER": "who ?", "LOC": "where ?"}, **params}
    return cls(model, **{**FAST, **params}), *rows(N_ROWS)


def scores(estimator, X):
    """Return what an estimator computes of rows, as one array."""
    if hasattr(estimator, "predict_proba"):
        return np.concatenate([np.ravel(row) for row in estimator.predict_proba(X)])
    return internals(estimator).network.logits(encoded_rows(estimator, X)).ravel()


@functools.cache
def fit_once(models, **params):
    """Return a function that gives a fitted estimator with its rows, by case and family.

    Tests of all files share the fits, so they change copies.
    """

    @functools.cache
    def fit(case, family="bert"):
        estimator, X, y = make(case, models(family), **params)
        return estimator.fit(X, y), X, y

    return fit


@pytest.fixture(scope="session")
def fitted(tiny_models):
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
