"""loss="auto", the default: which loss each estimator takes, and what it says of it."""

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
from skdice.losses import DiceLoss

from ..corpora import easy_corpus, easy_labels, easy_pairs, easy_texts
from .test_span import easy_questions


def tagged(n, others):
    """The easy corpus with another tag in place of "O"."""
    X, y = easy_corpus(n)
    return X, [[others if tag == "O" else tag for tag in tags] for tags in y]


def rare(n):
    """Entities of one word, and n sentences without for each."""
    X = [["mary", "saw"], *[["saw", "saw"]] * n] * 4
    return X, [["B-PER", "O"], *[["O", "O"]] * n] * 4


def crowded(n):
    """Entities of one word, n in all and eight to a sentence."""
    counts = [min(8, n - i) for i in range(0, n, 8)]
    return [["mary", "saw"] * k for k in counts], [["B-PER", "O"] * k for k in counts]


@pytest.mark.parametrize(
    "estimator, rows, same, why",
    [
        (DiceTokenTagger, easy_corpus(16), "dice", "few entities: 16"),
        (DiceTokenTagger, crowded(800), "dice", "few entities: 800"),
        (DiceTokenTagger, crowded(801), "ce", "many entities: 801"),
        (DiceTokenTagger, rare(4), "dice", "few entities: 4"),
        (DiceTokenTagger, rare(5), "dice", "entities are rare: 4 of 24"),
        (DiceTokenTagger, tagged(16, "B-PER"), "ce", "no other loss"),
        (DiceTokenTagger, tagged(16, "NOUN"), "ce", "no other loss"),
        (DiceQueryTagger, easy_corpus(16), "dice", "few words"),
        (DiceQueryTagger, crowded(801), "dice", "few words"),
        (DiceSpanExtractor, easy_questions(16), "ce", "no other loss"),
        (DicePairClassifier, easy_pairs(16), "ce", "no other loss"),
        (DiceTextClassifier, easy_texts(16), "ce", "no other loss"),
        (DiceTextClassifier, easy_texts(16, n_classes=3), "ce", "no other loss"),
        (DiceTextClassifier, easy_labels(16), "ce", "no other loss"),
    ],
)
def test_is_the_loss_that_was_best(tiny_bert, estimator, rows, same, why):
    fast = {"max_epochs": 1, "lr": 1e-3, "batch_size": 8, "random_state": 0, "verbose": 0}
    chosen, named = (
        estimator(tiny_bert, **loss, **fast).fit(*rows) for loss in ({}, {"loss": same})
    )
    assert why in chosen.loss_reason_
    assert named.loss_reason_ is None
    weights = [fitted.net_.module_.state_dict() for fitted in (chosen, named)]
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[1])


def test_entities_of_absent_and_of_held_out_sentences_do_not_count(tiny_bert):
    X, y = crowded(900)
    tagger = DiceTokenTagger(tiny_bert, max_epochs=1, verbose=0)
    weight = [1.0] * 100 + [0.0] * 13
    assert isinstance(tagger.fit(X, y, sample_weight=weight).net_.criterion_, DiceLoss)
    tagger.set_params(validation_fraction=0.2)
    assert isinstance(tagger.fit(X, y).net_.criterion_, DiceLoss)


def test_class_weights_are_those_of_the_user(tiny_bert):
    tagger = DiceTokenTagger(tiny_bert, max_epochs=1, verbose=0)
    weights = [
        tagger.set_params(**given).fit(*rare(6)).net_.criterion_.class_weight
        for given in ({}, {"K": 3.0}, {"K": 30.0}, {"K": None, "class_weight": {"O": 0.5}})
    ]
    assert weights[0] is None
    assert not np.array_equal(weights[1], weights[2])
    assert sorted(weights[3]) == [0.5, 1]
