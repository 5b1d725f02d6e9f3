"""loss="recommended": which loss each estimator takes."""

import pytest
import torch

from skdice import (
    DicePairClassifier,
    DiceQueryTagger,
    DiceSpanExtractor,
    DiceTextClassifier,
    DiceTokenTagger,
)

from ..corpora import easy_corpus, easy_labels, easy_pairs, easy_texts
from .test_span import easy_questions


def tagged(n, others):
    """The easy corpus with another tag in place of "O"."""
    X, y = easy_corpus(n)
    return X, [[others if tag == "O" else tag for tag in tags] for tags in y]


@pytest.mark.parametrize(
    "estimator, rows, name",
    [
        (DiceTokenTagger, easy_corpus(16), "dice"),
        (DiceTokenTagger, easy_corpus(500), "dice"),
        (DiceTokenTagger, easy_corpus(501), "ce"),
        (DiceQueryTagger, easy_corpus(16), "dice"),
        (DiceQueryTagger, easy_corpus(501), "ce"),
        (DiceTokenTagger, tagged(16, "B-PER"), "ce"),
        (DiceTokenTagger, tagged(16, "NOUN"), "ce"),
        (DiceSpanExtractor, easy_questions(16), "ce"),
        (DicePairClassifier, easy_pairs(16), "ce"),
        (DiceTextClassifier, easy_texts(16), "ce"),
        (DiceTextClassifier, easy_texts(16, n_classes=3), "ce"),
        (DiceTextClassifier, easy_labels(16), "ce"),
    ],
)
def test_is_the_loss_that_the_study_found(tiny_bert, estimator, rows, name):
    fast = {"max_epochs": 1, "lr": 1e-3, "batch_size": 8, "random_state": 0, "verbose": 0}
    recommended, named = (
        estimator(tiny_bert, loss=loss, **fast).fit(*rows).net_.module_.state_dict()
        for loss in ("recommended", name)
    )
    assert all(torch.equal(recommended[key], named[key]) for key in named)


def test_takes_class_weights(tiny_bert):
    tagger = DiceTokenTagger(tiny_bert, loss="recommended", K=2.0, max_epochs=1, verbose=0)
    assert tagger.fit(*easy_corpus(8)).net_.criterion_.class_weight is not None
    with pytest.raises(ValueError, match=r"K=2\.0 cannot be used with cross-entropy"):
        DiceSpanExtractor(tiny_bert, loss="recommended", K=2.0).fit(*easy_questions(8))


def test_has_no_parameters_to_set(tiny_bert):
    with pytest.raises(ValueError, match=r"gamma=2\.0 cannot be used with loss='recommended'"):
        DiceTokenTagger(tiny_bert, loss="recommended", gamma=2.0).fit(*easy_corpus(8))
