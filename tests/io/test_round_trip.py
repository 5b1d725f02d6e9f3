"""A loaded estimator is the one that was saved."""

import inspect
import pickle
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from skorch.callbacks import Callback, EpochTimer

from skdice import DicePairClassifier, DiceTextClassifier, DiceTokenTagger
from skdice.estimators import load_pretrained
from skdice.losses import DiceLoss, FocalLoss, WeightedCrossEntropyLoss
from skdice.model_selection import tune_decision

from ..corpora import easy_corpus, easy_pairs, easy_texts
from .conftest import CASES, FAST, make

METHODS = (
    "predict",
    "predict_proba",
    "decision_function",
    "predict_spans",
    "no_answer_score",
)


def outputs(estimator, X):
    """Return what every prediction method gives, floats exactly."""
    return {
        name: np.asarray(getattr(estimator, name)(X)).tolist()
        for name in METHODS
        if hasattr(estimator, name)
    }


def assert_same(a, b):
    """Compare nested outputs exactly."""
    assert repr(a) == repr(b)
    for name in a:
        for row, other in zip(a[name], b[name], strict=True):
            np.testing.assert_array_equal(row, other)


def saved_and_loaded(estimator, directory):
    estimator.save_pretrained(directory)
    return type(estimator).from_pretrained(directory)


def plain_parameters(estimator):
    """Return parameters that can be compared: losses by class and parameters."""
    return {
        name: (type(value), repr(value)) for name, value in estimator.get_params(deep=True).items()
    }


@pytest.mark.parametrize("family", ["bert", "roberta", "xlnet"])
@pytest.mark.parametrize("case", CASES)
def test_predictions_and_state_are_equal(fitted, case, family, tmp_path):
    estimator, X, y = fitted(case, family)
    loaded = saved_and_loaded(estimator, tmp_path / "saved")
    assert_same(outputs(loaded, X), outputs(estimator, X))
    assert loaded.score(X, y) == estimator.score(X, y)
    assert plain_parameters(loaded) == plain_parameters(estimator)
    assert set(vars(loaded)) == set(vars(estimator))
    pd.testing.assert_frame_equal(loaded.history_, estimator.history_)
    for name in set(vars(estimator)) - {"net_", "tokenizer_", "history_"}:
        value, other = getattr(estimator, name), getattr(loaded, name)
        assert type(value) is type(other)
        assert repr(value) == repr(other)
    assert repr(loaded.net_.criterion_.get_params()) == repr(estimator.net_.criterion_.get_params())


