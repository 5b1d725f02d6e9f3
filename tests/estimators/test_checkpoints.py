"""A fit that was killed goes on where it was, and one of a saved model where that ended."""

import os
import signal
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from skorch.callbacks import GradientNormClipping

from skdice import DiceTokenTagger
from skdice.nn import DirectoryCheckpoint

from ..corpora import easy_texts
from ..io.conftest import CASES, make
from ..processes import in_a_process
from ..quick import quick
from ..spies import Spy, fitted_state, limited_file_size, stop

EPOCHS = 4
DROPOUT_MATTERS = {"max_epochs": EPOCHS, "lr": 3e-3, "batch_size": 4}


class StopError(Exception):
    """Stands for the kill."""


def stop_in(epoch, event="on_batch_end", error=StopError):
    """Return a callback that ends a fit at an event of an epoch."""
    return Spy(event, stop(error, lambda net, _: len(net.history) == epoch))


def killed(estimator, X, y, **where):
    victim = clone(estimator).set_params(callbacks=[stop_in(**where)])
    with pytest.raises(StopError):
        victim.fit(X, y)


def continued(estimator, X, y):
    epochs = Spy("on_epoch_end")
    again = clone(estimator).set_params(callbacks=[epochs])
    return again.fit(X, y), epochs.count_


def assert_same_fit(one, other):
    weights, expected = one.net_.module_.state_dict(), other.net_.module_.state_dict()
    assert weights.keys() == expected.keys()
    for name, weight in weights.items():
        assert torch.equal(weight, expected[name]), name
    shown = [fit.history_.drop(columns="dur") for fit in (one, other)]
    pd.testing.assert_frame_equal(*shown)
    np.testing.assert_equal(one.loss_.get_params(), other.loss_.get_params())
    state, expected = fitted_state(one), fitted_state(other)
    for name in sorted(expected.keys() - {"loss", "history", "choices", "runs"}):
        np.testing.assert_equal(state[name], expected[name], err_msg=name)
    pd.testing.assert_frame_equal(one.choices_, other.choices_)
    pd.testing.assert_frame_equal(one.runs_, other.runs_)


@pytest.mark.parametrize("case", quick(["tagger", "two texts", "queries"], CASES))
def test_bit_for_bit(case, tiny_bert, tmp_path):
    parameters = {**DROPOUT_MATTERS, "validation_fraction": 0.25}
    plain, X, y = make(case, tiny_bert, **parameters)
    plain.fit(X, y)
    kept = clone(plain).set_params(checkpoint_dir=tmp_path)
    killed(kept, X, y, epoch=3)
    again, n_epochs = continued(kept, X, y)
    assert n_epochs == EPOCHS - 2
    assert_same_fit(again, plain)


def test_weights_that_a_callback_sets_at_the_end(tiny_bert, tmp_path):
    """A finished fit comes back with them."""
    halve = Spy(
        "on_train_end", lambda net, _: net.module_.transformer.classifier.weight.data.mul_(0.5)
    )
    estimator, X, y = make("tagger", tiny_bert, checkpoint_dir=tmp_path, **DROPOUT_MATTERS)
    first = clone(estimator).set_params(callbacks=[halve]).fit(X, y)
    assert_same_fit(clone(estimator).fit(X, y), first)


