"""A progress bar over a fit or a prediction, or lines."""

import re
import signal
import sys

import numpy as np
import pytest

from skdice.losses import CrossEntropyLoss
from skdice.nn import FitProgress, StepSampler, TextNet, _net, train

from .toy import N_CLASSES, ToyModule, make_batcher, make_dataset


def fit(validate=None):
    net = TextNet(
        ToyModule,
        CrossEntropyLoss(),
        module__n_classes=N_CLASSES,
        max_epochs=2,
        callbacks=[("progress", FitProgress("dsc", "F1"))],
    )
    sampler = StepSampler(make_batcher(make_dataset([3] * 12)), 4, np.random.default_rng(0))
    train(net.initialize(), sampler, validate=validate)
    return net


@pytest.fixture(params=[True, False], ids=["terminal", "file"])
def is_terminal(request, capsys, monkeypatch):
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda stream: request.param)
    return request.param


@pytest.mark.parametrize("score, shown", [(0.625, "F1"), (None, None)])
def test_a_fit_shows_epoch_loss_and_metric(is_terminal, score, shown, capsys):
    net = fit(validate=None if score is None else lambda: score)
    out, err = capsys.readouterr()
    assert out == ""
    first, last = (f"{loss:.4f}" for loss in net.history[:, "train_loss"])
    if is_terminal:
        metric = "" if shown is None else ", F1=0.6250"
        assert err.count("\n") == 1, "one bar, not one an epoch"
        bar = err.strip().split("\r")[-1]
        assert bar.startswith("dsc: 100%")
        assert "6/6" in bar
        assert bar.endswith(f"epoch=2/2, loss={last}{metric}]")
    else:
        metric = "" if shown is None else ", F1 0.6250"
        seconds = r" \(\d+\.\d s\)\n"
        lines = [
            f"dsc: epoch {i}/2, loss {x}{metric}{seconds}" for i, x in enumerate((first, last), 1)
        ]
        assert re.fullmatch("".join(lines), err)


def test_the_line_is_ended_after_errors(is_terminal, capsys):
    with pytest.raises(KeyboardInterrupt):
        fit(validate=lambda: signal.raise_signal(signal.SIGINT))
    err = capsys.readouterr().err
    assert err.endswith("\n") if is_terminal else err == ""


@pytest.mark.parametrize("verbose", [True, False])
def test_a_long_prediction_says_how_far_it_is(is_terminal, verbose, capsys, monkeypatch):
    net = fit()
    batcher = make_batcher(make_dataset([6, 3, 3]), batch_size=1)
    capsys.readouterr()
    net.predict_logits(batcher, verbose=verbose)
    assert capsys.readouterr().err == "", "it was not long"
    monkeypatch.setattr(_net, "_BAR_SECONDS", 0.0)
    net.predict_logits(batcher, verbose=verbose)
    err = capsys.readouterr().err
    assert "predict:   0%" in err if verbose and is_terminal else err == ""
