import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch

from skdice import DiceQueryTagger
from skdice.metrics import entity_f1_score, get_entities
from skdice.model_selection import tune_decision
from skdice.tasks import default_query
from skdice.text import Entity

from ..corpora import FILLERS, NAMES, easy_corpus
from ..quick import quick
from ..spies import encoded_rows, internals

FAST = {
    "loss": "dice", "queries": {"PER": "john mary", "LOC": "oslo paris"}, "max_epochs": 8,
    "lr": 5e-3, "batch_size": 8, "random_state": 1, "verbose": 0,
}  # fmt: skip


def make(model, **parameters):
    return DiceQueryTagger(model, **{**FAST, **parameters})


def spans_of(tags):
    return [[tuple(span) for span in get_entities(row)] for row in tags]


def plain(rows):
    return [[tuple(entity)[:3] for entity in row] for row in rows]


@pytest.fixture(scope="module")
def corpus():
    return easy_corpus(80)


@pytest.fixture(scope="module")
def few():
    """Rows of which nothing has to be learned."""
    return easy_corpus(24)


@pytest.fixture(scope="module")
def fitted_with(quick_bert, corpus):
    return cache(lambda loss: make(quick_bert, loss=loss).fit(*corpus))


@pytest.fixture(scope="module")
def fitted(fitted_with):
    return fitted_with("dice")