PARAMETERS = {
    "patience": {"patience": 1, "validation_fraction": 0.25, "lr": 3e-2, "max_epochs": 9},
    "accumulate": {"accumulate": 2, "loss": "dice", "memory": 5, "n_frozen_layers": 1},
    "bf16": {"precision": "bf16", "background_bias": "auto", "validation_fraction": 0.25},
    "numpy's seed": {"random_state": np.random.RandomState(3)},
    "sampled": {"negative_ratio": 1},
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_with_parameters(name, tiny_bert, tmp_path):
    case = "pairs" if name == "sampled" else "tagger"
    plain, X, y = make(case, tiny_bert, **{**DROPOUT_MATTERS, **PARAMETERS[name]})
    kept = clone(plain).set_params(checkpoint_dir=tmp_path)
    plain.fit(X, y)
    killed(kept, X, y, epoch=2)
    assert_same_fit(continued(kept, X, y)[0], plain)
    if name == "sampled":
        assert plain.history_["n_texts"].tolist() == [8] * EPOCHS
    if name == "patience":  # A fit that ended early has ended.
        assert len(plain.history_) < 9
        assert continued(kept, X, y)[1] == 0


def test_wherever_it_stops(tiny_bert, tmp_path):
    """Callbacks hear of the start of an epoch after skorch has counted it."""
    plain, X, y = make("texts", tiny_bert, **DROPOUT_MATTERS)
    plain.fit(X, y)
    for epoch, event, left in ((2, "on_epoch_begin", EPOCHS - 1), (EPOCHS, "on_train_end", 0)):
        kept = clone(plain).set_params(checkpoint_dir=tmp_path / event)
        killed(kept, X, y, epoch=epoch, event=event)
        again, n_epochs = continued(kept, X, y)
        assert n_epochs == left
        assert_same_fit(again, plain)


ANOTHER_FIT = {
    "lr": lambda tagger, X, y: (tagger.set_params(lr=1e-4), X, y),
    "texts": lambda tagger, X, y: (tagger, [*X[:-1], ["oslo"] * len(X[-1])], y),
    "tags": lambda tagger, X, y: (tagger, X, [*y[:-1], ["B-LOC"] * len(X[-1])]),
    "callbacks": lambda tagger, X, y: (tagger.set_params(callbacks=[GradientNormClipping()]), X, y),
}


@pytest.mark.parametrize("change", ANOTHER_FIT)
def test_another_fit_starts_afresh(change, tiny_bert, tmp_path):
    tagger, X, y = make("tagger", tiny_bert, checkpoint_dir=tmp_path, max_epochs=2)
    killed(tagger, X, y, epoch=2)
    other, X_other, y_other = ANOTHER_FIT[change](clone(tagger), X, y)
    assert len(other.fit(X_other, y_other).history_) == 2
    assert len(list(tmp_path.iterdir())) == 2
    assert continued(tagger, X, y)[1] == 1, "the other fit has a place of its own"


def test_other_weights_of_rows_are_another_fit(tiny_bert, tmp_path):
    """Of all rows at once, and so of those that are held out."""
    plain, X, y = make("tagger", tiny_bert, max_epochs=3, validation_fraction=0.5, patience=2)
    kept = clone(plain).set_params(checkpoint_dir=tmp_path).fit(X, y, np.ones(len(X)))
    epochs = Spy("on_epoch_end")
    weight = np.arange(len(X)) % 5 + 1
    again = clone(kept).set_params(callbacks=[epochs]).fit(X, y, weight)
    assert epochs.count_ == len(again.history_)
    assert_same_fit(again, plain.fit(X, y, weight))


def test_damaged_and_odd_states(tiny_bert, tmp_path):
    tagger, X, y = make("tagger", tiny_bert, checkpoint_dir=tmp_path, max_epochs=2)
    killed(tagger, X, y, epoch=2)
    (directory,) = tmp_path.iterdir()
    assert os.listdir(directory) == ["state.pt"]
    checkpoint = DirectoryCheckpoint(tmp_path, directory.name)
    path, state = directory / "state.pt", checkpoint.load()
    content = path.read_bytes()
    to_come = state["history"].replace('"epoch": 1', '"epoch": 7')
    odd = [
        [1],
        {key: state[key] for key in state if key != "optimizer_"},
        *(state | part for part in ({"weights": {}}, {"history": "[1]"}, {"history": to_come})),
    ]
    path.write_bytes(content[: len(content) // 2])
    for each in (None, *odd):
        if each is not None:
            checkpoint.save(each)
        with pytest.raises(ValueError, match=r"The checkpoint '.*' is damaged .* Delete it"):
            clone(tagger).fit(X, y)
    checkpoint.save(state)  # What is only shown does not matter.
    assert continued(tagger.set_params(verbose=1, checkpoint_dir=str(tmp_path)), X, y)[1] == 1
    assert b"optimizer" not in path.read_bytes()[:100_000], "the fit is finished"


@pytest.mark.parametrize(("directory", "random_state", "error", "message"), [
    (7, 0, ValueError, "'checkpoint_dir' parameter of DiceTokenTagger must be a dir.* Got 7"),
    ("", 0, ValueError, "must be a directory"),
    ("here", None, ValueError, "checkpoint_dir='here' needs a random_state"),
    (__file__, 0, OSError, "The checkpoint could not be saved"),
])  # fmt: skip
def test_bad_parameters(directory, random_state, error, message, tiny_bert):
    tagger, X, y = make("tagger", tiny_bert, checkpoint_dir=directory, random_state=random_state)
    with pytest.raises(error, match=message):
        tagger.fit(X, y)


@pytest.mark.parametrize("n_bytes", [1, 5_000, 150_000])
def test_a_full_disk_keeps_the_last_state(n_bytes, tmp_path):
    """It says so wherever it is met: torch raises an error of its own after that of the system."""
    checkpoint = DirectoryCheckpoint(tmp_path, "fit")
    states = [{"weights": torch.full((50_000,), value)} for value in (1.0, 2.0)]
    checkpoint.save(states[0])
    with (
        limited_file_size(n_bytes),
        pytest.raises(OSError, match=r"The checkpoint could not be saved \(File too large\)"),
    ):
        checkpoint.save(states[1])
    assert torch.equal(checkpoint.load()["weights"], states[0]["weights"])
    assert os.listdir(checkpoint.path) == ["state.pt"]


@pytest.mark.slow
def test_killed_by_the_system(tiny_bert, tmp_path):
    # A fork of this process cannot use a GPU.
    plain, X, y = make("tagger", tiny_bert, max_epochs=12, precision="fp32", device="cpu")
    kept = clone(plain).set_params(checkpoint_dir=tmp_path)

    def die_after_the_first_epoch():
        while not list(tmp_path.glob("*/state.pt")):
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGKILL)

    def fit():
        threading.Thread(target=die_after_the_first_epoch).start()
        clone(kept).fit(X, y)

    assert in_a_process(fit) == signal.SIGKILL
    again, n_epochs = continued(kept, X, y)
    assert n_epochs < 12
    assert_same_fit(again, plain.fit(X, y))
    assert len(os.listdir(tmp_path)) == 1


def test_ctrl_c_keeps_an_estimator_that_says_so(tiny_bert, tmp_path):
    tagger, X, y = make("tagger", tiny_bert, max_epochs=3)
    tagger.set_params(callbacks=[stop_in(2, error=KeyboardInterrupt)])
    with pytest.raises(KeyboardInterrupt) as caught:
        tagger.fit(X, y)
    assert "The estimator can be used" in caught.value.__notes__[0]
    assert tagger.interrupted_
    with pytest.warns(UserWarning, match=r"did not come to its end: it stopped in epoch 2 of 3"):
        predicted = tagger.predict(X)
    assert [len(row) for row in predicted] == [len(row) for row in X]
    tagger.set_params(callbacks=None).save_pretrained(tmp_path / "saved")
    assert "did not come to its end" in (tmp_path / "saved" / "README.md").read_text()
    with pytest.warns(UserWarning, match="did not come to its end"):
        DiceTokenTagger.from_pretrained(tmp_path / "saved").predict(X)
    assert not tagger.fit(X, y).interrupted_


def test_ctrl_c_stops_a_grid_search(tiny_bert):
    classifier, X, y = make("texts", tiny_bert, max_epochs=2)
    classifier.set_params(callbacks=[stop_in(2, error=KeyboardInterrupt)])
    with pytest.raises(KeyboardInterrupt):
        GridSearchCV(classifier, {"lr": [1e-3, 1e-2]}, cv=2, error_score=0).fit(X, y)


@pytest.mark.parametrize("case", quick(["tagger", "texts", "pairs"], CASES))
def test_all_weights_go_on(case, tiny_bert, tmp_path):
    first, *rows = make(case, tiny_bert, precision="fp32")
    tagger, *sentences = make("tagger", tmp_path)
    with warnings.catch_warnings():
        # Of a base model there is nothing to tell, and another task takes the encoder alone.
        warnings.filterwarnings("error", ".*was trained for")
        first.fit(*rows).save_pretrained(tmp_path)
        still = clone(first).set_params(model=tmp_path, lr=1e-30).fit(*rows)
        if case == "texts":
            tagger.fit(*sentences)
    weights = still.net_.module_.state_dict()
    for name, weight in first.net_.module_.state_dict().items():
        assert torch.equal(weights[name], weight), name


@pytest.mark.parametrize(
    "names, start", [(["a", "b"], "that head, class by class"), (["a", "b", "c"], "a new head")]
)
def test_other_classes(names, start, tiny_bert, tmp_path):
    X, y = easy_texts(18)
    first = make("texts", tiny_bert)[0].fit(X, y)
    first.save_pretrained(tmp_path)
    other = clone(first).set_params(model=tmp_path, lr=1e-30)
    message = rf"for the classes 'person', 'place'; those of this fit are 'a', 'b'.*from {start}"
    with pytest.warns(UserWarning, match=message):
        other.fit(X, np.resize(names, 18))
    head = "transformer.classifier.bias"
    kept = other.net_.module_.state_dict()[head], first.net_.module_.state_dict()[head]
    assert torch.equal(*kept) == (start != "a new head")
