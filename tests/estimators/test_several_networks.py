"""Fits of several networks: members whose logits are averaged, and ``loss="ce+ce"``.

The latter is the mean of the weights of two networks that begin alike.
"""

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
    (DiceTokenTagger, ROWS, {"max_epochs": 2}),
    (DiceTokenTagger, ROWS, {"max_epochs": 1, "crf": True}),
    # The head begins with a regression.
    (DicePairClassifier, easy_pairs(24), {"max_epochs": 2}),
])  # fmt: skip
def test_it_has_the_mean_of_two_networks_that_begin_alike(
    tiny_bert, monkeypatch, estimator, rows, more
):
    seen, train = [], TextNet.partial_fit

    def watch(net, *args, **kwargs):
        before = copy.deepcopy(net.module_.state_dict())
        train(net, *args, **kwargs)
        seen.append((before, copy.deepcopy(net.module_.state_dict())))

    monkeypatch.setattr(TextNet, "partial_fit", watch)
    once, both = (estimator(tiny_bert, loss=loss, **FAST, **more) for loss in ("ce", "ce+ce"))
    once.fit(*rows)
    both.fit(*rows)
    (begin, alone), *of_both = seen
    assert all(torch.equal(begin[name], own[name]) for own, _ in of_both for name in begin)
    (_, first), (_, second) = of_both
    assert all(torch.equal(first[name], alone[name]) for name in alone)
    assert not all(torch.equal(second[name], alone[name]) for name in alone)
    for name, weights in weights_of(both).items():
        torch.testing.assert_close(weights, (first[name] + second[name]) / 2)
    assert isinstance(both.loss_, CrossEntropyLoss)
    n = more["max_epochs"]
    assert list(zip(both.history_["run"], both.history_.index)) == [
        (run, epoch) for run in (1, 2) for epoch in range(1, n + 1)
    ]
    assert (both.max_epochs_, both.best_epoch_) == (n, n)
    assert both.runs_["loss"].tolist() == ["ce", "ce"]
    assert both.runs_[["epochs", "best_epoch"]].to_numpy().tolist() == [[n, n]] * 2
    assert both.runs_[["is_finished", "is_kept"]].all(axis=None)


def test_they_share_the_epochs_of_auto(tiny_bert, constants):
    constants(fewest_epochs=1, most_epochs=5, steps=1)
    tagger = DiceTokenTagger(tiny_bert, **FAST).fit(*ROWS)
    assert tagger.max_epochs_ == 3
    assert tagger.runs_["epochs"].tolist() == tagger.runs_["max_epochs"].tolist() == [3, 3]
    why = tagger.choices_.set_index("parameter").loc["max_epochs", "why"]
    assert why.startswith("5 epochs")
    assert why.endswith("Two networks share them, so each makes 3.")


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
    tagger = DiceTokenTagger(tiny_bert, **FAST, loss="ce+ce", max_epochs=2, negative_ratio=None)
    ce = clone(tagger).set_params(loss="ce").fit(*ROWS)
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
    for name, weights in weights_of(ce).items():
        assert torch.equal(weights_of(tagger)[name], weights)


def scores_in_turn(monkeypatch, values):
    """Have validation rows score these values, one after the other."""
    left = iter(values)
    task = type(internals(DiceTokenTagger()).task)
    monkeypatch.setattr(task, "validator", lambda *args: lambda: next(left))


@pytest.mark.parametrize("of_mean, kept, merge", [
    (0.9, [True, True], "mean"), (0.3, [True, False], "network 1"),
])  # fmt: skip
def test_the_best_of_networks_and_mean_is_kept(tiny_bert, monkeypatch, of_mean, kept, merge):
    how = {**FAST, "max_epochs": 2, "patience": 2, "validation_fraction": 0.25}
    one, other = (DiceTokenTagger(tiny_bert, loss=loss, **how) for loss in ("ce", "ce+ce"))
    scores_in_turn(monkeypatch, [0.8, 0.1])
    one.fit(*ROWS)
    scores_in_turn(monkeypatch, [0.8, 0.1, 0.1, 0.7, of_mean])
    other.fit(*ROWS)
    assert other.runs_["is_kept"].tolist() == kept
    assert other.runs_["score"].tolist() == [0.8, 0.7]
    assert other.history_["valid_score"].tolist() == [0.8, 0.1, 0.1, 0.7]
    choice = other.choices_.set_index("parameter").loc["merge"]
    assert choice["value"] == merge
    assert f"{of_mean:.3f}; that of the networks is 0.800 and 0.700." in choice["why"]
    assert other.best_epoch_ == 1
    of_one = weights_of(one)
    same = [torch.equal(weights, of_one[name]) for name, weights in weights_of(other).items()]
    assert all(same) == (merge != "mean")


def test_an_error_while_the_mean_is_scored_loses_nothing(tiny_bert, monkeypatch):
    how = {**FAST, "max_epochs": 1, "validation_fraction": 0.25}
    ce = DiceTokenTagger(tiny_bert, loss="ce", **how).fit(*ROWS)
    scores_in_turn(monkeypatch, [0.7, 0.8])  # There is no third one.
    tagger = DiceTokenTagger(tiny_bert, loss="ce+ce", **how)
    with pytest.raises(StopIteration):
        tagger.fit(*ROWS)
    assert tagger.interrupted_
    assert tagger.runs_["is_finished"].all()
    with pytest.warns(UserWarning, match="it stopped after the last epoch"):
        tagger.predict(ROWS[0])
    for name, weights in weights_of(ce).items():
        assert torch.equal(weights_of(tagger)[name], weights)


class TestRestart:
    """What one network learns nothing with, none of the fit learns with."""

    HOW = FAST | {"lr": "auto", "max_epochs": 6, "loss": "ce+ce"}

    @pytest.fixture(autouse=True)
    def high_rate(self, constants):
        constants(lr=1, highest_lr=6e-3)

    def not_learning(self, monkeypatch, numbers):
        """Let networks fail that are trained as the first, second, ... ones of all fits."""
        seen, real = [], TextNet.partial_fit

        def train(net, *args, **kwargs):
            real(net, *args, **kwargs)
            seen.append(net.lr)
            if len(seen) in numbers:
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
    def test_what_learned_nothing_is_not_merged(self, tiny_bert, monkeypatch, numbers, kept):
        self.not_learning(monkeypatch, numbers)
        with pytest.warns(UserWarning, match="1 of 2 networks learned nothing: left out"):
            tagger = DiceTokenTagger(tiny_bert, **self.HOW).fit(*ROWS)
        assert tagger.runs_["is_kept"].tolist() == kept
        rate = {"lr": tagger.lr_, "head_lr": tagger.net_.head_lr}
        once = DiceTokenTagger(tiny_bert, **self.HOW | rate | {"loss": "ce"}).fit(*ROWS)
        same = [torch.equal(weights_of(tagger)[name], x) for name, x in weights_of(once).items()]
        assert all(same) == kept[0]
