"""A progress bar over a fit or a prediction, or lines."""

import re
import subprocess
import sys

import numpy as np
import pytest

from skdice.losses import CrossEntropyLoss
from skdice.nn import _progress, train
from skdice.nn._batching import StepSampler
from skdice.nn._net import TextNet
from skdice.nn._progress import FitProgress

from .toy import N_CLASSES, ToyModule, make_batcher, make_dataset


def fit(validate=None, **kwargs):
    net = TextNet(
        ToyModule,
        CrossEntropyLoss(),
        module__n_classes=N_CLASSES,
        max_epochs=2,
        callbacks=[("progress", FitProgress("dsc", "F1"))],
        **kwargs,
    )
    sampler = StepSampler(make_batcher(make_dataset([3] * 12)), 4, np.random.default_rng(0))
    train(net.initialize(), sampler, validate=validate)
    return net


@pytest.fixture(params=[True, False], ids=["terminal", "file"])
def is_terminal(request, monkeypatch):
    monkeypatch.setattr(_progress, "is_terminal", lambda: request.param)
    return request.param


@pytest.mark.parametrize("is_terminal", [True], indirect=True)
def test_bar_shows_steps_epoch_loss_and_metric(is_terminal, capsys):
    net = fit(validate=lambda: 0.625)
    out, err = capsys.readouterr()
    assert out == ""
    last = err.strip().split("\r")[-1]
    assert last.startswith("dsc: 100%")
    assert "6/6" in last
    loss = net.history[-1]["train_loss"]
    assert f"epoch=2/2, loss={loss:.4f}, F1=0.6250" in last
    assert err.count("\n") == 1, "one bar, not one an epoch"


@pytest.mark.parametrize("is_terminal", [False], indirect=True)
def test_a_file_gets_a_line_an_epoch(is_terminal, capsys):
    net = fit(validate=lambda: 0.625)
    out, err = capsys.readouterr()
    assert out == ""
    first, second = err.splitlines()
    loss = net.history[0]["train_loss"]
    assert re.fullmatch(rf"dsc: epoch 1/2, loss {loss:.4f}, F1 0.6250 \(\d+\.\d s\)", first)
    assert second.startswith("dsc: epoch 2/2, loss ")


def test_without_validation_no_metric_is_shown(is_terminal, capsys):
    fit()
    assert "F1" not in capsys.readouterr().err


def test_the_line_is_ended_after_errors(is_terminal, capsys):
    def validate():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(validate=validate)
    err = capsys.readouterr().err
    assert err.endswith("\n") if is_terminal else err == ""


@pytest.mark.parametrize("is_terminal", [False], indirect=True)
def test_a_file_gets_a_line_every_half_minute(is_terminal, capsys, monkeypatch):
    monkeypatch.setattr(_progress, "_LINE_SECONDS", 0.0)
    net = fit()
    lines = capsys.readouterr().err.splitlines()
    losses = [float(re.search(r"loss ([\d.]+)", line)[1]) for line in lines[:3]]
    # The loss of an epoch is the mean of those of its steps.
    assert np.mean(losses) == pytest.approx(net.history[0, "train_loss"], abs=1e-4)
    assert re.fullmatch(r"dsc: step 2/6, loss \d.\d{4}, \d\d:\d\d left", lines[1])
    assert [line.split(",")[0] for line in lines[2:5]] == [
        "dsc: step 3/6",
        "dsc: epoch 1/2",
        "dsc: step 4/6",
    ]


@pytest.mark.parametrize("verbose", [True, False])
def test_a_long_prediction_says_how_far_it_is(is_terminal, verbose, capsys, monkeypatch):
    net = fit()
    batcher = make_batcher(make_dataset([6, 3, 3]))
    batcher.batch_size = 1
    capsys.readouterr()
    net.predict_logits(batcher, verbose=verbose)
    assert capsys.readouterr().err == "", "it was not long"
    monkeypatch.setattr(_progress, "_LINE_SECONDS", 0.0)
    monkeypatch.setattr(_progress, "_BAR_SECONDS", 0.0)
    net.predict_logits(batcher, verbose=verbose)
    err = capsys.readouterr().err
    if not verbose:
        assert err == ""
    elif is_terminal:
        assert "predict:   0%" in err
    else:
        assert [line[:17] for line in err.splitlines()] == [
            "predict: 50% done",
            "predict: 75% done",
            "predict: 100% don",
        ]


def test_a_notebook_without_widgets_is_not_warned():
    code = """if True:
        import sys, types, warnings
        shell = types.ModuleType("ipykernel.zmqshell")
        sys.modules |= {"ipykernel.zmqshell": shell, "IPython": types.ModuleType("IPython")}
        sys.modules |= {"IPython.html": None, "ipywidgets": None}
        sys.modules["IPython"].get_ipython = lambda: shell
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        from skdice import DiceTokenTagger
        assert "tqdm.auto" in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)
