"""DiceQueryTagger: long sentences, gold that it cannot find, and its tuned threshold."""

import warnings

import pytest

from skdice import DiceQueryTagger
from skdice.metrics import entity_f1_score
from skdice.model_selection import tune_decision

from ..corpora import easy_corpus
from ..spies import encoded_rows
from .test_query import plain, spans_of

FAST = {
    "loss": "dice",
    "memory": 0,
    "negative_ratio": None,
    "queries": {"PER": "john mary", "LOC": "oslo paris"},
    "max_epochs": 12,
    "lr": 7e-3,
    "batch_size": 8,
    "random_state": 3,
    "verbose": 0,
}


@pytest.fixture(scope="module")
def fitted(tiny_bert):
    """Trained on sentences of one window of up to 11 pieces."""
    return DiceQueryTagger(tiny_bert, max_length=16, stride=3, **FAST).fit(*easy_corpus(80))


@pytest.fixture(scope="module")
def hasty(tiny_bert):
    """Trained for too short a time: its best threshold is not 0."""
    return DiceQueryTagger(tiny_bert, **{**FAST, "max_epochs": 3}).fit(*easy_corpus(40))


def joined(n_sentences, seed=3):
    """Return one long sentence as words, and its tags."""
    X, y = easy_corpus(n_sentences, seed=seed)
    return [[word for row in X for word in row]], [[tag for row in y for tag in row]]


class TestLongSentences:
    def test_entities_of_every_window_are_found(self, quick_bert):
        rows, tags = map(list, easy_corpus(80))
        for seed in (4, 5, 6):
            long, long_tags = joined(40, seed)
            rows, tags = rows + long, tags + long_tags
        parameters = {**FAST, "lr": 5e-3, "random_state": 1, "precision": "fp32"}
        tagger = DiceQueryTagger(quick_bert, max_length=16, stride=3, **parameters).fit(rows, tags)
        X, y = joined(40)
        windows = encoded_rows(tagger, X)
        assert len(windows) > 30
        assert len(X[0]) > 64, "more than the model could read at once"
        assert tagger.score(X, y) > 0.9
        found = plain(tagger.predict_spans(X))[0]
        assert found[-1][1] > len(X[0]) - 8
        assert len(set(found)) == len(found)


class TestMissedGold:
    def test_counts_as_missed_wherever_it_lies(self, fitted):
        """2 n_right / (n_found + n_gold), with all gold there is."""
        X, y = easy_corpus(20, seed=1)
        X, gold = [*X, ["the"] * 100], [*spans_of(y), []]
        assert fitted.score(X, gold) == 1
        for missed in [(0, 90, "LOC"), (98, 100, "PER"), (0, 1, "NEW")]:
            assert fitted.score(X, [*gold[:-1], [missed]]) == pytest.approx(40 / 41)
        several = [(0, 90, "LOC"), (98, 100, "PER"), (0, 1, "NEW"), (0, 1, "PER")]
        assert fitted.score(X, [*gold[:-1], several]) == pytest.approx(40 / 44)

    def test_label_without_a_query(self, fitted):
        X, y = easy_corpus(20, seed=1)
        y[0] = [tag.replace("PER", "NEW") for tag in y[0]]
        assert fitted.score(X, y) == pytest.approx(2 * 19 / 40)
        assert fitted.score(X, y) == pytest.approx(entity_f1_score(y, fitted.predict(X)))
        assert fitted.score([["the"]], [["B-NEW"]]) == 0

    def test_entities_longer_than_what_windows_share_warn(self, tiny_bert):
        X, y = [["john"] * 30, ["mary"] * 3], [[(2, 29, "PER")], [(0, 1, "PER")]]
        tagger = DiceQueryTagger(tiny_bert, max_length=16, **{**FAST, "max_epochs": 1})
        with pytest.warns(UserWarning, match=r"^1 entities are longer .* larger stride or max_le"):
            tagger.fit(X, y)
        with warnings.catch_warnings(action="error"):
            tagger.score(X, y)
            tagger.set_params(max_length=None).fit(X, y)

    def test_nested_gold_of_a_flat_tagger(self, fitted):
        """To score is allowed: it shows what flat decoding cannot give."""
        X, gold = [["john", "saw", "oslo"]], [[(0, 1, "PER"), (0, 3, "PER"), (2, 3, "LOC")]]
        assert fitted.score(X, gold) == pytest.approx(4 / 5)

    def test_scores_of_entities_are_accepted_as_gold(self, fitted):
        X, _ = easy_corpus(10, seed=1)
        assert fitted.score(X, fitted.predict_spans(X)) == 1


class TestTunedThreshold:
    @pytest.mark.parametrize("decode", ["flat", "nested"])
    def test_is_the_best_of_all(self, hasty, decode):
        X, y = easy_corpus(40, seed=1)
        tuned = tune_decision(hasty.set_params(decode=decode), X, y)
        assert hasty.threshold_ == 0.5, "the estimator stays as it is"
        other = tune_decision(hasty, X, y)
        scores = {}
        for threshold in (0.02, 0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.98):
            other.threshold_ = threshold
            scores[threshold] = other.score(X, y)
        assert max(scores.values()) > min(scores.values())
        # Of 40 sentences it is drawn to a half a little.
        assert tuned.score(X, y) >= max(scores[0.5], max(scores.values()) - 0.05)
