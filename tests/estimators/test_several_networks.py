"""Fits of several networks: members whose logits are averaged."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.base import clone

from skdice import DicePairClassifier, DiceTokenTagger
from skdice.losses import CrossEntropyLoss, match_scores
from skdice.nn import NotLearningError, TextNet

from ..corpora import easy_corpus, easy_pairs
from ..io.conftest import fit_once, make
from ..quick import quick
from ..spies import Spy, encoded_rows, internals, stop

N_MEMBERS = 3


def logits(estimator, X):
    return internals(estimator).network.logits(encoded_rows(estimator, X))


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


@pytest.mark.parametrize(
    "case", quick(["tagger", "pairs"], ["tagger", "texts", "labels", "pairs", "questions"])
)
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


FAST = {"lr": 3e-3, "batch_size": 4, "random_state": 0, "verbose": 0}
ROWS = easy_corpus(24)


def weights_of(estimator):
    return dict(estimator.net_.module_.named_parameters())


@pytest.mark.parametrize("estimator, rows, more", [
    (DiceTokenTagger, ROWS, {"crf": True}),
    # The head begins with a regression.
    (DicePairClassifier, easy_pairs(24), {}),
])  # fmt: skip
def test_each_member_is_a_fit_with_its_own_seed(tiny_bert, estimator, rows, more):
    how = {**FAST, "max_epochs": 2, "loss": "ce", **more}
    alone, both = (estimator(tiny_bert, n_members=n, **how).fit(*rows) for n in (1, 2))
    second = dict(both.net_.module_.members[0].named_parameters())
    for name, weights in weights_of(alone).items():
        assert torch.equal(weights_of(both)[name], weights)
    assert not all(torch.equal(second[name], x) for name, x in weights_of(alone).items())
    assert isinstance(both.loss_, CrossEntropyLoss)
    assert list(zip(both.history_["run"], both.history_.index)) == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert (both.max_epochs_, both.best_epoch_) == (2, 2)
    assert both.runs_["loss"].tolist() == ["ce", "ce"]
    assert both.runs_[["epochs", "best_epoch"]].to_numpy().tolist() == [[2, 2]] * 2
    assert both.runs_[["is_finished", "is_kept"]].all(axis=None)


class SpyOnLoading(Spy):
    """Is called when a network is about to be loaded."""

    def initialize(self):
        self._call(None)
        return self


# The event at which a second network of two epochs ends, its number, and the finished epochs.
ENDS = {
    "its second epoch": (Spy, "on_batch_end", 4 * 6 - 2, 1),
    "its beginning": (Spy, "on_train_begin", 2, 0),
    "its loading": (SpyOnLoading, "", 2, 0),
}


@pytest.mark.parametrize("where, error", [
    ("its second epoch", KeyboardInterrupt), ("its beginning", RuntimeError("stopped")),
    ("its loading", KeyboardInterrupt),
])  # fmt: skip
def test_a_finished_network_is_kept_wherever_the_second_one_ends(tiny_bert, where, error):
    tagger = DiceTokenTagger(tiny_bert, **FAST, n_members=2, max_epochs=2, negative_ratio=None)
    alone = clone(tagger).set_params(n_members=1).fit(*ROWS)
    kind, event, number, n_made = ENDS[where]
    spy = kind(event, stop(error, lambda net, count: count == number))
    with pytest.raises((RuntimeError, KeyboardInterrupt)):
        tagger.set_params(callbacks=[spy]).fit(*ROWS)
    assert tagger.interrupted_
    assert tagger.runs_["epochs"].tolist() == [2, n_made]
    assert tagger.runs_["is_finished"].tolist() == tagger.runs_["is_kept"].tolist() == [True, False]
    assert (tagger.best_epoch_, tagger.max_epochs_) == (2, 2)
    with pytest.warns(UserWarning, match=f"in epoch {n_made + 1} of 2 of network 2 of 2"):
        tagger.predict(ROWS[0])
    assert weights_of(tagger).keys() == weights_of(alone).keys()
    for name, weights in weights_of(alone).items():
        assert torch.equal(weights_of(tagger)[name], weights)


def scores_in_turn(monkeypatch, values):
    """Have validation rows score these values, one after the other."""
    left = iter(values)
    task = type(internals(DiceTokenTagger()).task)
    monkeypatch.setattr(task, "validator", lambda *args: lambda: next(left))


def test_the_ensemble_is_scored_beside_its_members(tiny_bert, monkeypatch):
    how = {**FAST, "max_epochs": 2, "patience": 2, "validation_fraction": 0.25, "n_members": 2}
    scores_in_turn(monkeypatch, [0.8, 0.1, 0.1, 0.7, 0.9])
    tagger = DiceTokenTagger(tiny_bert, **how).fit(*ROWS)
    assert tagger.runs_["is_kept"].tolist() == [True, True]
    assert tagger.runs_["score"].tolist() == [0.8, 0.7]
    assert tagger.history_["valid_score"].tolist() == [0.8, 0.1, 0.1, 0.7]
    assert internals(tagger).fitted.score == 0.9
    assert tagger.best_epoch_ == 1


def test_an_error_while_the_ensemble_is_scored_loses_nothing(tiny_bert, monkeypatch):
    how = {**FAST, "max_epochs": 1, "validation_fraction": 0.25}
    alone = DiceTokenTagger(tiny_bert, **how).fit(*ROWS)
    scores_in_turn(monkeypatch, [0.7, 0.8])  # There is no third one.
    tagger = DiceTokenTagger(tiny_bert, n_members=2, **how)
    with pytest.raises(StopIteration):
        tagger.fit(*ROWS)
    assert tagger.interrupted_
    assert tagger.runs_["is_finished"].all()
    with pytest.warns(UserWarning, match="it stopped after the last epoch"):
        tagger.predict(ROWS[0])
    # One network is kept, without members.
    assert weights_of(tagger).keys() == weights_of(alone).keys()
    for name, weights in weights_of(alone).items():
        assert torch.equal(weights_of(tagger)[name], weights)


class TestRestart:
    """What one network learns nothing with, none of the fit learns with."""

    HOW = FAST | {"lr": "auto", "max_epochs": 6, "n_members": 2}

    @pytest.fixture(autouse=True)
    def high_rate(self, constants):
        constants(lr=384 * 6 * 6e-3)

    def not_learning(self, monkeypatch, numbers):
        """Let networks fail that are trained as the first, second, ... ones of all fits."""
        seen, real = [], TextNet.partial_fit

        def train(net, *args, **kwargs):
            real(net, *args, **kwargs)
            seen.append(net.lr)
            if len(seen) in numbers:
                net.history.record("train_loss", 9.0)
                raise NotLearningError("It is as it was.")

        monkeypatch.setattr(TextNet, "partial_fit", train)
        return seen

    def test_all_networks_start_again(self, tiny_bert, monkeypatch):
        rates = self.not_learning(monkeypatch, {2})
        with pytest.warns(UserWarning, match="started again"):
            tagger = DiceTokenTagger(tiny_bert, **self.HOW).fit(*ROWS)
        first = rates[0]
        assert rates == pytest.approx([first, first, first / 3, first / 3])
        assert tagger.runs_["lr"].tolist() == [tagger.lr_] * 2 == rates[2:]
        assert tagger.runs_["began_again"].tolist() == [True, True]

    @pytest.mark.parametrize("numbers, kept", [({1, 3}, [True, False]), ({1, 2}, [False, True])])
    def test_what_learned_nothing_is_no_member(self, tiny_bert, monkeypatch, numbers, kept):
        self.not_learning(monkeypatch, numbers)
        with pytest.warns(UserWarning, match="1 of 2 networks learned nothing: left out"):
            tagger = DiceTokenTagger(tiny_bert, **self.HOW).fit(*ROWS)
        assert tagger.runs_["is_kept"].tolist() == kept
        rate = {"lr": tagger.lr_, "head_lr": tagger.net_.head_lr}
        once = DiceTokenTagger(tiny_bert, **self.HOW | rate | {"n_members": 1}).fit(*ROWS)
        assert weights_of(tagger).keys() == weights_of(once).keys()
        same = [torch.equal(weights_of(tagger)[name], x) for name, x in weights_of(once).items()]
        assert all(same) == kept[0]
