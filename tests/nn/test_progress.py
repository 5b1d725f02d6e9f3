"""One progress bar over a fit."""

import pickle

import numpy as np
import pytest

from skdice.losses import CrossEntropyLoss
from skdice.nn._batching import StepSampler
from skdice.nn._net import TextNet
from skdice.nn._progress import FitProgress

from .toy import N_CLASSES, ToyModule, make_batcher, make_dataset


def fit(validate=None, **kwargs):
    net = TextNet(
        ToyModule,
        CrossEntropyLoss,
        module__n_classes=N_CLASSES,
        max_epochs=2,
        callbacks=[("progress", FitProgress("dsc", "F1"))],
        **kwargs,
    )
    sampler = StepSampler(make_batcher(make_dataset([3] * 12)), 4, np.random.default_rng(0))
    return net.initialize().fit(sampler, validate=validate)


def test_bar_shows_steps_epoch_loss_and_metric(capfd):
    net = fit(validate=lambda: 0.625)
    out, err = capfd.readouterr()
    assert out == ""
    last = err.strip().split("\r")[-1]
    assert last.startswith("dsc: 100%")
    assert "6/6" in last
    loss = net.history[-1]["train_loss"]
    assert f"epoch=2/2, loss={loss:.4f}, F1=0.6250" in last
    assert err.count("\n") == 1, "one bar, not one an epoch"


def test_bar_without_validation_shows_no_metric(capfd):
    fit()
    assert "F1" not in capfd.readouterr().err


def test_bar_is_closed_after_errors(capfd):
    def validate():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(validate=validate)
    assert capfd.readouterr().err.endswith("\n")


def test_a_net_with_a_bar_can_be_pickled():
    net = pickle.loads(pickle.dumps(fit()))
    progress = dict(net.callbacks_)["progress"]
    assert vars(progress) == {"description": "dsc", "metric": "F1"}
