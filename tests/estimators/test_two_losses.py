"""The mean of the weights of two networks that begin alike, loss="ce+dice"."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

from skdice import DicePairClassifier, DiceSpanExtractor, DiceTokenTagger
from skdice.losses import CrossEntropyLoss

from ..corpora import easy_corpus, easy_pairs
from ..spies import Spy, stop
from .test_span import easy_questions

FAST = {"lr": 3e-3, "batch_size": 4, "random_state": 0, "verbose": 0}
X, y = easy_corpus(24)


def weights_of(estimator):
    return dict(estimator.net_.module_.named_parameters())


@pytest.mark.parametrize(
    "estimator, rows, more",
    [
        (DiceTokenTagger, (X, y), {"max_epochs": 2}),
        (DiceTokenTagger, (X, y), {"max_epochs": 1, "n_members": 2, "crf": True}),
        # The first network goes on from the one that its head began with.
        (DicePairClassifier, easy_pairs(24), {"max_epochs": 2}),
    ],
)
def test_it_has_the_mean_of_what_each_loss_learns(tiny_bert, estimator, rows, more):
    both, ce, dice = (
        estimator(tiny_bert, loss=loss, **FAST, **more).fit(*rows)
        for loss in ("ce+dice", "ce", "dice")
    )
    of_ce, of_dice = weights_of(ce), weights_of(dice)
    assert not all(torch.equal(of_ce[name], of_dice[name]) for name in of_ce)
    for name, weights in weights_of(both).items():
        torch.testing.assert_close(weights, (of_ce[name] + of_dice[name]) / 2)
    assert isinstance(both.loss_, CrossEntropyLoss)
    n = more["max_epochs"]
    assert list(both.history_.index) == [*range(1, 2 * n + 1)]
    assert (both.max_epochs_, both.best_epoch_) == (n, 2 * n)


def test_each_loss_takes_its_own_epochs(tiny_bert, constants):
    constants(fewest_epochs=1, most_epochs=3, set_epochs=2, steps=1)
    tagger = DiceTokenTagger(tiny_bert, **FAST).fit(X, y)
    assert (tagger.max_epochs_, len(tagger.history_)) == (3, 3 + 2)
    why = tagger.choices_.set_index("parameter").loc["max_epochs", "why"]
    assert why.startswith("3 epochs")
    assert why.endswith("Dice makes 2.")


def test_the_first_network_is_kept_if_the_second_is_interrupted(tiny_bert):
    tagger = DiceTokenTagger(tiny_bert, **FAST, loss="ce+dice", max_epochs=1)
    ce = clone(tagger).set_params(loss="ce").fit(X, y)
    second = Spy("on_epoch_end", stop(RuntimeError("stopped"), lambda net, count: count == 2))
    tagger.set_params(callbacks=[second])
    with pytest.raises(RuntimeError, match="stopped"):
        tagger.fit(X, y)
    assert tagger.interrupted_
    assert len(tagger.history_) == 1
    for name, weights in weights_of(ce).items():
        assert torch.equal(weights_of(tagger)[name], weights)


def test_a_finished_network_is_not_trained_again(tiny_bert, tmp_path):
    tagger = DiceTokenTagger(tiny_bert, **FAST, loss="ce+dice", max_epochs=2)
    once = clone(tagger).fit(X, y)
    tagger.set_params(checkpoint_dir=tmp_path)
    first, again = clone(tagger).fit(X, y), clone(tagger).fit(X, y)
    assert len(list(tmp_path.iterdir())) == 2
    for name, weights in weights_of(once).items():
        assert torch.equal(weights_of(first)[name], weights)
        assert torch.equal(weights_of(again)[name], weights)
    np.testing.assert_array_equal(first.history_["train_loss"], again.history_["train_loss"])


def test_losses_that_have_no_common_mean_are_refused(tiny_bert):
    extractor = DiceSpanExtractor(tiny_bert, loss="ce+dice", **FAST)
    with pytest.raises(ValueError, match="no common mean"):
        extractor.fit(*easy_questions(8))
