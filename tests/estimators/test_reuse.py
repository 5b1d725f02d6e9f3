"""Work that fits share: it changes how often things are computed, not what comes out."""

import json
import pickle
import warnings
from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from skdice import (
    DicePairClassifier,
    DiceQueryTagger,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
)
from skdice.datasets import make_questions
from skdice.estimators._reuse import active_reuse, reuse_work
from skdice.exceptions import TruncationWarning
from skdice.nn._net import TextNet
from skdice.text._tokenizer import WordTokenizer

from ..corpora import easy_corpus, easy_pairs, easy_texts
from ..tiny_models import BUILDERS, change_weights

ROWS = {
    DiceTokenTagger: easy_corpus(16),
    DicePairClassifier: easy_pairs(16),
    DiceTextClassifier: easy_texts(16),
    DiceSpanExtractor: make_questions(12, ratio=10, random_state=0),
    DiceQueryTagger: easy_corpus(16),
}
# The default ones fill the windows of tiny models.
QUERIES = {"PER": "john mary", "LOC": "oslo paris"}


def make(cls, model, **params):
    params = {"max_epochs": 2, "lr": 1e-3, "batch_size": 8, "precision": "fp32", **params}
    if cls is DiceQueryTagger:
        params["queries"] = QUERIES
    return cls(model, loss="dice", random_state=0, verbose=0, **params)


def scores(estimator, X):
    if isinstance(estimator, DiceSpanExtractor):
        return estimator.no_answer_score(X)
    if isinstance(estimator, DiceQueryTagger):
        return estimator._predict_logits(estimator._encode(X).dataset)
    proba = estimator.predict_proba(X)
    return np.concatenate(list(proba)) if proba.dtype == object else proba


@pytest.fixture
def counts(monkeypatch):
    """Count the windows that frozen layers are run on, and the texts that are tokenised."""
    counts = Counter()
    compute, encode = TextNet.compute_frozen_states, WordTokenizer.encode

    def counting_compute(self, batcher, precision, states):
        counts["windows"] += len(states.missing(batcher.dataset))
        return compute(self, batcher, precision, states)

    def counting_encode(self, words):
        is_probe = words == list("abcdefgh")
        counts["words"] += 0 if is_probe else len(words)
        return encode(self, words)

    monkeypatch.setattr(TextNet, "compute_frozen_states", counting_compute)
    monkeypatch.setattr(WordTokenizer, "encode", counting_encode)
    return counts


@pytest.mark.parametrize(
    "family, cls, n_frozen_layers",
    [
        # One layer or both: each with every family, and with every estimator.
        (family, cls, 1 + (i + j) % 2)
        for i, family in enumerate(["bert", "roberta", "xlnet"])
        for j, cls in enumerate(ROWS)
    ],
)
def test_results_are_those_without_reuse(tiny_models, family, cls, n_frozen_layers):
    check_same_results(tiny_models(family), cls, n_frozen_layers)


@pytest.mark.parametrize("family", sorted(set(BUILDERS) - {"bert", "roberta", "xlnet"}))
def test_every_family_can_skip_its_frozen_layers(tiny_models, family):
    check_same_results(tiny_models(family), DiceTokenTagger, 1)


def check_same_results(model, cls, n_frozen_layers):
    X, y = ROWS[cls]
    estimator = make(cls, model, n_frozen_layers=n_frozen_layers, validation_fraction=0.25)
    expected = clone(estimator).fit(X, y)
    expected_scores = scores(expected, X)
    with reuse_work() as reuse:
        clone(estimator).fit(X, y)
        assert reuse.n_bytes > 0
        got = clone(estimator).fit(X, y)
        np.testing.assert_allclose(scores(got, X), expected_scores, atol=1e-5)
    np.testing.assert_allclose(scores(got, X), expected_scores, atol=1e-5)
    np.testing.assert_allclose(got.history_["train_loss"], expected.history_["train_loss"], 1e-5)


def test_accumulated_steps_reuse_states_too(tiny_bert):
    X, y = ROWS[DiceTokenTagger]
    estimator = make(DiceTokenTagger, tiny_bert, n_frozen_layers=1, batch_size=4, accumulate=2)
    expected = clone(estimator).fit(X, y)
    with reuse_work():
        got = clone(estimator).fit(X, y)
    np.testing.assert_allclose(scores(got, X), scores(expected, X), atol=1e-5)


def test_bf16_states_are_computed_in_bf16(tiny_bert):
    X, y = ROWS[DiceTokenTagger]
    estimator = make(DiceTokenTagger, tiny_bert, n_frozen_layers=1, precision="bf16")
    expected = clone(estimator).fit(X, y)
    with reuse_work():
        got = clone(estimator).fit(X, y)
    np.testing.assert_allclose(got.history_["train_loss"], expected.history_["train_loss"], 1e-3)


def test_every_window_and_every_word_is_worked_on_once(tiny_bert, counts):
    X, y = easy_corpus(20)
    tagger = make(DiceTokenTagger, tiny_bert, n_frozen_layers=1)
    with reuse_work():
        for gamma in (0.1, 1.0, 10.0):
            cross_val_score(tagger.set_params(gamma=gamma), X, y, cv=2)
    distinct = len({tuple(sentence) for sentence in X})
    assert counts["windows"] == distinct
    # The training rows of either fold are the test rows of the other.
    assert counts["words"] == sum(map(len, X))


