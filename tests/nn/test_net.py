import pickle
import re
import signal
import sys
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from skorch.callbacks import Checkpoint, EarlyStopping
from transformers import get_scheduler

from skdice.losses import CrossEntropyLoss, DiceLoss
from skdice.nn import MODULES, FitProgress, StepSampler, TextNet, _net, _step, _train, seeded
from skdice.nn._step import FiniteGuard

from ..spies import Spy, stop
from .toy import N_CLASSES, ToyModule, fit_net, make_batcher, make_dataset

LENGTHS = [2 + i % 5 for i in range(20)]
STEP_SIZE = 4
N_STEPS = 5  # per epoch


def make_net(module=ToyModule, criterion=CrossEntropyLoss, callbacks=(), **kwargs):
    defaults = {"lr": 0.05, "max_epochs": 2, "device": "cpu"}
    if module is ToyModule:
        defaults["module__n_classes"] = N_CLASSES
    return TextNet(module, criterion(), callbacks=list(callbacks), **defaults | kwargs).initialize()


def make_sampler(dataset=None, step_size=STEP_SIZE, batch_size=STEP_SIZE, seed=0):
    dataset = make_dataset(LENGTHS) if dataset is None else dataset
    return StepSampler(make_batcher(dataset, batch_size), step_size, np.random.default_rng(seed))


def fit(seed=0, sampler=None, validate=None, patience=None, **kwargs):
    with seeded(seed, "cpu"):
        return fit_net(make_net(**kwargs), sampler or make_sampler(), validate, patience)


def weights_of(net):
    return [parameter.detach().clone() for parameter in net.module_.parameters()]


@pytest.mark.parametrize("head_lr", [None, 0.5])
def test_no_weight_decay_on_biases_and_norms_and_a_rate_of_the_head(tiny_model, head_lr):
    how = {"weight_decay": 0.3, "lr": 2e-3, "head_lr": head_lr}
    net = make_net(MODULES["tagging"], module__model=tiny_model, module__n_classes=N_CLASSES, **how)
    group_of = {p: group for group in net.optimizer_.param_groups for p in group["params"]}
    for name, parameter in net.module_.named_parameters():
        group = group_of.pop(parameter)
        without = name.endswith("bias") or "LayerNorm" in name
        assert group["weight_decay"] == (0.0 if without else 0.3), name
        rate = 2e-3 if head_lr is None or "classifier" not in name else head_lr
        assert group["lr"] == rate, name


@pytest.mark.parametrize("warmup, max_epochs, n_warmup", [
    (0.0, 2, 0), (3, 2, 3), (1, 1, 1), (8, 1, 8), (0.26, 2, 3), (np.float32(0.2), 2, 2),
])  # fmt: skip
def test_learning_rates_are_those_of_transformers(warmup, max_epochs, n_warmup):
    """The warmup is a share or a number of steps."""
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    scheduler = get_scheduler("linear", optimizer, n_warmup, N_STEPS * max_epochs)
    expected, used = [], []
    for _ in range(N_STEPS * max_epochs):
        expected.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    spy = Spy("on_batch_begin", lambda net, _: used.append(net.optimizer_.param_groups[0]["lr"]))
    fit(callbacks=[spy], lr=1.0, warmup=warmup, max_epochs=max_epochs)
    assert used == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("clip_norm", [0.01, None])
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_gradients_are_clipped(clip_norm, precision):
    norms = []

    def keep(net, _):
        gradients = [parameter.grad.flatten() for parameter in net.module_.parameters()]
        norms.append(torch.cat(gradients).norm().item())

    spy = Spy("on_batch_end", keep)
    fit(callbacks=[spy], clip_norm=clip_norm, precision=precision, max_epochs=1)
    low, high = (0.05, 10) if clip_norm is None else (0.999 * clip_norm, 1.001 * clip_norm)
    assert len(norms) == N_STEPS
    assert all(low < norm < high for norm in norms)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_trains_float32_weights(precision):
    plain, half = (
        fit(precision=name, sampler=make_sampler(batch_size=2), max_epochs=3)
        for name in ("fp32", precision)
    )
    assert {parameter.dtype for parameter in half.module_.parameters()} == {torch.float32}
    assert half.history[:, "train_loss"] == pytest.approx(plain.history[:, "train_loss"], rel=0.2)
    assert not all(map(torch.equal, weights_of(plain), weights_of(half)))


