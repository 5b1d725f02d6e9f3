"""The contract of text estimators: ours keep it, and broken ones are found out."""

import logging
import os
import unittest
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from skdice import (
    DicePairClassifier,
    DiceQueryTagger,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
    estimators,
)
from skdice.datasets import make_tagging
from skdice.estimator_checks import check_text_estimator, text_estimator_checks

from ..corpora import easy_labels, easy_texts
from ..estimators.test_span import easy_questions
from .broken_taggers import BROKEN

FAST = {"max_epochs": 1, "lr": 1e-2, "batch_size": 12}
QUERIES = {"PER": "john mary", "LOC": "oslo paris"}
NAMES = [name for name, _ in text_estimator_checks(DiceTokenTagger())]

# Why a check may fail, by estimator and check. Keep it empty, or say here what users lose.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "DicePairClassifier": {},
    "DiceQueryTagger": {},
    "DiceSpanExtractor": {},
    "DiceTextClassifier": {},
    "DiceTokenTagger": {},
}


@pytest.fixture(scope="module")
def tiny_bert(shallow_models):
    """One layer will do for what is checked: all but what a frozen one does."""
    return shallow_models("bert")


def run(name, estimator, X=None, y=None):
    dict(text_estimator_checks(estimator, X, y))[name]()


@pytest.fixture(autouse=True)
def restored(tmp_path, monkeypatch):
    """Undo what broken taggers do to the process."""
    monkeypatch.chdir(tmp_path)
    environment, level = dict(os.environ), logging.getLogger("transformers").level
    threads, numpy_state, torch_state = (
        torch.get_num_threads(),
        np.random.get_state(),
        torch.get_rng_state(),
    )
    with warnings.catch_warnings():
        yield
    os.environ.clear()
    os.environ.update(environment)
    logging.getLogger("transformers").setLevel(level)
    torch.set_num_threads(threads)
    torch.set_flush_denormal(False)
    torch.set_rng_state(torch_state)
    np.random.set_state(numpy_state)


class WordCountClassifier(ClassifierMixin, BaseEstimator):
    """Strings and plain labels: what a text classifier gives back."""

    def __init__(self, C=1.0, class_weight=None):
        self.C = C
        self.class_weight = class_weight

    def fit(self, X, y, sample_weight=None):
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        if not len(X):
            raise ValueError("X has no rows")
        self.model_ = LogisticRegression(C=self.C, class_weight=self.class_weight)
        self.model_.fit(self._count(X), np.asarray(y), sample_weight)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(1)]

    def predict_proba(self, X):
        check_is_fitted(self)
        return self.model_.predict_proba(self._count(X)) if len(X) else np.empty((0, 2))

    def score(self, X, y):
        check_is_fitted(self)
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def _count(self, X):
        return HashingVectorizer(n_features=64).transform(list(X))


class PercentClassifier(WordCountClassifier):
    def score(self, X, y):
        return 100 * super().score(X, y)


class MostFrequentAnswer(BaseEstimator):
    """Pairs and dicts, without classes or probabilities: what an extractor gives back."""

    def __init__(self, random_state=None, verbose=1):
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X, y, sample_weight=None):
        if y is None or not len(X):
            raise ValueError("requires y and at least one row")
        weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight)
        totals = {}
        for row, w in zip(y, weight):
            totals[row["text"][0]] = totals.get(row["text"][0], 0) + w
        self.answer_ = max(totals, key=totals.get)
        return self

    def predict(self, X):
        check_is_fitted(self)
        answers = [self.answer_ if self.answer_ in context else "" for _, context in X]
        return np.array(answers, dtype=object)

    def score(self, X, y):
        predicted = self.predict(X)
        return float(np.mean([a in row["text"] for a, row in zip(predicted, y)]))


def labelled_texts():
    """Unequal classes of texts."""
    words, tags = make_tagging(40, ratio=4, n_types=1, random_state=0)
    return [" ".join(row) for row in words], [int("B-PER" in row) for row in tags]


def answered_questions():
    X = [("where?", f"in {city} on day {i}") for i, city in enumerate(["oslo", "rome", "oslo"] * 4)]
    return X, [{"text": [context.split()[1]], "answer_start": [3]} for _, context in X]


def test_every_estimator_is_here():
    names = {name for name in estimators.__all__ if hasattr(getattr(estimators, name), "_task")}
    assert names == set(EXPECTED_FAILURES)


