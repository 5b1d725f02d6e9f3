"""loss="recommended": which loss each estimator takes."""

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
from skdice.estimators._loss import recommended_for_entities
from skdice.losses import DiceLoss

from ..corpora import easy_corpus, easy_labels, easy_pairs, easy_texts
from .test_span import easy_questions


def tagged(n, others):
    """The easy corpus with another tag in place of "O"."""
    X, y = easy_corpus(n)
    return X, [[others if tag == "O" else tag for tag in tags] for tags in y]


def rare(n):
    """Entities of one word, and n words outside for each."""
    return [["mary", *["saw"] * n]] * 8, [["B-PER", *["O"] * n]] * 8


def crowded(n):
    """Entities of one word, n in all and eight to a sentence."""
    counts = [min(8, n - i) for i in range(0, n, 8)]
    return [["mary", "saw"] * k for k in counts], [["B-PER", "O"] * k for k in counts]


@pytest.mark.parametrize(
    "estimator, rows, same",
    [
        (DiceTokenTagger, easy_corpus(16), {"loss": "dice"}),
        (DiceTokenTagger, crowded(800), {"loss": "dice"}),
        (DiceTokenTagger, crowded(801), {"loss": "ce"}),
        (DiceTokenTagger, rare(39), {"loss": "dice"}),
        (DiceTokenTagger, rare(40), {"loss": "wce", "K": 3.0}),
        (DiceTokenTagger, tagged(16, "B-PER"), {"loss": "ce"}),
        (DiceTokenTagger, tagged(16, "NOUN"), {"loss": "ce"}),
        (DiceQueryTagger, easy_corpus(16), {"loss": "dice"}),
        (DiceQueryTagger, crowded(801), {"loss": "dice"}),
        (DiceSpanExtractor, easy_questions(16), {"loss": "ce"}),
        (DicePairClassifier, easy_pairs(16), {"loss": "ce"}),
        (DiceTextClassifier, easy_texts(16), {"loss": "ce"}),
        (DiceTextClassifier, easy_texts(16, n_classes=3), {"loss": "ce"}),
        (DiceTextClassifier, easy_labels(16), {"loss": "ce"}),
    ],
)
def test_is_the_loss_that_the_study_found(tiny_bert, estimator, rows, same):
    fast = {"max_epochs": 1, "lr": 1e-3, "batch_size": 8, "random_state": 0, "verbose": 0}
    recommended, named = (
        estimator(tiny_bert, **loss, **fast).fit(*rows).net_.module_.state_dict()
        for loss in ({"loss": "recommended"}, same)
    )
    assert all(torch.equal(recommended[key], named[key]) for key in named)


def test_entities_of_absent_and_of_held_out_sentences_do_not_count(tiny_bert):
    X, y = crowded(900)
    tagger = DiceTokenTagger(tiny_bert, loss="recommended", max_epochs=1, verbose=0)
    weight = [1.0] * 100 + [0.0] * 13
    assert isinstance(tagger.fit(X, y, sample_weight=weight).net_.criterion_, DiceLoss)
    tagger.set_params(validation_fraction=0.2)
    assert isinstance(tagger.fit(X, y).net_.criterion_, DiceLoss)


def test_class_weights_are_those_of_the_user_if_given(tiny_bert):
    tagger = DiceTokenTagger(tiny_bert, loss="recommended", max_epochs=1, verbose=0)
    weights = [
        tagger.set_params(**given).fit(*rare(60)).net_.criterion_.class_weight
        for given in (
            {},
            {"K": 3.0},
            {"K": 30.0},
            {"K": None, "class_weight": {"O": 0.5}},
        )
    ]
    assert np.array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[0], weights[2])
    assert sorted(weights[3]) == [0.5, 1]


def test_takes_no_weights_where_it_is_cross_entropy(tiny_bert):
    with pytest.raises(ValueError, match=r"K=2\.0 cannot be used with cross-entropy"):
        DiceSpanExtractor(tiny_bert, loss="recommended", K=2.0).fit(*easy_questions(8))


def test_has_no_parameters_to_set(tiny_bert):
    with pytest.raises(ValueError, match=r"gamma=2\.0 cannot be used with loss='recommended'"):
        DiceTokenTagger(tiny_bert, loss="recommended", gamma=2.0).fit(*easy_corpus(8))


@pytest.mark.parametrize(
    "n_entities, n_outside, expected",
    [
        (800, 39, "dice"),
        (801, 39, "ce"),
        (800, 40, "wce"),
        (801, 40, "wce"),
        (10**6, 1000, "wce"),
    ],
)
def test_rarity_comes_before_the_number_of_entities(n_entities, n_outside, expected):
    assert recommended_for_entities(n_entities, n_outside, 1) == expected