def nested_corpus(n, seed=0):
    """Sentences with a place inside a firm, a place inside a place, a person, or a place."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for i in range(n):
        city, person = (str(rng.choice(NAMES[label])) for label in ("LOC", "PER"))
        name, inside = [
            ([city, "company"], [(0, 1, "LOC"), (0, 2, "ORG")]),
            (["new", city], [(0, 2, "LOC"), (1, 2, "LOC")]),
            ([person], [(0, 1, "PER")]),
            ([city], [(0, 1, "LOC")]),
        ][i % 4]
        before, after = (list(map(str, rng.choice(FILLERS, rng.integers(1, 4)))) for _ in range(2))
        X.append([*before, *name, *after])
        y.append([(start + len(before), end + len(before), label) for start, end, label in inside])
    return X, y


class TestLearning:
    @pytest.mark.parametrize("loss", quick(["dice"], ["ce", "dice", "dsc-official"]))
    def test_every_loss_learns(self, fitted_with, loss):
        assert fitted_with(loss).score(*easy_corpus(30, seed=1)) > 0.5

    @pytest.mark.parametrize("match_candidates", quick(["gold"], ["all", "gold"]))
    def test_candidates_of_matches(self, quick_bert, corpus, match_candidates):
        tagger = make(quick_bert, match_candidates=match_candidates).fit(*corpus)
        assert tagger.score(*easy_corpus(30, seed=1)) > 0.8
        assert tagger.net_.criterion_.match_candidates == match_candidates

    def test_tags_and_spans_are_the_same_data(self, tiny_bert, few, fitted):
        X, tags = few
        first, second = (
            make(tiny_bert, max_epochs=1, span_weights=[1, 2, 3]).fit(X, y)
            for y in (tags, spans_of(tags))
        )
        left, right = (each.net_.module_.state_dict() for each in (first, second))
        assert all(torch.equal(left[name], right[name]) for name in left)
        assert first.predict(X).tolist() == second.predict(X).tolist()
        assert second.net_.criterion_.span_weights == (1, 2, 3)
        assert second.scheme_ == fitted.scheme_ == "IOB2"
        assert fitted.score(X, tags) == fitted.score(X, spans_of(tags)) > 0.5
        # Entities with scores are gold as well.
        assert fitted.score(X, fitted.predict_spans(X)) == 1
        # What a flat tagger cannot give may be scored.
        gold = [[(0, 1, "PER"), (0, 3, "PER"), (2, 3, "LOC")]]
        assert fitted.score([["john", "saw", "oslo"]], gold) == pytest.approx(4 / 5)

    def test_nested_entities(self, tiny_bert):
        """It gives more than the best choice of entities without overlap could."""
        queries = {"ORG": "company", "LOC": "oslo new", "PER": "john mary"}
        how = {"decode": "nested", "lr": 3e-3, "max_epochs": 14, "random_state": 0}
        tagger = make(tiny_bert, queries=queries, **how)
        tagger.fit(*nested_corpus(80))
        X, y = nested_corpus(40, seed=1)
        n_flat, n_gold = 40, sum(map(len, y))  # One of each sentence, for its entities overlap.
        best_flat_score = 2 * n_flat / (n_flat + n_gold)
        assert tagger.score(X, y) > 0.85 > best_flat_score == 0.8
        found = plain(tagger.predict_spans(X))
        assert sum(len(set(row) & set(gold)) for row, gold in zip(found, y)) > 1.2 * n_flat
        assert tagger.set_params(decode="flat").score(X, y) <= best_flat_score


class TestPrediction:
    def test_scores(self, fitted):
        X, y = easy_corpus(30, seed=1)
        assert fitted.score(X, y) == pytest.approx(entity_f1_score(y, fitted.predict(X)))
        assert fitted.score(X, y) > 0.95
        assert fitted.score(X, [["O"] * len(row) for row in X]) == 0
        assert fitted.score([["the"]], [["O"]]) == 0, "no entity in both"

    @pytest.mark.parametrize("names, expected", [
        ("BI", "B-PER I-PER I-PER O B-LOC"), ("S", "B-PER I-PER E-PER O S-LOC"),
        ("BMES", "B-PER M-PER E-PER O S-LOC"), ("U", "B-PER I-PER L-PER O U-LOC"),
        ("I", "I-PER I-PER I-PER O I-LOC"),
    ])  # fmt: skip
    def test_scheme_of_the_training_tags(self, tiny_bert, names, expected):
        """Also in tags that training has not shown, as far as it showed the scheme."""
        X, y = [["a"] * 9], [[*(f"{name}-PER" for name in names), *["O"] * (9 - len(names))]]
        tagger = make(tiny_bert, max_epochs=1, queries={"PER": "john"}).fit(X, y)
        found = [(1.0, Entity(0, 3, "PER", 0.9)), (1.0, Entity(4, 5, "LOC", 0.9))]
        assert " ".join(internals(tagger).task.tags([found], [["a"] * 5])[0]) == expected


@pytest.mark.parametrize("form", [
    lambda rows: pd.Series(rows, index=range(len(rows), 0, -1)),
    lambda rows: [[list(span) for span in row] for row in rows],
    lambda rows: [tuple((np.int64(a), np.int32(b), np.str_(c)) for a, b, c in r) for r in rows],
    lambda rows: [row * 2 for row in rows],
    lambda rows: [np.array(row, dtype=object) for row in rows],
], ids=["Series", "lists", "numpy scalars", "twice", "arrays"])  # fmt: skip
def test_spans_may_come_in_many_forms(few, form):
    X, rows = few[0], spans_of(few[1])
    read = internals(DiceQueryTagger()).task.read_training
    assert repr(read(X, form(rows))) == repr(read(X, rows))


class TestQueries:
    def fit(self, model, labels, queries):
        """Return what is asked for the labels, and the warnings."""
        y = [[(i, i + 1, label) for i, label in enumerate(labels)]] * 4
        with warnings.catch_warnings(record=True, action="always") as caught:
            tagger = make(model, queries=queries, max_epochs=1).fit([["a", "b", "c"]] * 4, y)
        return tagger.queries_, [str(w.message) for w in caught if "quer" in str(w.message)]

    def test_given_ones_are_asked_and_missing_ones_warned_of_once(self, tiny_bert):
        given = {"PER": "john", "UNUSED": "company"}
        assert self.fit(tiny_bert, ["PER"], given) == ({"PER": "john"}, [])
        assert self.fit(tiny_bert, ["TEAM"], None) == ({"TEAM": "TEAM"}, [])
        asked, messages = self.fit(tiny_bert, ["AGE_GROUP", "AGE", "PER"], {"PER": "john"})
        assert asked == {"AGE": "AGE", "AGE_GROUP": "AGE GROUP", "PER": "john"}
        assert len(messages) == 1
        assert "'AGE', 'AGE_GROUP'; asked is 'AGE', 'AGE GROUP'" in messages[0]

    def test_defaults(self):
        """Common types have a question, others are asked by name."""
        for label in ("PER", "per", "Person", "PERS", "people"):
            assert default_query(label).startswith("Which people are")
        for label in ("LOC", "ORG", "MISC", "GPE", "Disease", "DATE"):
            assert re.fullmatch(r"Which .*\?", default_query(label))
        assert default_query("blood_test") == "blood test"


WINDOWED = {
    "loss": "dice", "memory": 0, "negative_ratio": None,
    "queries": {"PER": "john mary", "LOC": "oslo paris"}, "max_epochs": 12, "lr": 7e-3,
    "batch_size": 8, "random_state": 3, "verbose": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def windowed(tiny_bert):
    """Trained on sentences of one window of up to 11 pieces."""
    return DiceQueryTagger(tiny_bert, max_length=16, stride=3, **WINDOWED).fit(*easy_corpus(80))


@pytest.fixture(scope="module")
def hasty(tiny_bert):
    """Trained for too short a time: its best threshold is not 0."""
    return DiceQueryTagger(tiny_bert, **{**WINDOWED, "max_epochs": 3}).fit(*easy_corpus(40))


def joined(n_sentences, seed=3):
    """Return one long sentence as words, and its tags."""
    X, y = easy_corpus(n_sentences, seed=seed)
    return [[word for row in X for word in row]], [[tag for row in y for tag in row]]


@pytest.mark.slow
def test_entities_of_every_window_are_found(quick_bert):
    rows, tags = map(list, easy_corpus(80))
    for seed in (4, 5, 6):
        long, long_tags = joined(40, seed)
        rows, tags = rows + long, tags + long_tags
    parameters = {**WINDOWED, "lr": 5e-3, "random_state": 1, "precision": "fp32"}
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
    def test_counts_as_missed_wherever_it_lies(self, windowed):
        """2 n_right / (n_found + n_gold), with all gold there is."""
        X, y = easy_corpus(20, seed=1)
        X, gold = [*X, ["the"] * 100], [*spans_of(y), []]
        assert windowed.score(X, gold) == 1
        for missed in [(0, 90, "LOC"), (98, 100, "PER"), (0, 1, "NEW")]:
            assert windowed.score(X, [*gold[:-1], [missed]]) == pytest.approx(40 / 41)
        several = [(0, 90, "LOC"), (98, 100, "PER"), (0, 1, "NEW"), (0, 1, "PER")]
        assert windowed.score(X, [*gold[:-1], several]) == pytest.approx(40 / 44)

    def test_label_without_a_query(self, windowed):
        X, y = easy_corpus(20, seed=1)
        y[0] = [tag.replace("PER", "NEW") for tag in y[0]]
        assert windowed.score(X, y) == pytest.approx(2 * 19 / 40)
        assert windowed.score(X, y) == pytest.approx(entity_f1_score(y, windowed.predict(X)))
        assert windowed.score([["the"]], [["B-NEW"]]) == 0

    def test_entities_longer_than_what_windows_share_warn(self, tiny_bert):
        X, y = [["john"] * 30, ["mary"] * 3], [[(2, 29, "PER")], [(0, 1, "PER")]]
        tagger = DiceQueryTagger(tiny_bert, max_length=16, **{**WINDOWED, "max_epochs": 1})
        with pytest.warns(UserWarning, match=r"^1 entities are longer .* larger stride or max_le"):
            tagger.fit(X, y)
        with warnings.catch_warnings(action="error"):
            tagger.score(X, y)
            tagger.set_params(max_length=None).fit(X, y)


@pytest.mark.parametrize("decode", ["flat", "nested"])
def test_tuned_threshold_is_the_best_of_all(hasty, decode):
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
