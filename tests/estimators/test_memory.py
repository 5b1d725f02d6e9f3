"""memory= on estimators: what "auto" is, and that what is remembered is part of a fit."""

import numpy as np
import pytest
import torch

from skdice import (
    DicePairClassifier,
    DiceQueryTagger,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
)
from skdice.estimators._loss import memory_for
from skdice.losses import DiceLoss, TverskyLoss

from ..corpora import easy_corpus, easy_labels, easy_pairs, easy_texts
from .test_span import easy_questions

FAST = {"max_epochs": 1, "lr": 3e-3, "batch_size": 2, "random_state": 0, "verbose": 0}


@pytest.mark.parametrize(
    "n_positives, n_steps, expected",
    [
        (40 * 100, 100, 0),  # A step has 40.
        (20 * 100, 100, 2),
        (4 * 100, 100, 10),
        (1, 100, 10),
        (1, 20, 5),  # No more than a quarter of an epoch.
        (1, 4, 0),
        (0, 100, 0),
        (np.inf, 100, 0),
    ],
)
def test_as_many_steps_as_have_enough_positives(n_positives, n_steps, expected):
    assert memory_for(n_positives, n_steps) == expected


def sparse(n, every):
    """Sentences of which only some have an entity."""
    X = [["mary", "saw", "the", "house"]] * n
    return X, [["B-PER" if i % every == 0 else "O", "O", "O", "O"] for i in range(n)]


def rare_positives(n):
    X, _ = easy_pairs(n)
    return X, [int(i % 10 == 0) for i in range(n)]


@pytest.mark.parametrize(
    "estimator, loss, rows, expected",
    [
        (DiceTokenTagger, "dice", sparse(80, 1), 10),
        (DiceTokenTagger, "dice", sparse(80, 20), 10),
        (DiceTokenTagger, "dice", sparse(16, 2), 2),
        (DiceTokenTagger, TverskyLoss(), sparse(80, 1), 10),
        (DiceTokenTagger, DiceLoss(average="macro"), easy_corpus(80), 10),
        (DiceTokenTagger, DiceLoss(level="example"), sparse(80, 1), 0),
        (DiceTokenTagger, DiceLoss(memory=3), sparse(80, 1), 3),
        (DiceTokenTagger, DiceLoss(memory=0), sparse(80, 1), 0),
        (DicePairClassifier, "dsc", rare_positives(80), 10),
        (DicePairClassifier, "dsc-official", rare_positives(80), 0),
        (DiceTextClassifier, "dice", easy_texts(80, n_classes=3), 0),
        (DiceTextClassifier, DiceLoss(average="macro"), easy_texts(80, n_classes=3), 10),
        (DiceTextClassifier, "dice", easy_labels(80), 10),
        (DiceTokenTagger, "dice", ([["mary", "saw"] * 80] * 16, [["B-PER", "O"] * 80] * 16), 0),
        (DiceSpanExtractor, "dice", easy_questions(80), 10),
        (DiceQueryTagger, "dice", easy_corpus(80), 10),
    ],
)
def test_auto_in_each_estimator(estimator, loss, rows, expected, quick_bert):
    fitted = estimator(quick_bert, loss=loss, negative_ratio=None, **FAST).fit(*rows)
    assert fitted.loss_.memory == expected
    if not isinstance(loss, str):
        assert fitted.get_params()["loss"].memory == loss.memory


def test_steps_are_those_of_the_optimiser(quick_bert):
    X, y = sparse(80, 1)
    size = {**FAST, "accumulate": 2}
    assert DiceTokenTagger(quick_bert, loss="dice", **size).fit(X, y).loss_.memory == 5


def weights(estimator, X, y):
    fitted = estimator.fit(X, y)
    return [weight.clone() for weight in fitted.net_.module_.state_dict().values()]


def test_it_matters_and_starts_empty(quick_bert):
    tagger = DiceTokenTagger(quick_bert, loss="dice", memory=5, **FAST)
    X, y = sparse(16, 4)
    first, again = weights(tagger, X, y), weights(tagger, X, y)
    assert all(map(torch.equal, first, again))
    alone = weights(tagger.set_params(memory=0), X, y)
    assert not all(map(torch.equal, first, alone))
