"""Every bad input gets an error that says what was got, what is allowed and which row."""

import signal

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError
from skorch.callbacks import Callback

from skdice import DiceTokenTagger
from skdice.losses import DiceLoss

from ..corpora import easy_corpus

FAST = {"max_epochs": 1, "lr": 1e-2, "batch_size": 8, "random_state": 0, "verbose": 0}
X, Y = easy_corpus(12)


def with_row(rows, i, row):
    return [row if j == i else old for j, old in enumerate(rows)]


@pytest.mark.parametrize(
    "X, y, message",
    [
        (X, with_row(Y, 3, ["O"]), r"row 3 has \d words and 1 tags"),
        (X, Y[:-1], "got 12 sentences and 11 rows"),
        ([], [], "no sentence to train on"),
        ([[], []], [[], []], "2 sentences and no words"),
        ("john lives", Y, "X must be a list.* got 'john lives' of type str"),
        (with_row(X, 2, "john lives"), Y, "row 2 is the bare string 'john lives'"),
        (X, with_row(Y, 2, "B-PER"), "Each row of y .* row 2 is the bare string"),
        (with_row(X, 1, [1, 2, 3]), Y, r"position 0 of row 1 of X is 1 of type int"),
        (with_row(X, 1, None), Y, "row 1 is None"),
        (with_row(X, 1, 7), Y, r"row 1 is 7 of type int"),
        (X, with_row(Y, 4, [None] * len(Y[4])), "position 0 of row 4 of y is None"),
        (X, with_row(Y, 4, [float("nan")] * len(Y[4])), r"row 4 of y is nan of type float"),
        (X, [["O"] * len(row) for row in X], "at least two different tags in y; got one .*'O'"),
        (X, None, "requires y to be passed, but the target y is None"),
        (pd.DataFrame({"words": X}), Y, "got a DataFrame"),
        (None, Y, "X must be a list"),
        ({"a": X}, Y, "X must be a list"),
    ],
)
def test_data(tiny_bert, X, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        DiceTokenTagger(tiny_bert, **FAST).fit(X, y)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"loss": "dise"}, r"'loss' parameter must be one of \{'ce', .*Got 'dise'"),
        ({"loss": None}, "'loss' parameter must be one of"),
        ({"loss": "ce", "gamma": 1.0}, r"gamma=1.0 cannot be used with loss='ce'.*\[\{'loss'"),
        ({"loss": "dice", "alpha": 0.1}, "alpha=0.1 cannot be used with loss='dice'.*'tversky'"),
        ({"loss": "dsc", "beta": 0.1}, "it is a parameter of 'tversky'"),
        ({"loss": "focal", "ce_weight": 0.5}, "ce_weight=0.5 cannot be used with loss='focal'"),
        ({"loss": "dsc", "gamma": -1.0}, r"'gamma' parameter .*\[0, inf\)\. Got -1.0"),
        ({"loss": "dsc", "ce_weight": 2.0}, r"'ce_weight' parameter .*\[0, 1\]\. Got 2.0"),
        ({"loss": "dsc", "alpha": "a"}, "'alpha' parameter .*Got 'a'"),
        ({"loss": DiceLoss(), "gamma": 1.0}, "'gamma' must be None with a loss object"),
        ({"loss": DiceLoss(), "K": 1.0}, "'K' must be None with a loss object"),
        (
            {"loss": DiceLoss(level="example", reduction="none")},
            "must have reduction='mean', got 'none'",
        ),
        (
            {"loss": DiceLoss(class_weight=[1.0, 1.0, 1.0]), "class_weight": "balanced"},
            "on the estimator and on the loss object",
        ),
        ({"K": 3.0, "class_weight": "balanced"}, "K=3.0 means class_weight='log'"),
        ({"K": -5.0}, "weight log10.* of class 'O' is undefined for K=-5.0"),
        ({"K": "x"}, "'K' parameter .*None or a float"),
        ({"class_weight": "x"}, "'class_weight' parameter .*one of"),
        ({"class_weight": {"B-XYZ": 2.0}}, "no label of y: it has 'B-XYZ'; y has 'B-LOC'"),
        ({"class_weight": {"O": 1.0, "B-XYZ": -2.0}}, "'B-XYZ' .*Got -2.0"),
        ({"class_weight": {"O": -1.0}}, "Got -1.0"),
        ({"max_epochs": 0}, r"'max_epochs' parameter .*int in the range \[1, inf\)\. Got 0"),
        ({"batch_size": 1.5}, "'batch_size' parameter .*Got 1.5"),
        ({"accumulate": 0}, "'accumulate' parameter"),
        ({"lr": 0.0}, r"'lr' parameter .*\(0, inf\)"),
        ({"head_lr": -1.0}, "'head_lr' parameter .*None or a float"),
        ({"weight_decay": -1.0}, "'weight_decay' parameter"),
        ({"warmup": 1.0}, r"'warmup' parameter .*\[0, 1\)"),
        ({"warmup": -1}, r"'warmup' parameter .*int"),
        ({"clip_norm": 0.0}, "'clip_norm' parameter"),
        ({"max_length": 2}, r"'max_length' parameter .*\[3, 64\].*Got 2"),
        ({"max_length": 65}, r"'max_length' parameter .*\[3, 64\].*Got 65"),
        ({"max_length": 16, "stride": 14}, "'stride' parameter .*smaller than the 14 pieces"),
        ({"n_frozen_layers": 3}, r"'n_frozen_layers' parameter .*\[0, 2\]"),
        ({"validation_fraction": 1.0}, "'validation_fraction' parameter"),
        ({"validation_fraction": 0.99}, "leaves no row to train on"),
        ({"patience": 2}, "patience=2 needs rows to validate on"),
        ({"precision": "fp8"}, "'precision' parameter .*'bf16'"),
        ({"random_state": "seed"}, "'random_state' parameter"),
        ({"decode": "beam"}, "'decode' parameter .*'constrained', 'argmax'"),
        ({"background_bias": "auto"}, "background_bias='auto' needs rows to validate on"),
        ({"background_bias": "high"}, "'background_bias' parameter"),
        ({"model": 3}, "'model' parameter"),
        ({"model": "no-such-directory/x"}, "is no directory here.*pass the path of a local"),
        ({"model": "bert-base-cased"}, "the hub did not give it"),
    ],
)
def test_parameters(tiny_bert, parameters, message):
    with pytest.raises(ValueError, match=message):
        DiceTokenTagger(**{"model": tiny_bert, **FAST, **parameters}).fit(X, Y)


