import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skdice
from skdice import DicePairClassifier, DiceSpanExtractor, DiceTextClassifier, DiceTokenTagger
from skdice.datasets import make_questions
from skdice.metrics import get_entities, squad_f1_score
from skdice.model_selection import cross_val_predict_proba, tune_decision

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


@pytest.fixture(scope="module", params=[DiceTokenTagger, skdice.DiceQueryTagger])
def tagger(request, tiny_bert):
    parameters = {"max_epochs": 8}
    if request.param is skdice.DiceQueryTagger:  # It still errs.
        queries = {"PER": "john mary", "LOC": "oslo paris"}
        parameters = {"max_epochs": 5, "random_state": 2, "queries": queries}
        parameters["negative_ratio"] = None
    return fit(request.param, tiny_bert, easy_corpus(60), loss="dice", lr=1e-2, **parameters)


@pytest.mark.parametrize("metric", [None, accuracy_score])
def test_two_classes(pairs, metric):
    X, y = easy_pairs(60, seed=1)
    before, decision, score = pairs.predict(X), pairs.decision_function(X), metric or f1_score
    tuned = tune_decision(pairs, X, y, metric=metric)
    best = max(score(y, decision > t) for t in [decision.min() - 1, *decision])
    assert score(y, tuned.predict(X)) == pytest.approx(best)
    assert metric or tuned.score(X, y) > pairs.score(X, y)
    is_positive = pairs.predict_proba(X)[:, 1] > tuned.threshold_
    np.testing.assert_array_equal(tuned.predict(X), is_positive)
    # The estimator stays as it is, and what it computes.
    assert tuned is not pairs
    assert tuned.net_ is pairs.net_
    assert pairs.threshold_ == 0.5
    np.testing.assert_array_equal(pairs.predict(X), before)
    np.testing.assert_array_equal(tuned.decision_function(X), decision)


@pytest.mark.parametrize("options", [{}, {"metric": f1_score}, {"min_precision": 0.8}])
def test_sample_weight(pairs, options):
    X, y = easy_pairs(60, seed=1)
    wrong = [*y[:30], *(1 - label for label in y[30:])]  # Those that count for nothing.
    weight = np.where(np.arange(60) < 30, 1.0, 0.0)
    weighted = tune_decision(pairs, X, wrong, sample_weight=weight, **options)
    half = tune_decision(pairs, X[:30], y[:30], **options)
    np.testing.assert_array_equal(weighted.predict(X[:30]), half.predict(X[:30]))


def test_more_classes_have_shares_as_thresholds(tiny_bert):
    X, y = easy_texts(60, seed=1, n_classes=3)
    classifier = fit(DiceTextClassifier, tiny_bert, easy_texts(40, n_classes=3), loss="ce")
    np.testing.assert_allclose(classifier.threshold_, 1 / 3)
    tuned = tune_decision(classifier, X, y, metric=macro_f1)
    assert tuned.threshold_.shape == (3,)
    assert tuned.threshold_.sum() == pytest.approx(1)
    best = (tuned.predict_proba(X) / tuned.threshold_).argmax(axis=1)
    assert tuned.predict(X).tolist() == tuned.classes_[best].tolist()
    assert macro_f1(y, tuned.predict(X)) > macro_f1(y, classifier.predict(X))
    assert tune_decision(classifier, X, y).score(X, y) >= classifier.score(X, y)


def test_several_labels(tiny_bert, recwarn):
    X, Y = easy_labels(60, seed=1)
    classifier = fit(DiceTextClassifier, tiny_bert, easy_labels(60), loss="ce")
    tuned = tune_decision(classifier, X, Y)
    assert tuned.threshold_.shape == (2,)
    moved = np.flatnonzero(tuned.threshold_ != 0.5)
    (told,) = [re.search(r"threshold_ of (\S+) from 0.50 to", text) for text in warned(recwarn)]
    assert told[1] in map(repr, classifier.classes_[moved].tolist())
    assert tuned.score(X, Y) > classifier.score(X, Y)


def test_a_pipeline(tiny_bert):
    X, y = easy_texts(40)
    lower = FunctionTransformer(lambda X: [text.lower() for text in X])
    classifier = DiceTextClassifier(tiny_bert, loss="ce", **FAST)
    pipeline = make_pipeline(lower, classifier).fit([text.upper() for text in X], y)
    y[::3] = ["person"] * len(y[::3])  # So that one half is not the best threshold.
    tuned = tune_decision(pipeline, [text.upper() for text in X], y)
    assert tuned[-1].threshold_ == tune_decision(pipeline[-1], X, y).threshold_ != 0.5
    assert pipeline[-1].threshold_ == 0.5