def test_grid_search_finds_the_same(tiny_bert):
    X, y = easy_pairs(24)
    grid = {"loss": ["ce", "dice"], "class_weight": [None, "balanced"]}
    search = GridSearchCV(make(DicePairClassifier, tiny_bert, n_frozen_layers=1), grid, cv=2)
    plain = clone(search).fit(X, y)
    with reuse_work():
        reusing = clone(search).fit(X, y)
    for name in ("split0_test_score", "split1_test_score"):
        np.testing.assert_allclose(plain.cv_results_[name], reusing.cv_results_[name])
    assert plain.best_params_ == reusing.best_params_


def test_new_targets_and_weights_do_not_meet_old_ones(tiny_bert):
    X, y = easy_texts(16)
    other = ["place" if label == "person" else "person" for label in y]
    classifier = make(DiceTextClassifier, tiny_bert)
    expected = [
        scores(clone(classifier).fit(X, *rest), X)
        for rest in ((y,), (other,), (y, [0, 1, 1] * 5 + [0]))
    ]
    with reuse_work():
        for rest, score in zip(((y,), (other,), (y, [0, 1, 1] * 5 + [0])), expected):
            np.testing.assert_allclose(scores(clone(classifier).fit(X, *rest), X), score, atol=1e-5)


def test_other_weights_at_the_same_path_do_not_meet_old_states(own_bert):
    X, y = easy_texts(16)
    classifier = make(DiceTextClassifier, own_bert, n_frozen_layers=1)
    with reuse_work():
        old = clone(classifier).fit(X, y)
        before = scores(old, X[:8])
        change_weights(own_bert)
        new = scores(clone(classifier).fit(X, y), X)
        np.testing.assert_allclose(scores(old, X[:8]), before, atol=1e-6)
        other = [*X[8:], "mary saw rome"]
        after = scores(old, other)
    np.testing.assert_allclose(new, scores(clone(classifier).fit(X, y), X), atol=1e-5)
    np.testing.assert_allclose(after, scores(old, other), atol=1e-5)


def test_another_tokenizer_at_the_same_path_does_not_meet_old_pieces(own_bert):
    """Also for an estimator fitted before, which has the tokenizer of its fit."""
    X, y = easy_texts(16)
    classifier = make(DiceTextClassifier, own_bert)
    other = [*X[8:], "mary saw rome"]
    with reuse_work():
        old = clone(classifier).fit(X, y)
        path = own_bert / "tokenizer.json"
        path.write_text(
            path.read_text()
            .replace('"lowercase":true', '"lowercase":false')
            .replace('"lowercase": true', '"lowercase": false')
        )
        config = own_bert / "tokenizer_config.json"
        config.write_text(json.dumps(json.loads(config.read_text()) | {"do_lower_case": False}))
        upper = [text.upper() for text in X]
        new = clone(classifier).fit(upper, y)
        proba = scores(new, upper)
        after = scores(old, [text.upper() for text in other])
        between = scores(old, upper)
    expected = clone(classifier).fit(upper, y)
    np.testing.assert_allclose(proba, scores(expected, upper), atol=1e-5)
    np.testing.assert_allclose(after, scores(old, [text.upper() for text in other]), atol=1e-5)
    np.testing.assert_allclose(between, scores(old, upper), atol=1e-5)


def test_without_frozen_layers_nothing_is_kept(tiny_bert, counts):
    X, y = easy_corpus(8)
    for n_frozen_layers in (None, 0):
        with reuse_work() as reuse:
            make(DiceTokenTagger, tiny_bert, n_frozen_layers=n_frozen_layers).fit(X, y)
            assert reuse.n_bytes == 0
    assert not counts["windows"]


def test_more_than_the_allowed_memory_is_streamed_and_said_once(tiny_bert):
    X, y = easy_corpus(24)
    tagger = make(DiceTokenTagger, tiny_bert, n_frozen_layers=1)
    expected = scores(clone(tagger).fit(X, y), X)
    with reuse_work(max_bytes=1000) as reuse:
        with pytest.warns(UserWarning, match=r"frozen layers.*reuse_work\(max_bytes"):
            got = scores(clone(tagger).fit(X, y), X)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            clone(tagger).fit(X, y)
        assert reuse.n_bytes <= 1000
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_cut_texts_are_said_once(tiny_bert):
    X, y = easy_texts(12)
    fast = {"max_epochs": 1, "max_length": 4, "random_state": 0, "verbose": 0}
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        with reuse_work():
            for _ in range(2):
                DiceTextClassifier(tiny_bert, **fast).fit(X, y).predict(X)
    cut = [str(w.message) for w in record if w.category is TruncationWarning]
    assert len(cut) == 1
    assert cut[0].endswith("Other fits that share their work do not say so.")
    with pytest.warns(TruncationWarning, match=r"of 12 texts are longer.*: rows? [\d, .]+$"):
        DiceTextClassifier(tiny_bert, **fast).fit(X, y)


def test_the_block_ends_with_what_was_before(tiny_bert):
    assert active_reuse() is None
    with reuse_work() as outer:
        with reuse_work() as inner:
            assert active_reuse() is inner
        assert active_reuse() is outer
    with pytest.raises(ZeroDivisionError), reuse_work():
        1 / 0  # noqa: B018
    assert active_reuse() is None


def test_an_estimator_fitted_inside_works_and_pickles_outside(tiny_bert):
    X, y = easy_corpus(16)
    with reuse_work():
        tagger = make(DiceTokenTagger, tiny_bert, n_frozen_layers=1).fit(X, y)
        inside = scores(tagger, X)
    again = pickle.loads(pickle.dumps(tagger))
    np.testing.assert_allclose(scores(again, X), inside, atol=1e-5)


@pytest.mark.parametrize("max_bytes", [-1, 1.5, "2GB"])
def test_a_limit_must_be_a_number_of_bytes(max_bytes):
    with pytest.raises(ValueError, match="max_bytes"), reuse_work(max_bytes):
        pass