def test_directory_without_a_model(tmp_path):
    with pytest.raises(ValueError, match="holds no model that transformers can load"):
        DiceTokenTagger(tmp_path, **FAST).fit(X, Y)


def test_loss_parameter_on_a_name(tiny_bert):
    with pytest.raises(ValueError, match=r"'loss__gamma' needs a loss object.*loss=DiceLoss\(\)"):
        DiceTokenTagger(tiny_bert, loss="dsc").set_params(loss__gamma=1.0)


@pytest.mark.parametrize(
    "weight, message",
    [
        ([1.0], r"shape \(12,\)"),
        ([-1.0] * 12, "row 0 has -1.0"),
        ([1.0] * 11 + [np.nan], "row 11 has nan"),
        ([0.0] * 12, "it is zero in all rows"),
    ],
)
def test_sample_weight(tiny_bert, weight, message):
    with pytest.raises(ValueError, match=message):
        DiceTokenTagger(tiny_bert, **FAST).fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "score"])
def test_not_fitted_comes_before_looking_at_X(tiny_bert, method):
    arguments = (42, 42) if method == "score" else (42,)
    with pytest.raises(NotFittedError):
        getattr(DiceTokenTagger(tiny_bert), method)(*arguments)


class Poison(Callback):
    """Makes the loss NaN from one batch of one epoch on."""

    def __init__(self, epoch, batch):
        self.epoch, self.batch = epoch, batch
        self.seen = 0

    def on_batch_begin(self, net, **kwargs):
        self.seen += 1
        if len(net.history) == self.epoch and self.seen == self.batch:
            self.before = net.module_.transformer.classifier.bias.detach().clone()
            value = net.criterion_.value
            net.criterion_.value = lambda sums: value(sums) * float("nan")


def test_nan_loss_names_epoch_and_batch_and_keeps_the_weights(tiny_bert):
    poison = Poison(epoch=2, batch=4)
    tagger = DiceTokenTagger(tiny_bert, **{**FAST, "max_epochs": 3}, callbacks=[poison])
    with pytest.raises(ValueError, match=r"loss is not finite in epoch 2, batch 2 of 2 \(loss nan"):
        tagger.fit(X, Y)
    head = tagger.net_.module_.transformer.classifier.bias
    assert torch.equal(head, poison.before)
    assert np.isfinite(np.concatenate(tagger.predict_proba(X))).all()


class Interrupt(Callback):
    def on_epoch_end(self, net, **kwargs):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_is_not_swallowed(tiny_bert):
    with pytest.raises(KeyboardInterrupt):
        DiceTokenTagger(tiny_bert, **FAST, callbacks=[Interrupt()]).fit(X, Y)


def test_failed_refit_is_not_half_of_two(tiny_bert):
    tagger = DiceTokenTagger(tiny_bert, **FAST).fit(X, Y)
    other = [[tag.replace("PER", "ORG") for tag in row] for row in Y]
    with pytest.raises(ValueError, match="class_weight has no label of y"):
        tagger.set_params(class_weight={"B-PER": 2.0}).fit(X, other)
    with pytest.raises(NotFittedError):
        tagger.predict(X)


def test_failed_fit_leaves_no_parameter_changed(tiny_bert):
    tagger = DiceTokenTagger(tiny_bert, **FAST)
    before = tagger.get_params()
    with pytest.raises(ValueError, match="row 0"):
        tagger.fit(with_row(X, 0, "bare"), Y)
    assert tagger.get_params() == before