@pytest.mark.parametrize("case", CASES)
def test_loaded_by_name_pickled_and_saved_again(fitted, case, tmp_path):
    estimator, X, _ = fitted(case)
    estimator.save_pretrained(tmp_path / "first")
    loaded = load_pretrained(tmp_path / "first")
    assert type(loaded) is type(estimator)
    again = pickle.loads(pickle.dumps(loaded))
    again.save_pretrained(tmp_path / "second")
    for name in ("model.safetensors", "config.json", "tokenizer.json", "skdice.json"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    assert_same(outputs(load_pretrained(tmp_path / "second"), X), outputs(estimator, X))


@pytest.mark.parametrize("case", CASES)
def test_a_clone_is_fitted_from_the_base_model(fitted, case, tiny_bert, tmp_path):
    estimator, X, y = fitted(case)
    copy = clone(saved_and_loaded(estimator, tmp_path / "saved"))
    assert copy.model == tiny_bert
    with pytest.raises(NotFittedError):
        copy.predict(X)
    assert_same(outputs(copy.fit(X, y), X), outputs(estimator, X))


@pytest.mark.parametrize("case", CASES)
def test_decisions_are_tuned_saved_and_tuned_again(fitted, case, tmp_path):
    estimator, X, y = fitted(case)
    tuned = tune_decision(estimator, X, y)
    loaded = saved_and_loaded(tuned, tmp_path / "tuned")
    assert_same(outputs(loaded, X), outputs(tuned, X))
    fresh = saved_and_loaded(estimator, tmp_path / "plain")
    assert_same(outputs(tune_decision(fresh, X, y), X), outputs(tuned, X))


def test_words_are_cut_as_in_fit(fitted, tmp_path):
    """Also those that a byte-level BPE that puts a space before texts would cut otherwise."""
    estimator, _, _ = fitted("tagger", "roberta")
    odd = [["", " john", "\u200b", "  ", "saw", "\ud800", "x" * 90], [], ["[SEP]", "</s>"]]
    loaded = saved_and_loaded(estimator, tmp_path / "saved")
    assert_same(outputs(loaded, odd), outputs(estimator, odd))


def test_windows_and_validation(tiny_bert, tmp_path):
    X, y = easy_corpus(24)
    tagger = DiceTokenTagger(
        tiny_bert,
        **{**FAST, "max_epochs": 3},
        max_length=8,
        stride=2,
        validation_fraction=0.25,
        patience=1,
        background_bias="auto",
    ).fit(X, y)
    loaded = saved_and_loaded(tagger, tmp_path / "saved")
    long = [[word for row in X[:6] for word in row]]
    assert_same(outputs(loaded, long), outputs(tagger, long))
    assert (loaded.max_length_, loaded.stride_) == (8, 2)
    assert loaded.background_bias_ == tagger.background_bias_
    pd.testing.assert_frame_equal(loaded.history_, tagger.history_)


@pytest.mark.parametrize(
    "labels",
    [
        ["no", "yes"],
        [0, 1],
        [-1, 7],
        [False, True],
        [0.0, 1.0],
        ["1", "2", "10"],
        [np.int8(3), np.int8(4)],
        ["ja|nein", "`a\nb`", "Ω\ud800", ""],
    ],
    ids=repr,
)
def test_labels_keep_their_types(tiny_bert, labels, tmp_path):
    X, _ = easy_pairs(12)
    y = [labels[i % len(labels)] for i in range(12)]
    estimator = DicePairClassifier(tiny_bert, **FAST).fit(X, y)
    loaded = saved_and_loaded(estimator, tmp_path / "saved")
    assert loaded.classes_.dtype == estimator.classes_.dtype
    assert loaded.classes_.tolist() == estimator.classes_.tolist()
    assert [type(label) for label in loaded.classes_] == [type(a) for a in estimator.classes_]
    assert loaded.predict(X).tolist() == estimator.predict(X).tolist()


@pytest.mark.parametrize(
    "params",
    [
        {"loss": DiceLoss(gamma=0.5, ohem_ratio=2.0)},
        {"loss": FocalLoss(gamma=np.float64(1.5)), "class_weight": {"person": 2.0, "place": 1}},
        {"loss": WeightedCrossEntropyLoss(class_weight=np.array([1.0, 3.0]))},
        {"loss": "tversky", "alpha": 0.3, "beta": 0.7, "K": 2, "pos_label": "place"},
        {"class_weight": "balanced", "warmup": 3, "clip_norm": None, "accumulate": np.int64(2)},
    ],
    ids=lambda params: repr(params["loss"]) if "loss" in params else "numbers",
)
def test_parameters(tiny_bert, params, tmp_path):
    X, y = easy_texts(12)
    estimator = DiceTextClassifier(tiny_bert, **FAST, **params).fit(X, y)
    loaded = saved_and_loaded(estimator, tmp_path / "saved")
    before, after = estimator.get_params(), loaded.get_params()
    assert set(before) == set(after)
    for name, value in before.items():
        if name == "loss" and not isinstance(value, str):
            assert type(after[name]) is type(value)
        else:
            np.testing.assert_array_equal(after[name], value)
            plain = value.item() if isinstance(value, np.generic) else value
            assert type(after[name]) is type(plain)


def test_parameters_of_a_query_tagger(tiny_bert, tmp_path):
    """Tuples and dicts are among them, and none is forgotten."""
    estimator, X, y = make(
        "queries",
        tiny_bert,
        span_weights=(1, 2.5, 0.1),
        match_candidates="all",
        negative_ratio=2.0,
        decode="nested",
    )
    loaded = saved_and_loaded(estimator.fit(X, y), tmp_path / "saved")
    assert plain_parameters(loaded) == plain_parameters(estimator)
    assert set(loaded.get_params()) == set(inspect.signature(type(estimator)).parameters)
    assert loaded.queries_ == {"LOC": "where ?", "PER": "who ?"}
    assert_same(outputs(loaded, X), outputs(estimator, X))


def test_paths_and_tables(tiny_bert, tmp_path):
    X, y = easy_pairs(12)
    table = pd.DataFrame(X, columns=["left", "right"])
    estimator = DicePairClassifier(Path(tiny_bert), **FAST).fit(table, y)
    loaded = saved_and_loaded(estimator, tmp_path / "saved")
    assert loaded.model == tiny_bert
    assert loaded.feature_names_in_.tolist() == ["left", "right"]
    with pytest.raises(ValueError, match="columns of X must be those of the fit"):
        loaded.predict(table.rename(columns={"left": "a"}))


@pytest.mark.parametrize(
    "state", [np.random.RandomState(0), np.random.default_rng(0)], ids=["RandomState", "Generator"]
)
def test_generators_and_callbacks_are_left_out_with_a_warning(tiny_bert, state, tmp_path):
    X, y = easy_texts(8)
    params = {**FAST, "random_state": state, "callbacks": [("clock", EpochTimer())]}
    estimator = DiceTextClassifier(tiny_bert, **params).fit(X, y)
    with pytest.warns(UserWarning, match="is not saved") as record:
        estimator.save_pretrained(tmp_path / "saved")
    assert [str(w.message).split(" (")[0] for w in record] == [
        "The parameter callbacks is not saved",
        "The parameter random_state is not saved",
    ]
    assert {w.filename for w in record} == {__file__}
    loaded = DiceTextClassifier.from_pretrained(tmp_path / "saved")
    assert loaded.random_state is None
    assert loaded.callbacks is None
    assert estimator.random_state is state


def test_interrupted_in_the_first_epoch(tiny_bert, tmp_path):
    class Interrupt(Callback):
        def on_batch_end(self, net, **kwargs):
            signal.raise_signal(signal.SIGINT)

    X, y = easy_corpus(24)
    tagger = DiceTokenTagger(tiny_bert, **FAST, callbacks=[("stop", Interrupt())])
    with pytest.raises(KeyboardInterrupt):
        tagger.fit(X, y)
    with pytest.warns(UserWarning, match="callbacks is not saved"):
        loaded = saved_and_loaded(tagger, tmp_path / "saved")
    assert_same(outputs(loaded, X), outputs(tagger, X))
    pd.testing.assert_frame_equal(loaded.history_, tagger.history_)
    assert "interrupted in the first one" in (tmp_path / "saved" / "README.md").read_text()


def test_saving_does_not_change_the_estimator(fitted, tmp_path):
    estimator, X, _ = fitted("tagger")
    before = {name: repr(value) for name, value in vars(estimator).items()}
    config = estimator.net_.module_.transformer.config
    labels = dict(config.id2label)
    expected = outputs(estimator, X)
    estimator.save_pretrained(tmp_path / "saved")
    assert {name: repr(value) for name, value in vars(estimator).items()} == before
    assert config.id2label == labels
    assert_same(outputs(estimator, X), expected)


def test_the_global_generator_is_untouched(fitted, tmp_path):
    estimator, _, _ = fitted("queries")
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    saved_and_loaded(estimator, tmp_path / "saved")
    assert torch.equal(torch.rand(3), expected)


def test_device_is_chosen_at_load(fitted, saved_tagger):
    estimator, X, _ = fitted("tagger")
    loaded = DiceTokenTagger.from_pretrained(saved_tagger, device="cpu")
    assert loaded.device == "cpu"
    assert_same(outputs(loaded, X), outputs(estimator, X))


def test_loading_is_silent(saved_tagger, tmp_path, capfd):
    load_pretrained(saved_tagger).save_pretrained(tmp_path / "again")
    assert capfd.readouterr() == ("", "")