def test_history_has_a_row_per_epoch():
    scores = iter([0.25, 0.5, 0.5])
    net = fit(max_epochs=3, validate=lambda: next(scores), lr=0.01, warmup=0.0)
    assert net.history[:, "epoch"] == [1, 2, 3]
    assert net.history[:, "valid_score"] == [0.25, 0.5, 0.5]
    assert net.history[:, "valid_score_best"] == [True, True, False]
    losses = net.history[:, "train_loss"]
    best = [all(loss < other for other in losses[:i]) for i, loss in enumerate(losses)]
    assert net.history[:, "train_loss_best"] == best
    assert net.history[:, "lr"] == pytest.approx([0.13 / 15, 0.08 / 15, 0.03 / 15])
    assert all(loss > 0 for loss in net.history[:, "train_loss"])
    assert all(seconds > 0 for seconds in net.history[:, "dur"])


@pytest.mark.parametrize("scores, patience, best_epoch, n_epochs", [
    ([0.1, 0.5, 0.4, 0.3, 0.9, 0.9], 2, 2, 4), ([0.1, 0.5, 0.4, 0.3, 0.9, 0.8], 3, 5, 6),
    ([0.5, 0.5, 0.5, 0.5, 0.5, 0.5], 2, 1, 3), ([0.9, 0.5, 0.1, 0.0, 0.0, 0.0], None, 6, 6),
])  # fmt: skip
def test_patience_restores_the_best_weights(scores, patience, best_epoch, n_epochs):
    kept, left = [], iter(scores)
    spy = Spy("on_epoch_end", lambda net, _: kept.append(weights_of(net)))
    net = fit(max_epochs=6, validate=lambda: next(left), patience=patience, callbacks=[spy])
    assert len(kept) == len(net.history) == n_epochs
    assert net.best_epoch_ == best_epoch
    are_kept = [all(map(torch.equal, weights_of(net), weights)) for weights in kept]
    assert are_kept == [epoch == best_epoch for epoch in range(1, n_epochs + 1)]


def check_is_clean(net):
    """The weights are finite and nothing is left of the training."""
    assert all(weight.isfinite().all() for weight in weights_of(net))
    assert net.optimizer_ is None
    assert all(parameter.grad is None for parameter in net.module_.parameters())


@pytest.mark.parametrize("what", ["gradient", "loss"])
@pytest.mark.parametrize("criterion", [CrossEntropyLoss, DiceLoss])
@pytest.mark.parametrize("steps, batch_size", [(1, STEP_SIZE), (1, 1), (2, STEP_SIZE), (99, 4)])
def test_what_is_not_finite_keeps_the_step_before(what, criterion, steps, batch_size, monkeypatch):
    """On a device that is not asked in every step the error comes later, and says the same."""
    kept = []

    def poison(net, count):
        if count == 3 and what == "gradient":
            net.module_.head.bias.register_hook(lambda gradient: gradient * torch.inf)
        elif count == 3:
            value = net.criterion_.value
            monkeypatch.setattr(net.criterion_, "value", lambda sums: value(sums) * torch.nan)

    monkeypatch.setattr(_step, "FiniteGuard", lambda optimizer, _: FiniteGuard(optimizer, steps))
    end = Spy("on_batch_end", lambda net, _: kept.append(weights_of(net)))
    net = make_net(criterion=criterion, callbacks=[Spy("on_batch_begin", poison), end])
    with pytest.raises(ValueError, match=f"The {what} is not finite in epoch 1, batch 3 of 5"):
        fit_net(net, make_sampler(batch_size=batch_size))
    assert not all(map(torch.equal, kept[0], kept[1]))
    assert all(map(torch.equal, weights_of(net), kept[1]))
    check_is_clean(net)