def test_errors(tiny_bert):
    with pytest.raises(NotFittedError):
        tune_decision(DicePairClassifier(), [("a", "b")], [1])
    for other in (LogisticRegression(), DicePairClassifier, None):
        with pytest.raises(TypeError, match="takes a fitted classifier, tagger or extractor"):
            tune_decision(other, [], [])
    X, y = easy_corpus(16)
    y = [["NOUN" if tag != "O" else "VERB" for tag in row] for row in y]
    with pytest.raises(TypeError, match="'NOUN', 'VERB'"):
        tune_decision(fit(DiceTokenTagger, tiny_bert, (X, y)), X, y)


@pytest.mark.parametrize("cv", [None, 2])
def test_no_rows_and_labels_that_the_fit_did_not_have(tiny_bert, cv):
    X, y = easy_corpus(16)
    renamed = [[tag.replace("PER", "NEW") for tag in row] for row in y]
    queries = {"PER": "who ?", "LOC": "where ?"}
    tagger = fit(DiceTokenTagger, tiny_bert, (X, y))
    asker = fit(skdice.DiceQueryTagger, tiny_bert, (X, y), queries=queries)
    pairs, labels = easy_pairs(16)
    classifier = fit(DicePairClassifier, tiny_bert, (pairs, labels))
    for estimator in (tagger, asker, classifier):
        with pytest.raises(ValueError, match="needs a row to tune the decision on; got none"):
            tune_decision(estimator, [], [], cv=cv)
    message = "must be that of the fit" if cv else "no label of the fit"
    with pytest.raises(ValueError, match=rf"{message}, which had the labels 0, 1\. Got 7, 8"):
        tune_decision(classifier, pairs, [7, 8] * 8, cv=cv)
    if cv is None:  # A new one among others counts as missed.
        assert tune_decision(tagger, X, renamed).classes_.tolist() == tagger.classes_.tolist()
        return
    for estimator, new in ((tagger, "'B-NEW'"), (asker, "'NEW'")):
        with pytest.raises(ValueError, match=f"with cv, y must be that of the fit.*Got {new}"):
            tune_decision(estimator, X, renamed, cv=cv)


@pytest.mark.parametrize("floor", ["min_precision", "min_recall"])
def test_labels_that_no_row_has_are_named(tiny_bert, floor):
    def said(estimator, X, y):
        with pytest.warns(UserWarning, match=f"{floor}=0.9 is not reached") as caught:
            tune_decision(estimator, X, y, **{floor: 0.9})
        return str(caught[-1].message)

    X, Y = easy_labels(16)
    Y = pd.DataFrame(Y, columns=["who", "where"]).assign(none=[1, *[0] * 15])
    classifier = fit(DiceTextClassifier, tiny_bert, (X, Y))
    assert "no row has the label 'none'" in said(classifier, X, Y.assign(none=0))
    X, y = easy_corpus(16)
    tagger = fit(DiceTokenTagger, tiny_bert, (X, y))
    assert "no row has an entity" in said(tagger, X, [["O"] * len(row) for row in y])


