"""``time_limit``: the schedule is made for the steps that fit in. The clock moves by steps."""

import time

import pytest
from skorch.callbacks import Callback

from skdice import DiceTextClassifier, DiceTokenTagger

from ..corpora import easy_corpus, easy_texts

FAST = {"loss": "ce", "lr": 5e-3, "batch_size": 8, "random_state": 0, "verbose": 0, "device": "cpu"}


NOW = [0.0]  # Copies of a clock show the same time.


class Clock(Callback):
    """A step takes a second of this clock, and an epoch as many more as are asked for."""

    only_watches = True

    def __init__(self, epoch_seconds=0):
        self.epoch_seconds = epoch_seconds
        self.rates_ = []

    def on_batch_begin(self, net, **kwargs):
        self.rates_.append(net.steps_.optimizer.param_groups[0]["lr"])

    def on_grad_computed(self, net, **kwargs):
        NOW[0] += 1

    def on_epoch_end(self, net, **kwargs):
        NOW[0] += self.epoch_seconds


@pytest.fixture
def now(monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: NOW[0])
    return NOW


def fit(tiny_bert, clock, **parameters):
    X, y = easy_corpus(32)  # Four steps make an epoch.
    how = {"max_epochs": 10, "callbacks": [("clock", clock)], **FAST, **parameters}
    return DiceTokenTagger(tiny_bert, **how).fit(X, y)


def rates_of(tagger):
    return dict(tagger.net_.callbacks_)["clock"].rates_


@pytest.mark.parametrize("limit", [6, 17, 30.5])
def test_the_schedule_is_that_of_the_steps_that_fit_in(tiny_bert, now, limit):
    with pytest.warns(
        UserWarning, match=rf"for {limit:.0f} steps, .* of 40.*about {40 - int(limit)} s"
    ):
        tagger = fit(tiny_bert, Clock(), time_limit=limit)
    n_steps = int(limit)
    rates = rates_of(tagger)
    assert len(rates) == n_steps
    assert tagger.max_epochs_ == 10
    assert len(tagger.history_) == -(-n_steps // 4)
    # The rate falls on a line to 0 after the last step.
    assert rates[-1] == pytest.approx(5e-3 / (n_steps - round(0.1 * n_steps)))
    assert not tagger.interrupted_


def test_scores_count_and_what_fits_in_is_as_without_a_limit(tiny_bert, now, recwarn):
    free = fit(tiny_bert, Clock())
    enough = fit(tiny_bert, Clock(), time_limit=41)
    assert not any("time_limit" in str(warning.message) for warning in recwarn)
    assert rates_of(enough) == rates_of(free)
    for name, weight in enough.net_.module_.state_dict().items():
        assert weight.equal(free.net_.module_.state_dict()[name])
    with pytest.warns(UserWarning, match="time_limit"):
        slow = fit(tiny_bert, Clock(epoch_seconds=4), time_limit=41)
    assert 16 <= len(rates_of(slow)) <= 24


def test_all_networks_and_folds_of_a_fit_share_the_time(tiny_bert, now):
    start = now[0]
    with pytest.warns(UserWarning, match="time_limit"):
        members = fit(tiny_bert, Clock(), time_limit=18, n_members=3)
    assert now[0] - start == 18
    assert members.history_.groupby("run").size().tolist() == [2, 2, 2]
    X, y = easy_texts(40)
    start = now[0]
    how = {**FAST, "loss": "cv", "threshold": "cv", "max_epochs": 20}
    classifier = DiceTextClassifier(tiny_bert, callbacks=[Clock()], time_limit=96, **how)
    with pytest.warns(UserWarning, match="time_limit"):
        classifier.fit(X, y)
    assert 80 <= now[0] - start <= 96


def test_the_time_of_a_fit_and_of_its_folds_is_told_together(tiny_bert, now, capsys):
    X, y = easy_texts(40)
    how = {**FAST, "threshold": "cv", "max_epochs": 4, "verbose": 1}
    DiceTextClassifier(tiny_bert, callbacks=[Clock()], **how).fit(X, y)
    told = [line for line in capsys.readouterr().err.splitlines() if "so training takes" in line]
    # Of 20 steps 6 are over, and five folds take as long again each.
    assert told[0].endswith(": 1 s a step, so training takes about 2 min more")
    assert len(told) <= 2
