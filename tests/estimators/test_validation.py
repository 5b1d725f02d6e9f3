import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skdice import DiceTextClassifier, DiceTokenTagger
from skdice.fitting import Given
from skdice.metrics import find_entities
from skdice.model_selection import tune_decision
from skdice.tasks import split_rows

from ..corpora import easy_corpus, easy_texts
from ..io.conftest import CASES, make
from ..quick import quick
from ..spies import internals

FAST = {"max_epochs": 2, "lr": 5e-3, "batch_size": 8, "random_state": 0, "verbose": 0}


def take(rows, index):
    return rows[index] if isinstance(rows, np.ndarray) else [rows[i] for i in index]


@pytest.fixture(params=quick(["tagger", "texts", "questions", "queries"], CASES))
def case(request, tiny_bert):
    estimator, *rows = make(request.param, tiny_bert, max_epochs=2)
    return estimator, rows, CASES[request.param][1](8, seed=1)


def test_they_are_scored_and_nothing_is_learned_of_them(case):
    estimator, (X, y), (X_valid, y_valid) = case
    alone = estimator.fit(X, y).net_.module_.state_dict()
    estimator.fit(X, y, validation=(X_valid, y_valid))
    assert estimator.history_["valid_score"].notna().all()
    for name, weight in estimator.net_.module_.state_dict().items():
        np.testing.assert_array_equal(weight, alone[name])
    assert estimator.score(X_valid, y_valid) == estimator.history_["valid_score"].iloc[-1]


def test_early_stopping_and_decisions(tiny_bert):
    X, y = easy_corpus(16)
    valid = *easy_corpus(24, seed=1), np.arange(24) % 5 + 1.0
    tagger, plain = (
        DiceTokenTagger(tiny_bert, patience=1, background_bias=bias, loss="ce", **FAST)
        for bias in ("auto", 0.0)
    )
    tagger.fit(X, y, validation=valid)
    tuned = tune_decision(plain.fit(X, y, validation=valid), *valid[:2], sample_weight=valid[2])
    assert tagger.background_bias_ == tuned.background_bias_
    # Tools of scikit-learn hand the rows on.
    search = GridSearchCV(plain, {"lr": [1e-3]}, cv=2).fit(X, y, validation=valid)
    pipeline = make_pipeline("passthrough", plain).fit(X, y, dicetokentagger__validation=valid)
    for fitted in (search.best_estimator_, pipeline[-1]):
        assert "valid_score" in fitted.history_


def test_weights_of_rows_that_a_fraction_holds_out(tiny_bert, monkeypatch):
    """They count as repetitions in the score."""
    tagger, X, y = make("tagger", tiny_bert, max_epochs=2, validation_fraction=0.5)
    split, parts = Given.split, []
    monkeypatch.setattr(Given, "split", lambda *args: parts.append(split(*args)) or parts[-1])
    weight = np.arange(len(X)) % 5 + 1
    tagger.fit(X, y, weight)
    held_out = parts[0][1].number
    copies = np.repeat(held_out, weight[held_out])
    score = tagger.score(take(X, copies), take(y, copies))
    assert tagger.history_["valid_score"].iloc[-1] == pytest.approx(score)


def test_weights_of_rows_to_validate_on(case):
    """They count as repetitions."""
    estimator, (X, y), (X_valid, y_valid) = case
    n_valid = len(X_valid)
    times = np.arange(n_valid) % 3
    copies = np.repeat(np.arange(n_valid), times)
    estimator.fit(X, y, validation=tuple(take(rows, copies) for rows in (X_valid, y_valid)))
    expected = pytest.approx(estimator.history_["valid_score"].tolist())
    estimator.fit(X, y, validation=(X_valid, y_valid, times))
    assert estimator.history_["valid_score"].tolist() == expected


def test_an_unknown_tag_or_label_counts_as_missed(tiny_bert):
    X, y = easy_corpus(16)
    tagger = DiceTokenTagger(tiny_bert, **FAST)
    tagger.fit(X, y, validation=([["x", "y"]], [["B-NEW", "O"]]))
    assert find_entities(["B-NEW", ""]) == find_entities(["B-NEW", "O"])
    assert "B-NEW" not in tagger.classes_
    assert set(tagger.history_["valid_score"]) == {0}
    X, y = easy_texts(16)
    classifier = DiceTextClassifier(tiny_bert, **FAST).fit(X, y, validation=(X[:2], ["new"] * 2))
    assert classifier.history_["valid_score"].tolist() == [0, 0]