class TestFloors:
    """``min_precision`` and ``min_recall``; that they are kept on the rows that were tuned on."""

    def test_two_classes(self, pairs):
        X, y = easy_pairs(60, seed=1)
        decision = pairs.decision_function(X)
        rows = [decision >= t for t in decision]
        precision = np.array([precision_score(y, row) for row in rows])
        recall = np.array([recall_score(y, row) for row in rows])
        for floor in (0.8 * precision.max(), 0.99 * precision.max()):
            found = tune_decision(pairs, X, y, min_precision=floor).predict(X)
            assert precision_score(y, found) >= floor
            assert recall_score(y, found) == recall[precision >= floor].max()
        tuned = tune_decision(pairs, X, y, min_recall=1.0)
        assert recall_score(y, tuned.predict(X)) == 1.0

    @pytest.mark.parametrize("best_first, floor", [
        ("1111111101" + 50 * "0", "min_precision"),
        ("0111111111" + 50 * "0", "min_precision"),
        ("111111111" + 20 * "0" + "1" + 30 * "0", "min_recall"),
    ])  # fmt: skip
    def test_equal_weights_are_none(self, pairs, best_first, floor):
        """Nine of ten are .9, whatever their weights add up to."""
        X, _ = easy_pairs(60, seed=1)
        y = np.zeros(60, dtype=int)
        y[np.argsort(-pairs.decision_function(X))] = list(map(int, best_first))
        with warnings.catch_warnings(action="error"):
            tuned, *weighted = (
                tune_decision(pairs, X, y, sample_weight=weight, **{floor: 0.9})
                for weight in (None, np.ones(60), np.full(60, 0.1))
            )
        assert {tuned.threshold_} == {one.threshold_ for one in weighted}
        score = precision_score if floor == "min_precision" else recall_score
        assert score(y, tuned.predict(X)) == pytest.approx(0.9)

    def test_more_classes_have_no_positive_one(self, tiny_bert):
        X, y = easy_texts(40, n_classes=3)
        classifier = fit(DiceTextClassifier, tiny_bert, (X, y), loss="ce")
        with pytest.raises(ValueError, match="this classifier has 3 classes"):
            tune_decision(classifier, X, y, min_precision=0.9)


class TestLabels:
    def test_each_type_has_its_own(self, tagger):
        X, y = easy_corpus(120, seed=1)
        tuned = tune_decision(tagger, X, y, per_label=True)
        name = "background_bias_" if isinstance(tagger, DiceTokenTagger) else "threshold_"
        decision = getattr(tuned, name)
        assert list(decision) == ["LOC", "PER"]
        assert getattr(tagger, name) == (0 if isinstance(tagger, DiceTokenTagger) else 0.5)
        assert tuned.score(X, y) >= tagger.score(X, y) - 0.02

    def test_precision_drops_whole_entities(self, tiny_bert):
        X, _ = easy_corpus(120, seed=1)
        tagger = fit(DiceTokenTagger, tiny_bert, easy_corpus(60), loss="ce", lr=1e-2)
        before, y = tagger.predict_spans(X), tagger.predict(X).tolist()
        middle = np.median([entity.score for row in before for entity in row])
        for row, entities in zip(y, before, strict=True):  # Those that are less sure are wrong.
            for entity in entities:
                if entity.score < middle:
                    row[entity.start : entity.end] = ["O"] * (entity.end - entity.start)
        tuned = tune_decision(tagger, X, y, min_precision=0.97)
        assert tuned.threshold_ > 0
        assert tuned.background_bias_ == tagger.background_bias_ == tagger.threshold_ == 0
        # Tuned once more for F1, it has no threshold that the tuning did not see.
        assert tune_decision(tuned, X, y).threshold_ == 0
        after = tuned.predict_spans(X)
        kept = [[e for e in row if e.score >= tuned.threshold_] for row in before]
        assert after.tolist() == kept
        assert 0 < sum(map(len, kept)) < sum(map(len, before))
        spans = [[entity[:3] for entity in row] for row in kept]
        assert [get_entities(row) for row in tuned.predict(X)] == spans

    def test_answers(self, tiny_bert):
        X, y = make_questions(15, ratio=24, unanswerable_share=0.4, random_state=0)
        extractor = fit(DiceSpanExtractor, tiny_bert, (X, y), loss="ce", lr=5e-3)
        scores = extractor.no_answer_score(X)
        n_actual = sum(bool(row["text"]) for row in y)

        def precision_and_recall(threshold):
            extractor.null_threshold_ = threshold
            answers = extractor.predict(X)
            rows = [i for i, text in enumerate(answers) if text]
            f1 = sum(squad_f1_score([y[i]], [answers[i]]) for i in rows)
            return f1 / max(len(rows), 1), f1 / n_actual

        places = [scores.min() - 1, *np.sort(scores), scores.max() + 1]
        reached = np.array([precision_and_recall(place) for place in places])
        floor = reached[:, 0].max()
        tuned = tune_decision(extractor, X, y, min_precision=0.99 * floor)
        precision, recall = precision_and_recall(tuned.null_threshold_)
        assert precision >= 0.99 * floor
        assert recall == pytest.approx(reached[reached[:, 0] >= 0.99 * floor, 1].max())
        tuned = tune_decision(extractor, X, y, min_recall=reached[:, 1].max())
        assert precision_and_recall(tuned.null_threshold_)[1] == pytest.approx(reached[:, 1].max())