@pytest.mark.parametrize("name", NAMES)
def test_tagger(tiny_bert, name):
    assert name not in EXPECTED_FAILURES["DiceTokenTagger"]
    run(name, DiceTokenTagger(tiny_bert, **FAST))


@pytest.mark.parametrize("name", NAMES)
def test_query_tagger(tiny_bert, name):
    assert name not in EXPECTED_FAILURES["DiceQueryTagger"]
    try:
        run(name, DiceQueryTagger(tiny_bert, queries=QUERIES, **FAST))
    except unittest.SkipTest:
        assert name == "check_classes"


@pytest.mark.parametrize(
    "name",
    [
        "check_data_unchanged",
        "check_input_containers",
        "check_one_sample",
        "check_sample_weight_equivalence",
    ],
)
def test_query_tagger_of_nested_spans(tiny_bert, name):
    X, y = make_tagging(24, ratio=2, n_types=2, nested=True, random_state=0)
    parameters = {"queries": QUERIES, "decode": "nested", "negative_ratio": 1.0}
    run(name, DiceQueryTagger(tiny_bert, **FAST, **parameters), X, y)


@pytest.mark.parametrize("name", NAMES)
def test_extractor(tiny_bert, name):
    assert name not in EXPECTED_FAILURES["DiceSpanExtractor"]
    if name == "check_input_containers":
        pytest.skip("a table by default; test_extractor_of_lists has lists")
    try:
        run(name, DiceSpanExtractor(tiny_bert, **FAST))
    except unittest.SkipTest:
        assert name == "check_classes"


@pytest.mark.parametrize(
    "name",
    [
        "check_data_unchanged",
        "check_estimators_empty_data_messages",
        "check_input_containers",
        "check_one_sample",
        "check_rows_of_one_length",
        "check_sample_weight_equivalence",
    ],
)
@pytest.mark.parametrize("as_dicts", [False, True])
def test_extractor_of_lists(tiny_bert, name, as_dicts):
    X, y = easy_questions(24, unanswerable=0.3)
    if as_dicts:
        X = [{"question": question, "context": context} for question, context in X]
    run(name, DiceSpanExtractor(tiny_bert, **FAST), X, y)


@pytest.mark.parametrize(
    "name",
    ["check_dict_unchanged", "check_estimators_pickle", "check_sample_weight_equivalence"],
)
def test_extractor_with_other_parameters(tiny_bert, name):
    parameters = {"loss": "ce", "validation_fraction": 0.3, "patience": 1, "max_length": 16}
    X, y = easy_questions(24, unanswerable=0.3)
    run(name, DiceSpanExtractor(tiny_bert, **{**FAST, **parameters, "max_epochs": 3}), X, y)


@pytest.mark.filterwarnings("ignore:.*are longer than max_length")
@pytest.mark.parametrize("rows", ["texts", "several labels", "pairs"])
@pytest.mark.parametrize("name", NAMES)
def test_classifier(tiny_bert, name, rows):
    classifier, X, y = {
        "texts": lambda: (DiceTextClassifier, *easy_texts(24, n_classes=3)),
        "several labels": lambda: (DiceTextClassifier, *easy_labels(24)),
        "pairs": lambda: (DicePairClassifier, None, None),
    }[rows]()
    assert name not in EXPECTED_FAILURES[classifier.__name__]
    run(name, classifier(tiny_bert, loss="dice", max_epochs=1, lr=1e-3, batch_size=12), X, y)


@pytest.mark.filterwarnings("ignore:.*are longer than max_length")
def test_classifier_with_rows_of_its_own(tiny_bert):
    results = check_text_estimator(DiceTextClassifier(tiny_bert, **FAST))
    assert {result["status"] for result in results} == {"passed"}


def test_cross_entropy_over_positions_has_no_classes_to_weight(tiny_bert):
    with pytest.raises(ValueError, match="positions of a window, which have no classes"):
        run("check_class_weight", DiceSpanExtractor(tiny_bert, loss="ce", **FAST))