def test_labels_of_another_kind_are_refused_before_training(tiny_bert):
    X, y = easy_texts(16)
    classifier = DiceTextClassifier(tiny_bert, **FAST)
    with pytest.raises(ValueError, match=r"labels such as .*'person'.*; that of row 0 is 5"):
        classifier.fit(X, y, validation=(X[:2], [5, 6]))
    extractor, X, y = make("questions", tiny_bert)
    with pytest.raises(ValueError, match="4 rows of X and 3 of y"):
        extractor.fit(X, y, validation=(X[:4], y[:3]))
    assert not any(hasattr(made, "net_") for made in (classifier, extractor))


class TestGroups:
    def test_parts(self):
        """One group alone is parted, and every class is in both parts."""
        train, valid = split_rows(8, 0.25, np.random.default_rng(0), groups=["a"] * 8)
        assert (len(train), len(valid)) == (6, 2)
        y = np.array(["rare"] * 4 + ["often"] * 76)
        strata = np.unique(y, return_inverse=True)[1]
        train, valid = split_rows(80, 0.25, np.random.default_rng(0), strata)
        assert sorted([*train, *valid]) == list(range(80))
        assert [(y[part] == "rare").sum() for part in (train, valid)] == [3, 1]
        assert len(valid) == 20

    def test_fit(self, case):
        estimator, (X, y), _ = case
        sizes = {"a": 2, "b": 3, "c": 5, "d": 6}  # A quarter of the rows alone would be 4.
        groups = pd.Series([name for name, size in sizes.items() for _ in range(size)])
        estimator.set_params(validation_fraction=0.25).fit(X, y, groups=groups)
        assert len(X) - internals(estimator).fitted.n_rows in sizes.values()

    def test_folds(self, tiny_bert, seen):
        X, y = easy_corpus(12)
        groups = [("d", i // 3) if i < 9 else None for i in range(12)]
        DiceTokenTagger(tiny_bert, background_bias="cv", **FAST).fit(X, y, groups=groups)
        first, *parts = (rows.groups for rows in seen)
        assert first == groups
        assert sorted(map(len, parts)) == [9, 9, 9, 9]
        assert all(part.count(name) in (0, 3) for part in parts for name in set(groups))


@pytest.mark.parametrize("case", ["tagger", "queries", "texts"])
def test_a_part_without_a_class(case, tiny_bert):
    """The rows to validate on have all of it: here those of one group."""
    estimator, X, _ = make(case, tiny_bert, max_epochs=1, validation_fraction=0.5)
    X = X[:8] if case == "texts" else [["oslo"]] * 8
    y = ["rare", *["often"] * 7] if case == "texts" else [["B-PER"], *[["O"]] * 7]
    groups = ["a", "a", *range(6)]
    found = []
    for seed in range(6):
        try:
            estimator.set_params(random_state=seed).fit(X, y, groups=groups)
        except ValueError as error:
            found.append(str(error))
    assert 0 < len(found) < 6
    assert "Without rows held out by validation_fraction: Dice" in found[0]


ROW = [["x"]], [["O"]]
ERRORS = {
    "both": ({"validation_fraction": 0.2}, {"validation": ([], [])}, "takes the place of"),
    "no rows": ({}, {"validation": ([], [])}, "must have a row to validate on"),
    "other things": ({}, {"validation": "dev"}, "must be a tuple"),
    "a list of both": ({}, {"validation": [["a"], ["b", "c"]]}, "must be a tuple"),
    "numbers of rows": ({}, {"validation": [0, 99]}, "must be a tuple"),
    "bad tags": ({}, {"validation": ([["x"]], [["O", "O"]])}, "row 0 has 1 words and 2 tags"),
    "shape": ({}, {"validation": (*ROW, [1.0, 1.0])}, "For the rows to validate on: .*shape"),
    "zero": ({}, {"validation": (*ROW, [0.0])}, "For the rows to validate on: .*zero in all rows"),
    "negative": ({}, {"validation": (*ROW, [-1.0])}, "For the rows .*: .*row 0 has -1.0"),
    "groups": ({}, {"groups": ["a"]}, "one entry for each row of X; got 1 for 8 rows"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name, tiny_bert):
    parameters, extra, message = ERRORS[name]
    tagger = DiceTokenTagger(tiny_bert, **FAST, **parameters)
    with pytest.raises(ValueError, match=message):
        tagger.fit(*easy_corpus(8), **extra)
    assert not hasattr(tagger, "net_")
