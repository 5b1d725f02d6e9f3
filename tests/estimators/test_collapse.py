"""A fit that finds nothing in its own training rows says so; any other one looks at a few."""

import warnings

import numpy as np
import pytest

from skdice import (
    DicePairClassifier,
    DiceQueryTagger,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
)
from skdice.fitting import Settings, warn_of_collapse
from skdice.losses import CrossEntropyLoss, DiceLoss

from ..corpora import easy_corpus, easy_labels, easy_pairs, easy_texts
from .test_span import easy_questions

FAST = {"max_epochs": 6, "lr": 3e-3, "batch_size": 8, "random_state": 0, "verbose": 0}
LEARNS = {**FAST, "max_epochs": 20, "lr": 5e-3, "batch_size": 4}
NEARLY_NOTHING = 1e-6


def collapsing(name):
    """Return an estimator whose weights let go of what is searched, and its rows."""
    if name == "tags":
        X, y = easy_corpus(16)
        y = [["NOUN" if tag == "O" else "NAME" for tag in row] for row in y]
        return DiceTokenTagger, {"class_weight": {"NAME": NEARLY_NOTHING}}, X, y
    if name == "entities":
        weights = {"B-PER": NEARLY_NOTHING, "B-LOC": NEARLY_NOTHING}
        return DiceTokenTagger, {"class_weight": weights}, *easy_corpus(16)
    if name == "queries":
        queries = {"PER": "who ?", "LOC": "where ?"}
        weights = {"loss": "wce", "class_weight": {1: NEARLY_NOTHING}, "queries": queries}
        return DiceQueryTagger, weights, *easy_corpus(16)
    if name == "questions":
        X, y = easy_questions(16)
        y = [{"text": [], "answer_start": []} for _ in y[1:]] + [y[0]]
        return DiceSpanExtractor, {}, [*X[1:], X[0]], y
    if name == "pairs":
        return DicePairClassifier, {"class_weight": {1: NEARLY_NOTHING}}, *easy_pairs(16)
    X, y = easy_texts(16, n_classes=3)
    rare = sorted(set(y))[1]
    return DiceTextClassifier, {"class_weight": {rare: NEARLY_NOTHING}}, X, y


def with_a_label_of_no_row(X, y):
    return X, np.column_stack([y, np.zeros(len(y), dtype=int)])


MESSAGES = {
    "tags": r"^This fit gave all words the tag 'NOUN' in its training rows",
    "entities": r"^This fit found no entity in its training rows",
    "queries": r"^This fit found no entity in its training rows",
    "questions": r"^This fit answered no question in its training rows",
    "pairs": r"^This fit never predicted 1 in its training rows",
    "texts": r"^This fit never predicted ",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_it_says_so(name, tiny_bert):
    estimator, parameters, X, y = collapsing(name)
    with pytest.warns(UserWarning, match=MESSAGES[name]):
        estimator(tiny_bert, **{**FAST, "loss": "ce", **parameters}).fit(X, y)


@pytest.mark.parametrize(
    "estimator, rows",
    [
        (DiceTokenTagger, easy_corpus(32)),
        (DicePairClassifier, easy_pairs(32)),
        (DiceTextClassifier, with_a_label_of_no_row(*easy_labels(32))),
        (DiceSpanExtractor, easy_questions(32)),
    ],
)
def test_no_warning_where_something_is_found(estimator, rows, quick_bert):
    """In whichever micro-batch."""
    size = {"accumulate": 2, "batch_size": 2}
    with warnings.catch_warnings(record=True, action="always") as caught:
        estimator(quick_bert, loss="ce", **{**LEARNS, **size}).fit(*rows)
    assert not [str(warning.message) for warning in caught if "This fit" in str(warning.message)]


@pytest.mark.parametrize("name", ["entities", "queries", "questions", "texts"])
def test_a_preset_that_is_known_to_collapse(name, tiny_bert):
    estimator, _, X, y = collapsing(name)
    with pytest.warns(UserWarning, match="known to collapse") as record:
        estimator(tiny_bert, loss="dsc-paper", **{**FAST, "max_epochs": 1}).fit(X, y)
    assert len([w for w in record if "known to collapse" in str(w.message)]) == 1


def test_a_bias_of_the_user_is_part_of_what_is_predicted(tiny_bert):
    _, parameters, X, y = collapsing("entities")
    tagger = DiceTokenTagger(tiny_bert, loss="ce", **parameters, **FAST, background_bias=-50.0)
    with warnings.catch_warnings(action="error", category=UserWarning):
        assert tagger.fit(X, y).predict(X)[0] != ["O"] * len(X[0])


def test_it_is_about_the_epoch_that_is_kept(tiny_bert, tmp_path):
    """Also where another process trained it."""
    _, parameters, X, y = collapsing("entities")
    tagger = DiceTokenTagger(
        tiny_bert, loss="ce", **parameters, **FAST, checkpoint_dir=tmp_path / "fit"
    )
    for _ in range(2):
        with pytest.warns(UserWarning, match=MESSAGES["entities"]):
            tagger.fit(X, y)
    assert "predicted" not in tagger.history_


@pytest.mark.parametrize(
    "loss, helps",
    [
        (CrossEntropyLoss(), "loss='wce', more epochs or another lr."),
        (DiceLoss(memory=10), r"\(memory=30\), class weights \(K=3\), more epochs"),
        (DiceLoss(memory=30, class_weight=[1, 2]), "helps: more epochs"),
    ],
    ids=repr,
)
def test_what_helps(loss, helps):
    settings = Settings(loss="x", gamma=2.0)
    with pytest.warns(UserWarning, match=helps) as record:
        warn_of_collapse(settings, loss, 0.1, 3, "found nothing")
    assert "(loss='x', gamma=2, lr=0.1, 3 epochs)" in str(record[0].message)