@pytest.mark.parametrize("event", ["on_batch_begin", "on_batch_end", "on_epoch_end"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_interrupts_and_errors_get_out(event, error):
    end = Spy("on_train_end")
    net = make_net(callbacks=[Spy(event, stop(error, lambda net, count: count == 2)), end])
    with pytest.raises(error):
        fit_net(net, make_sampler())
    assert end.count_ == 1
    check_is_clean(net)


def test_an_interrupt_before_the_first_step(monkeypatch):
    """With patience, too, which knows no best epoch then."""
    begin = lambda *_, **__: signal.raise_signal(signal.SIGINT)  # noqa: E731
    monkeypatch.setattr(EarlyStopping, "on_train_begin", begin)
    net = make_net()
    with pytest.raises(KeyboardInterrupt):
        fit_net(net, make_sampler(), validate=lambda: 0.5, patience=1)
    check_is_clean(net)


@pytest.mark.parametrize(
    "event, steps", [("on_train_begin", 1), ("on_batch_end", 7), ("on_epoch_end", 10)]
)
def test_a_callback_ends_a_fit(event, steps):
    def end(net, count):
        if count == {"on_train_begin": 1, "on_batch_end": 7, "on_epoch_end": 2}[event]:
            raise KeyboardInterrupt

    last, taken = [], Spy("on_batch_end")
    look = Spy("on_train_end", lambda net, count: last.append(net.history[-1]["epoch"]))
    net = make_net(callbacks=[Spy(event, end), taken, look], max_epochs=4)
    fit_net(net, make_sampler(), validate=lambda: 0.5)
    assert taken.count_ == steps
    assert last == [net.best_epoch_] == [-(-steps // 5)]
    assert all("valid_score" in row for row in net.history), "it ends with an epoch"
    check_is_clean(net)


def test_a_pickle_that_a_callback_makes_has_no_training_data(tmp_path):
    """Only weights, and AdamW's state of them."""
    saves = Checkpoint(f_pickle="net.pickle", monitor=None, dirname=tmp_path)
    net = fit(sampler=make_sampler(make_dataset([60] * 400), step_size=100), callbacks=[saves])
    pickled = (tmp_path / "net.pickle").read_bytes()
    assert len(pickled) < 100_000, "the pieces alone would have as many bytes"
    assert all(map(torch.equal, weights_of(pickle.loads(pickled)), weights_of(net)))


def fit_shown(validate=None, later=0, **kwargs):
    progress = FitProgress("dsc", "F1", later)
    return fit(callbacks=[("progress", progress)], validate=validate, **kwargs)


@pytest.fixture(params=[True, False], ids=["terminal", "file"])
def is_terminal(request, capsys, monkeypatch):
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda stream: request.param)
    return request.param


@pytest.mark.parametrize("score, shown", [(0.625, "F1"), (None, None)])
def test_a_fit_shows_epoch_loss_and_metric(is_terminal, score, shown, capsys):
    net = fit_shown(validate=None if score is None else lambda: score)
    out, err = capsys.readouterr()
    assert out == ""
    first, last = (f"{loss:.4f}" for loss in net.history[:, "train_loss"])
    begin = "dsc: 10 steps in 2 epochs, lr 0.05, on cpu\n"
    assert err.startswith(begin)
    err = err.removeprefix(begin)
    if is_terminal:
        metric = "" if shown is None else ", F1=0.6250"
        assert err.count("\n") == 1, "one bar, not one an epoch"
        bar = err.strip().split("\r")[-1]
        assert bar.startswith("dsc: 100%")
        assert "10/10" in bar
        assert bar.endswith(f"epoch=2/2, loss={last}{metric}]")
    else:
        metric = "" if shown is None else ", F1 0.6250"
        seconds = r" \(\d+\.\d s\)\n"
        epochs = enumerate((first, last), start=1)
        lines = [f"dsc: epoch {i}/2, loss {loss}{metric}{seconds}" for i, loss in epochs]
        assert re.fullmatch("".join(lines), err)


@pytest.mark.parametrize("later, max_epochs, told", [
    (90, 2, ["94 s"]), (900, 2, ["15 min"]), (90, 1, ["90 s"]), (2, 1, []), (None, 2, []),
])  # fmt: skip
def test_the_time_that_is_left_is_that_of_all_networks(
    later, max_epochs, told, is_terminal, capsys, monkeypatch
):
    """A step takes a second; the first of several networks may have five steps only."""
    monkeypatch.setattr(_train, "time", SimpleNamespace(monotonic=count(1).__next__))
    fit_shown(later=later, max_epochs=max_epochs)
    err = capsys.readouterr().err
    assert re.findall("dsc: 1 s a step, so training takes about (.+) more\n", err) == told


def test_the_line_is_ended_after_errors(is_terminal, capsys):
    with pytest.raises(KeyboardInterrupt):
        fit_shown(validate=lambda: signal.raise_signal(signal.SIGINT))
    err = capsys.readouterr().err
    assert err.endswith("\n")
    assert err.count("\n") == 1 + is_terminal


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
    if not verbose:
        assert err == ""
    elif is_terminal:
        assert "predict:   0%" in err
    else:  # a line in a log file, once
        assert re.fullmatch(r"predict: about \d+ s more\n", err)
