"""tune_decision: classifiers of every kind, taggers, and what it leaves alone."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score

from skdice import DicePairClassifier, DiceTextClassifier, DiceTokenTagger
from skdice.metrics import entity_f1_score
from skdice.model_selection import tune_decision

from ..corpora import easy_corpus, easy_labels, easy_pairs, easy_texts

# Too little training: the decision leaves something to tune.
FAST = {"max_epochs": 2, "lr": 2e-3, "batch_size": 8, "random_state": 0, "verbose": 0}


def macro_f1(y_true, y_pred):
    return f1_score(y_true, y_pred, average="macro")


def fit(cls, model, data, **params):
    return cls(model, **{**FAST, **params}).fit(*data)


@pytest.fixture(scope="module")
def pairs(tiny_bert):
    return fit(DicePairClassifier, tiny_bert, easy_pairs(64), loss="ce")


def test_two_classes(pairs):
    X, y = easy_pairs(60, seed=1)
    tuned = tune_decision(pairs, X, y)
    decision = pairs.decision_function(X)
    best = max(f1_score(y, decision > t) for t in [decision.min() - 1, *decision])
    assert tuned.score(X, y) == pytest.approx(best)
    assert tuned.score(X, y) > pairs.score(X, y)
    np.testing.assert_array_equal(tuned.predict(X), decision > tuned.threshold_)


def test_the_estimator_stays_as_it_is(pairs):
    X, y = easy_pairs(60, seed=1)
    before = pairs.predict(X)
    tuned = tune_decision(pairs, X, y)
    assert tuned is not pairs
    assert tuned.net_ is pairs.net_
    assert pairs.threshold_ == 0
    np.testing.assert_array_equal(pairs.predict(X), before)
    np.testing.assert_array_equal(tuned.predict_proba(X), pairs.predict_proba(X))
    np.testing.assert_array_equal(tuned.decision_function(X), pairs.decision_function(X))


def test_a_metric_of_ones_own(pairs):
    X, y = easy_pairs(60, seed=1)
    tuned = tune_decision(pairs, X, y, metric=accuracy_score)
    decision = pairs.decision_function(X)
    best = max(accuracy_score(y, decision > t) for t in [decision.min() - 1, *decision])
    assert accuracy_score(y, tuned.predict(X)) == best


def test_sample_weight(pairs):
    X, y = easy_pairs(60, seed=1)
    weight = np.where(np.arange(60) < 30, 1.0, 0.0)
    weighted = tune_decision(pairs, X, y, sample_weight=weight)
    half = tune_decision(pairs, X[:30], y[:30])
    assert weighted.score(X[:30], y[:30]) == half.score(X[:30], y[:30])
    with_metric = tune_decision(pairs, X, y, sample_weight=weight, metric=f1_score)
    assert with_metric.threshold_ == weighted.threshold_


def test_a_new_fit_forgets_the_threshold(tiny_bert):
    X, y = easy_pairs(32)
    classifier = tune_decision(fit(DicePairClassifier, tiny_bert, (X, y), loss="ce"), X, y)
    assert classifier.threshold_ != 0
    assert classifier.fit(X, y).threshold_ == 0


def test_more_classes(tiny_bert):
    X, y = easy_texts(60, seed=1, n_classes=3)
    classifier = fit(DiceTextClassifier, tiny_bert, easy_texts(40, n_classes=3), loss="ce")
    tuned = tune_decision(classifier, X, y, metric=macro_f1)
    assert tuned.threshold_.shape == (3,)
    assert macro_f1(y, tuned.predict(X)) > macro_f1(y, classifier.predict(X))
    assert tune_decision(classifier, X, y).score(X, y) >= classifier.score(X, y)


def test_several_labels(tiny_bert):
    X, Y = easy_labels(60, seed=1)
    classifier = fit(DiceTextClassifier, tiny_bert, easy_labels(60), loss="ce")
    tuned = tune_decision(classifier, X, Y)
    assert tuned.threshold_.shape == (2,)
    assert tuned.score(X, Y) > classifier.score(X, Y)


def test_taggers(tiny_bert):
    X, y = easy_corpus(40, seed=1)
    tagger = fit(DiceTokenTagger, tiny_bert, easy_corpus(40), loss="ce", lr=5e-3)
    tuned = tune_decision(tagger, X, y)
    assert tuned.score(X, y) > tagger.score(X, y)
    assert tagger.background_bias_ == 0
    same = tune_decision(tuned, X, y, metric=entity_f1_score)
    assert same.background_bias_ == tuned.background_bias_


class TestErrors:
    def test_not_fitted(self):
        with pytest.raises(NotFittedError):
            tune_decision(DicePairClassifier(), [("a", "b")], [1])

    @pytest.mark.parametrize("estimator", [LogisticRegression(), DicePairClassifier, None])
    def test_other_things(self, estimator):
        with pytest.raises(TypeError, match="takes a fitted classifier, tagger or extractor"):
            tune_decision(estimator, [], [])

    def test_tagger_without_background(self, tiny_bert):
        X, y = easy_corpus(16)
        y = [["NOUN" if tag != "O" else "VERB" for tag in row] for row in y]
        tagger = fit(DiceTokenTagger, tiny_bert, (X, y))
        with pytest.raises(TypeError, match="'NOUN', 'VERB'"):
            tune_decision(tagger, X, y)

    def test_tagger_with_weights(self, tiny_bert):
        tagger = fit(DiceTokenTagger, tiny_bert, easy_corpus(16))
        with pytest.raises(ValueError, match="sample_weight must be None for a tagger"):
            tune_decision(tagger, *easy_corpus(4), sample_weight=[1, 1, 1, 1])

    def test_bad_rows(self, pairs):
        with pytest.raises(ValueError, match="second text of row 0"):
            tune_decision(pairs, [("a", None)], [1])
        with pytest.raises(ValueError, match="1 rows of X and 2 of y"):
            tune_decision(pairs, [("a", "b")], [1, 0])
