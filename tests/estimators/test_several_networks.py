"""Fits of several networks: members whose logits are averaged, and ``loss="ce+dice"``.

The latter is the mean of the weights of two networks that begin alike.
"""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.base import clone

from skdice import DicePairClassifier, DiceSpanExtractor, DiceTokenTagger
from skdice.losses import CrossEntropyLoss, match_scores

from ..corpora import easy_corpus, easy_pairs
from ..io.conftest import CASES, fit_once, make, scores
from ..spies import Spy, encoded_rows, internals, stop
from .test_span import easy_questions

N_MEMBERS = 3


def logits(estimator, X):
    return internals(estimator).logits(encoded_rows(estimator, X))


@pytest.fixture(scope="module")
def joined(shallow_models):
    return fit_once(shallow_models, n_members=N_MEMBERS)


def singles(estimator):
    """Return the members as estimators of their own."""
    module = estimator.net_.module_
    found = []
    for i in range(N_MEMBERS):
        net = copy.copy(estimator.net_)
        part = copy.deepcopy(module.members[i - 1] if i else module)
        part.members = torch.nn.ModuleList()
        net.module_ = part
        one = copy.copy(estimator)
        one._fitted = replace(internals(estimator).fitted, net=net)
        found.append(one)
    return found


@pytest.mark.parametrize("case", ["tagger", "texts", "labels", "pairs", "questions"])
def test_logits_are_the_mean(joined, case):
    estimator, X, _ = joined(case)
    parts = [logits(one, X) for one in singles(estimator)]
    assert np.ptp(parts, axis=0).max() > 1e-3
    np.testing.assert_allclose(logits(estimator, X), np.mean(parts, axis=0), atol=1e-5)


def test_scores_of_query_matches_are_the_mean(joined):
    """The vectors of the members are no mean: only their products have a meaning."""
    estimator, X, _ = joined("queries")

    def of_matches(one):
        found = torch.from_numpy(logits(one, X))
        start, end = found[None, :, 2:].chunk(2, dim=2)
        return torch.cat([match_scores(start, end).flatten(), found[:, :2].flatten()])

    each = torch.stack([of_matches(one) for one in singles(estimator)])
    assert each.std(0).max() > 1e-3
    torch.testing.assert_close(of_matches(estimator), each.mean(0), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_saved_and_pickled_ones_predict_alike(joined, tmp_path, case):
    estimator, X, y = joined(case)
    estimator.save_pretrained(tmp_path / "saved")
    loaded = type(estimator).from_pretrained(tmp_path / "saved")
    assert len(loaded.net_.module_.members) == N_MEMBERS - 1
    for other in (loaded, pickle.loads(pickle.dumps(estimator))):
        assert other.score(X, y) == estimator.score(X, y)
        np.testing.assert_array_equal(scores(other, X), scores(estimator, X))
    card = (tmp_path / "saved" / "README.md").read_text()
    assert "`n_members`" in card


@pytest.mark.slow
def test_onnx_runtime_has_all_members(shallow_models):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    tagger, X, y = make("queries", shallow_models("bert"), n_members=2)
    tagger.fit(X, y).threshold_ = 0.01  # All spans, of a network that has hardly learned.
    expected, found = (
        [entity.score for row in one.predict_spans(X) for entity in row]
        for one in (tagger, copy.copy(tagger).set_params(runtime="onnx"))
    )
    assert len(found) > 0
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_checkpoints_of_members(joined, tmp_path):
    """A fit that dies in its second member goes on there, and the first is not run again."""
    estimator, X, y = joined("texts")
    die = Spy("on_train_begin", stop(OSError("no more power"), lambda net, count: count == 2))
    steps = Spy("on_batch_end")
    kept = clone(estimator).set_params(checkpoint_dir=tmp_path, callbacks=[die])
    with pytest.raises(OSError, match="no more power"):
        kept.fit(X, y)
    again = clone(kept).set_params(callbacks=[steps]).fit(X, y)
    assert steps.count_ == 2 * 2  # two members, two steps each
    np.testing.assert_array_equal(logits(again, X), logits(estimator, X))


def test_an_interrupted_fit_keeps_the_members_that_were_finished(joined):
    estimator, X, y = joined("texts")
    third = Spy("on_train_begin", stop(RuntimeError("stop"), lambda net, count: count == 3))
    stopped = clone(estimator).set_params(callbacks=[third])
    with pytest.raises(RuntimeError, match="stop"):
        stopped.fit(X, y)
    assert stopped.interrupted_
    assert len(stopped.net_.module_.members) == 1
    with pytest.warns(UserWarning, match="did not come to its end"):
        stopped.predict(X)
    expected = np.mean([logits(one, X) for one in singles(estimator)[:2]], axis=0)
    np.testing.assert_allclose(logits(stopped, X), expected, atol=1e-5)


FAST = {"lr": 3e-3, "batch_size": 4, "random_state": 0, "verbose": 0}
ROWS = easy_corpus(24)


def weights_of(estimator):
    return dict(estimator.net_.module_.named_parameters())


@pytest.mark.parametrize("estimator, rows, more", [
    (DiceTokenTagger, ROWS, {"max_epochs": 2}),
    (DiceTokenTagger, ROWS, {"max_epochs": 1, "n_members": 2, "crf": True}),
    # The first network goes on from the one that its head began with.
    (DicePairClassifier, easy_pairs(24), {"max_epochs": 2}),
])  # fmt: skip
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
    tagger = DiceTokenTagger(tiny_bert, **FAST).fit(*ROWS)
    assert (tagger.max_epochs_, len(tagger.history_)) == (3, 3 + 2)
    why = tagger.choices_.set_index("parameter").loc["max_epochs", "why"]
    assert why.startswith("3 epochs")
    assert why.endswith("Dice makes 2.")


def test_the_first_network_is_kept_if_the_second_is_interrupted(tiny_bert):
    tagger = DiceTokenTagger(tiny_bert, **FAST, loss="ce+dice", max_epochs=1)
    ce = clone(tagger).set_params(loss="ce").fit(*ROWS)
    second = Spy("on_epoch_end", stop(RuntimeError("stopped"), lambda net, count: count == 2))
    tagger.set_params(callbacks=[second])
    with pytest.raises(RuntimeError, match="stopped"):
        tagger.fit(*ROWS)
    assert tagger.interrupted_
    assert len(tagger.history_) == 1
    for name, weights in weights_of(ce).items():
        assert torch.equal(weights_of(tagger)[name], weights)


def test_a_finished_network_is_not_trained_again(tiny_bert, tmp_path):
    tagger = DiceTokenTagger(tiny_bert, **FAST, loss="ce+dice", max_epochs=2)
    once = clone(tagger).fit(*ROWS)
    tagger.set_params(checkpoint_dir=tmp_path)
    first, again = clone(tagger).fit(*ROWS), clone(tagger).fit(*ROWS)
    assert len(list(tmp_path.iterdir())) == 2
    for name, weights in weights_of(once).items():
        assert torch.equal(weights_of(first)[name], weights)
        assert torch.equal(weights_of(again)[name], weights)
    np.testing.assert_array_equal(first.history_["train_loss"], again.history_["train_loss"])


def test_losses_that_have_no_common_mean_are_refused(tiny_bert):
    extractor = DiceSpanExtractor(tiny_bert, loss="ce+dice", **FAST)
    with pytest.raises(ValueError, match="no common mean"):
        extractor.fit(*easy_questions(8))
