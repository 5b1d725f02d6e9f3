"""Decisions that are tuned on the training rows themselves, by fits that have not seen them."""

import numpy as np
import pytest
from scipy.special import logit
from sklearn.base import clone
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict

from skdice import DicePairClassifier, DiceSpanExtractor, DiceTextClassifier, DiceTokenTagger
from skdice.datasets import make_questions
from skdice.model_selection import cross_val_predict_proba, tune_decision

from ..corpora import easy_corpus, easy_pairs, easy_texts

FAST = {"max_epochs": 2, "lr": 5e-3, "batch_size": 8, "random_state": 0, "verbose": 0}


def test_a_classifier_against_scikit_learn(tiny_bert):
    X, y = easy_pairs(40)
    classifier = DicePairClassifier(tiny_bert, loss="ce", **FAST).fit(X, y)
    tuned = tune_decision(classifier, X, y, cv=5)
    itself = DicePairClassifier(tiny_bert, loss="ce", threshold="cv", **FAST).fit(X, y)
    assert itself.threshold_ == tuned.threshold_
    how = {"cv": StratifiedKFold(5, shuffle=True, random_state=0), "method": "decision_function"}
    decision = cross_val_predict(clone(classifier), X, y, **how)
    best = max(f1_score(y, decision > t) for t in [decision.min() - 1, *decision])
    assert f1_score(y, decision > logit(tuned.threshold_)) == pytest.approx(best)
    assert tuned.net_ is classifier.net_


def test_a_tagger_tunes_itself(tiny_bert, seen):
    X, y = easy_corpus(30)
    parameters = {**FAST, "loss": "ce"}
    plain = DiceTokenTagger(tiny_bert, **parameters).fit(X, y)
    seen.clear()
    tagger = DiceTokenTagger(tiny_bert, background_bias="cv", **parameters).fit(X, y)
    assert [len(rows) for rows in seen] == [30, 24, 24, 24, 24, 24]
    # All rows are trained on, and the decision is that of the rows that fits have not seen.
    plain.background_bias_ = tagger.background_bias_
    for one, other in zip(plain.predict_proba(X), tagger.predict_proba(X), strict=True):
        np.testing.assert_array_equal(one, other)
    folds = KFold(5, shuffle=True, random_state=0)
    unseen = cross_val_predict_proba(clone(plain), X, y, cv=folds)
    correct = []
    for bias in (tagger.background_bias_, 0.0, -4.0, 4.0):
        shift = np.where(plain.classes_ == "O", np.exp(bias), 1.0)
        tags = [plain.classes_[(p * shift).argmax(1)] for p in unseen]
        correct.append(f1_score(np.concatenate(y) != "O", np.concatenate(tags) != "O"))
    assert correct[0] >= max(correct) - 0.03


def test_weight_is_repetition_in_folds_and_0_is_absence(tiny_bert, seen):
    X, y = easy_corpus(12)
    weight = [0.0, 0.0, *[1.0] * 10]
    tagger = DiceTokenTagger(tiny_bert, background_bias="cv", **FAST)
    tagger.fit(X, y, sample_weight=weight)
    assert all(X[0] not in rows.X and X[1] not in rows.X for rows in seen[1:])
    without = DiceTokenTagger(tiny_bert, background_bias="cv", **FAST).fit(X[2:], y[2:])
    assert tagger.background_bias_ == without.background_bias_


def test_a_tag_that_a_fold_does_not_know(tiny_bert):
    X, y = easy_corpus(20)
    y[3] = ["B-RARE", *["O"] * (len(y[3]) - 1)]
    tagger = DiceTokenTagger(tiny_bert, **FAST).fit(X, y)
    tuned = tune_decision(tagger, X, y, cv=5, per_label=True)
    assert sorted(tuned.background_bias_) == ["LOC", "PER", "RARE"]
    # Parts of speech have no decision.
    y = [["NOUN" if tag != "O" else "VERB" for tag in row] for row in y]
    assert tagger.set_params(background_bias="cv").fit(X, y).background_bias_ == 0


def test_classes_of_one_row(tiny_bert):
    X, y = easy_texts(31, n_classes=3)
    y = [*y[:-1], "rare"]
    classifier = DiceTextClassifier(tiny_bert, **FAST).fit(X, y)
    assert tune_decision(classifier, X, y, cv=3).threshold_.shape == (len(set(y)),)


def test_contexts_stay_together(tiny_bert, seen):
    X, y = make_questions(24, ratio=24, unanswerable_share=0.4, random_state=0)
    contexts = [f"{i % 6} {context}" for i, context in enumerate(X["context"])]
    rows = list(zip(X["question"], contexts, strict=True))
    y = [answer["text"][:1] for answer in y]
    fast = {**FAST, "max_epochs": 1}
    extractor = DiceSpanExtractor(tiny_bert, null_threshold="cv", **fast).fit(rows, y)
    assert len(seen) == 6
    assert np.isfinite(extractor.null_threshold_)
    for trained_on in (rows.X for rows in seen[1:]):
        unseen = {context for _, context in rows} - {context for _, context in trained_on}
        assert len(trained_on) == sum(context not in unseen for _, context in rows)
    seen.clear()
    answered = [i for i, answer in enumerate(y) if answer]
    always = DiceSpanExtractor(tiny_bert, null_threshold="cv", **fast)
    always.fit([rows[i] for i in answered], [y[i] for i in answered])
    assert len(seen) == 1
    assert always.null_threshold_ == np.inf


def test_errors(tiny_bert):
    X, y = easy_pairs(12)
    classifier = DicePairClassifier(tiny_bert, **FAST).fit(X, y)
    with pytest.raises(ValueError, match="'cv' parameter of tune_decision must be None or an int"):
        tune_decision(classifier, X, y, cv=1)
    with pytest.raises(ValueError, match="need two rows of each class; got 3 rows"):
        tune_decision(classifier, X[:3], [0, 0, 1], cv=2)
    with pytest.raises(ValueError, match="'background_bias' parameter"):
        DiceTokenTagger(tiny_bert, background_bias="folds").fit(*easy_corpus(4))