# Decisions that are tuned on the training rows themselves, by fits that have not seen them.
FOLDS = FAST | {"lr": 5e-3}


def test_a_classifier_against_scikit_learn(tiny_bert):
    X, y = easy_pairs(40)
    classifier = DicePairClassifier(tiny_bert, loss="ce", **FOLDS).fit(X, y)
    tuned = tune_decision(classifier, X, y, cv=5)
    itself = DicePairClassifier(tiny_bert, loss="ce", threshold="cv", **FOLDS).fit(X, y)
    assert itself.threshold_ == tuned.threshold_
    how = {"cv": StratifiedKFold(5, shuffle=True, random_state=0), "method": "decision_function"}
    decision = cross_val_predict(clone(classifier), X, y, **how)
    best = max(f1_score(y, decision > t) for t in [decision.min() - 1, *decision])
    assert f1_score(y, decision > logit(tuned.threshold_)) == pytest.approx(best)
    assert tuned.net_ is classifier.net_


def test_a_tagger_tunes_itself(tiny_bert, seen):
    X, y = easy_corpus(30)
    parameters = {**FOLDS, "loss": "ce"}
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
    tagger = DiceTokenTagger(tiny_bert, background_bias="cv", **FOLDS)
    tagger.fit(X, y, sample_weight=weight)
    assert all(X[0] not in rows.X and X[1] not in rows.X for rows in seen[1:])
    without = DiceTokenTagger(tiny_bert, background_bias="cv", **FOLDS).fit(X[2:], y[2:])
    assert tagger.background_bias_ == without.background_bias_


def test_a_tag_that_a_fold_does_not_know(tiny_bert):
    X, y = easy_corpus(20)
    y[3] = ["B-RARE", *["O"] * (len(y[3]) - 1)]
    tagger = DiceTokenTagger(tiny_bert, **FOLDS).fit(X, y)
    tuned = tune_decision(tagger, X, y, cv=5, per_label=True)
    assert sorted(tuned.background_bias_) == ["LOC", "PER", "RARE"]
    # Parts of speech have no decision.
    y = [["NOUN" if tag != "O" else "VERB" for tag in row] for row in y]
    assert tagger.set_params(background_bias="cv").fit(X, y).background_bias_ == 0


def test_contexts_stay_together(tiny_bert, seen):
    X, y = make_questions(24, ratio=24, unanswerable_share=0.4, random_state=0)
    contexts = [f"{i % 6} {context}" for i, context in enumerate(X["context"])]
    rows = list(zip(X["question"], contexts, strict=True))
    y = [answer["text"][:1] for answer in y]
    fast = {**FOLDS, "max_epochs": 1}
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


def test_errors_of_folds(tiny_bert):
    X, y = easy_pairs(12)
    classifier = DicePairClassifier(tiny_bert, **FOLDS).fit(X, y)
    with pytest.raises(ValueError, match="'cv' parameter of tune_decision must be None or an int"):
        tune_decision(classifier, X, y, cv=1)
    with pytest.raises(ValueError, match="need two rows of each class; got 3 rows"):
        tune_decision(classifier, X[:3], [0, 0, 1], cv=2)


def warned(recwarn):
    return [str(each.message) for each in recwarn if "which are few" in str(each.message)]


def test_few_rows_that_move_a_decision_warn(pairs, recwarn):
    X, y = easy_pairs(60, seed=1)
    tuned = tune_decision(pairs, X, y)
    without = [
        tune_decision(pairs, *zip(*(row for i, row in enumerate(zip(X, y)) if i % 5 != fold)))
        for fold in range(5)
    ]
    now, *others = (each.threshold_ for each in (tuned, *without))
    first, *_ = warned(recwarn)
    assert first == (
        f"tune_decision moved threshold_ from 0.50 to {now:.2f} on 60 rows, which are few: without "
        f"one fifth of them or another it is {min(now, *others):.2f} to {max(now, *others):.2f}. "
        f"On other rows it may be worse than what was fitted. Tune on 100 rows or more."
    )
    # Without the only row that counts nothing is to be tuned.
    assert 0 < tune_decision(pairs, X[:1], y[:1]).threshold_ < 1
    assert 0 < tune_decision(pairs, X, y, sample_weight=np.arange(60) == 0).threshold_ < 1