@pytest.mark.parametrize(
    "name",
    [
        "check_estimators_pickle",
        "check_class_weight",
        "check_sample_weight_equivalence",
    ],
)
@pytest.mark.parametrize(
    "parameters",
    [
        {"validation_fraction": 0.3, "patience": 1, "background_bias": "auto", "max_epochs": 2},
        {"loss": "ce", "K": 9.0, "accumulate": 2, "n_frozen_layers": 1, "max_length": 24},
    ],
)
def test_tagger_with_other_parameters(tiny_models, name, parameters):
    run(name, DiceTokenTagger(tiny_models("bert"), **{**FAST, **parameters}))


def test_rows_of_weight_zero_leave_no_class_behind(tiny_bert):
    X, y = make_tagging(24, ratio=2, n_types=2, random_state=0)
    for i in range(0, 24, 2):
        y[i] = [tag.replace("LOC", "PER") for tag in y[i]]
    run("check_sample_weight_equivalence", DiceTokenTagger(tiny_bert, **FAST), X, y)


@pytest.mark.parametrize("broken, name, reason", BROKEN, ids=[row[0].__name__ for row in BROKEN])
def test_broken_taggers_are_found_out(tiny_bert, broken, name, reason):
    parameters = {} if "__init__" in vars(broken) else FAST
    with pytest.raises(Exception, match=reason) as failure:
        run(name, broken(tiny_bert, **parameters))
    assert not isinstance(failure.value, unittest.SkipTest)


def test_every_check_can_fail():
    assert {name for _, name, _ in BROKEN} == set(NAMES)


class TestCheckTextEstimator:
    def test_text_classifier(self):
        results = check_text_estimator(WordCountClassifier(), *labelled_texts())
        assert [result["check_name"] for result in results] == NAMES
        assert {result["status"] for result in results} == {"passed"}

    def test_extractor(self):
        results = check_text_estimator(MostFrequentAnswer(), *answered_questions())
        skipped = [r["check_name"] for r in results if r["status"] == "skipped"]
        assert skipped == ["check_classes", "check_class_weight"]
        assert {r["status"] for r in results} == {"passed", "skipped"}

    def test_unexpected_failure_names_check_and_reason(self):
        message = r"PercentClassifier fails check_score: score must be a float in \[0, 1\]; got \d"
        with pytest.raises(AssertionError, match=message):
            check_text_estimator(PercentClassifier(), *labelled_texts())

    def test_errors_that_are_no_assertions_are_named_too(self):
        class Broken(WordCountClassifier):
            def fit(self, X, y, sample_weight=None):
                raise ZeroDivisionError("oops")

        with pytest.raises(
            AssertionError, match="Broken fails check_html_repr: ZeroDivisionError"
        ) as failure:
            check_text_estimator(Broken(), *labelled_texts())
        assert isinstance(failure.value.__cause__, ZeroDivisionError)

    def test_expected_failures(self):
        reasons = {"check_score": "a percentage", "check_quiet": "prints on other machines"}
        results = check_text_estimator(
            PercentClassifier(), *labelled_texts(), expected_failed_checks=reasons
        )
        by_name = {result["check_name"]: result for result in results}
        assert by_name["check_score"]["status"] == "xfail"
        assert isinstance(by_name["check_score"]["exception"], AssertionError)
        assert by_name["check_score"]["expected_to_fail_reason"] == "a percentage"
        assert by_name["check_quiet"]["status"] == "passed"
        assert by_name["check_quiet"]["expected_to_fail"]
        assert not by_name["check_classes"]["expected_to_fail"]

    def test_the_estimator_itself_is_not_fitted(self):
        estimator = WordCountClassifier()
        check_text_estimator(estimator, *labelled_texts())
        assert set(vars(estimator)) == {"C", "class_weight"}

    def test_misspelt_expected_failure(self):
        with pytest.raises(
            ValueError, match=r"names 'check_scores', which is no check; .*check_sc"
        ):
            check_text_estimator(
                WordCountClassifier(), expected_failed_checks={"check_scores": "?"}
            )

    def test_class_instead_of_instance(self):
        with pytest.raises(TypeError, match=r"got the class DiceTokenTagger\. Pass DiceTok"):
            check_text_estimator(DiceTokenTagger)

    def test_half_of_the_data(self):
        with pytest.raises(ValueError, match="got X without y"):
            check_text_estimator(DiceTokenTagger(), [["a"]])
        with pytest.raises(ValueError, match="got y without X"):
            text_estimator_checks(DiceTokenTagger(), y=[["a"]])
