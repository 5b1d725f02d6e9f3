import copy
import inspect
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from skorch.callbacks import EpochTimer

from skdice import DiceTextClassifier
from skdice.estimators import load_pretrained
from skdice.io._values import from_json, to_json
from skdice.losses import DiceLoss, WeightedCrossEntropyLoss
from skdice.model_selection import tune_decision

from ..corpora import easy_texts
from ..quick import quick
from .conftest import CASES, FAST, make

METHODS = ("predict", "predict_proba", "decision_function", "predict_spans", "no_answer_score")


def outputs(estimator, X):
    """Return what every prediction method gives, floats exactly."""
    names = [name for name in METHODS if hasattr(estimator, name)]
    return {name: np.asarray(getattr(estimator, name)(X)).tolist() for name in names}


def assert_same(a, b):
    assert repr(a) == repr(b)
    for name in a:
        for row, other in zip(a[name], b[name], strict=True):
            np.testing.assert_array_equal(row, other)


def saved_and_loaded(estimator, directory):
    estimator.save_pretrained(directory)
    return type(estimator).from_pretrained(directory)


def shown(estimator):
    """Return parameters and fitted attributes in a form that can be compared."""
    names = [name for name in dir(estimator) if name.endswith("_") and not name.startswith("_")]
    learned = {name: getattr(estimator, name) for name in set(names) - {"net_", "tokenizer_"}}
    named = {**estimator.get_params(), **learned, **estimator.net_.criterion_.get_params()}
    return {name: (type(value), repr(value)) for name, value in named.items()}


OTHERS = [("tagger", "roberta"), ("questions", "roberta"), ("pairs", "xlnet"), ("queries", "xlnet")]
EVERY = [(case, family) for case in CASES for family in ("bert", "roberta", "xlnet")]


@pytest.mark.parametrize(
    "of", quick([*((case, "bert") for case in CASES), *OTHERS], EVERY), ids=str
)
def test_predictions_parameters_and_state_are_equal(fitted, of, tmp_path):
    (case, _), (estimator, X, y) = of, fitted(*of)
    before, labels = shown(estimator), dict(estimator.net_.module_.transformer.config.id2label)
    generator = torch.get_rng_state()
    loaded = saved_and_loaded(estimator, tmp_path / "saved")
    assert torch.equal(torch.get_rng_state(), generator)
    assert shown(loaded) == shown(estimator) == before
    assert estimator.net_.module_.transformer.config.id2label == labels
    pd.testing.assert_frame_equal(loaded.history_, estimator.history_)
    # Of a single row, products of matrices are computed in another way.
    for rows in (X, *(X[i : i + 1] for i in range(4))):
        assert_same(outputs(loaded, rows), outputs(estimator, rows))
    assert loaded.score(X, y) == estimator.score(X, y)
    if case == "tagger":  # Words that a BPE that puts a space before texts would cut otherwise.
        odd = [["", " john", "\u200b", "  ", "saw", "\ud800", "x" * 90], [], ["[SEP]", "</s>"]]
        assert_same(outputs(loaded, odd), outputs(estimator, odd))


def test_files_that_change_after_loading(fitted, own_bert, tmp_path):
    """Neither the saved weights nor those of the base model are read again."""
    estimator, X, y = fitted("texts")
    loaded = saved_and_loaded(estimator, tmp_path / "saved")
    own = clone(estimator).set_params(model=str(own_bert)).fit(X, y)
    for directory in (tmp_path / "saved", own_bert):
        file = directory / "model.safetensors"
        with file.open("r+b") as opened:  # The same file, in its place.
            opened.write(bytes(file.stat().st_size))
    assert_same(outputs(loaded, X), outputs(estimator, X))
    assert_same(outputs(own, X), outputs(estimator, X))


@pytest.mark.parametrize("case", ["tagger", "texts"])
def test_cloudpickle(fitted, case):
    """MLflow and dask send models by it."""
    estimator, X, _ = fitted(case)
    sent = pytest.importorskip("cloudpickle").dumps(estimator)
    assert_same(outputs(pickle.loads(sent), X), outputs(estimator, X))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow(fitted, tmp_path):
    """The call that the guide shows."""
    flavor, place = pytest.importorskip("mlflow.sklearn"), str(tmp_path / "model")
    estimator, X, _ = fitted("tagger")
    how = {"serialization_format": "cloudpickle", "pip_requirements": ["skdice"]}
    flavor.save_model(estimator, place, **how)
    assert_same(outputs(flavor.load_model(place), X), outputs(estimator, X))


@pytest.mark.parametrize("case", quick(["tagger", "pairs", "texts", "questions", "queries"], CASES))
def test_again(fitted, case, tmp_path, capfd):
    """Loaded by its name, pickled and saved again; and fitted again from the base model."""
    estimator, X, y = fitted(case)
    estimator.save_pretrained(tmp_path / "first")
    loaded = load_pretrained(tmp_path / "first", device="cpu")
    assert type(loaded) is type(estimator)
    assert loaded.device == "cpu"
    again = pickle.loads(pickle.dumps(loaded.set_params(device=estimator.device)))
    again.save_pretrained(tmp_path / "second")
    assert capfd.readouterr() == ("", "")
    for name in ("model.safetensors", "config.json", "tokenizer.json", "skdice.json"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    assert_same(outputs(load_pretrained(tmp_path / "second"), X), outputs(estimator, X))
    tuned = tune_decision(estimator, X, y)
    assert_same(outputs(tune_decision(loaded, X, y), X), outputs(tuned, X))
    assert_same(outputs(saved_and_loaded(tuned, tmp_path / "tuned"), X), outputs(tuned, X))
    assert_same(outputs(clone(loaded).fit(X, y), X), outputs(estimator, X))


OPTIONS = {
    "windows": ("tagger", {"max_length": 8, "stride": 2, "background_bias": "auto",
                           "validation_fraction": 0.25, "patience": 1}),
    "crf": ("tagger", {"crf": True, "word_shapes": True}),
    "dice": ("texts", {"loss": DiceLoss(gamma=0.5, ohem_ratio=2.0)}),
    "wce": ("pairs", {"loss": WeightedCrossEntropyLoss(class_weight=np.array([1.0, 3.0]))}),
    "tversky": ("pairs", {"loss": "tversky", "alpha": 0.3, "class_weight": {0: 2.0, 1: 1}}),
    "queries": ("queries", {"span_weights": (1, 2.5, 0.1), "match_candidates": "all",
                            "negative_ratio": 2.0, "decode": "nested", "n_members": 2}),
    "members": ("pairs", {"n_members": 3}),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_parameters(tiny_bert, name, tmp_path):
    case, options = OPTIONS[name]
    estimator, X, y = make(case, Path(tiny_bert), **options)
    loaded = saved_and_loaded(estimator.fit(X, y), tmp_path / "saved")
    assert loaded.model == tiny_bert
    assert set(loaded.get_params(deep=False)) == set(inspect.signature(type(loaded)).parameters)
    for part in options:
        assert repr(getattr(loaded, part)) == repr(options[part])
    for other in (loaded, pickle.loads(pickle.dumps(estimator))):
        assert_same(outputs(other, X), outputs(estimator, X))
        assert len(other.net_.module_.members) == options.get("n_members", 1) - 1


@pytest.mark.parametrize("state", [np.random.RandomState(0), np.random.default_rng(0)])
def test_generators_and_callbacks_are_left_out_with_a_warning(tiny_bert, state, tmp_path):
    X, y = easy_texts(8)
    params = {"random_state": state, "callbacks": [("clock", EpochTimer())]}
    estimator = DiceTextClassifier(
        tiny_bert, **{**FAST, **params}, checkpoint_dir=tmp_path / "states"
    ).fit(X, y)
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


# What is set after a fit, and is no part of it.
SET_LATER = {
    "tagger": {"precision": "bf16", "stride": 1, "max_length": 9, "word_shapes": True, "crf": True},
    "pairs": {"loss": "dice", "n_frozen_layers": 99, "threshold": 0.9, "truncation": "second"},
    "labels": {"threshold": 0.9, "max_length": 5, "class_weight": "balanced", "lr": 1.0},
    "questions": {"null_threshold": -9.0, "max_length": 30, "n_members": 3, "model": "gone"},
    "queries": {"queries": {"PER": "other ?"}, "span_weights": (1, 2, 3), "precision": "bf16"},
}


@pytest.mark.parametrize("case", SET_LATER)
def test_what_is_set_after_a_fit_is_saved_and_changes_no_prediction(fitted, case, tmp_path):
    estimator, X, _ = fitted(case)
    before = outputs(estimator, X)
    changed = copy.copy(estimator).set_params(**SET_LATER[case])
    assert_same(outputs(changed, X), before)
    loaded = saved_and_loaded(changed, tmp_path / "saved")
    assert {name: getattr(loaded, name) for name in SET_LATER[case]} == SET_LATER[case]
    assert repr(loaded.get_params()) == repr(changed.get_params())
    assert_same(outputs(loaded, X), before)
    assert shown(loaded) == shown(changed)


def there_and_back(value):
    return from_json(json.loads(json.dumps(to_json(value, "value"), allow_nan=False)))


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
keys = st.booleans() | st.integers() | st.text()


def containers(parts):
    dicts = st.dictionaries(keys, parts) | st.dictionaries(st.just("type"), parts)
    return st.lists(parts) | st.lists(parts).map(tuple) | dicts


values = st.recursive(scalars, containers, max_leaves=10)


def same(a, b):
    """Whether two values are equal, types, signs of zero and NaN included."""
    return type(a) is type(b) and repr(a) == repr(b)


@settings(max_examples=300, deadline=None)
@given(values)
def test_plain_values(value):
    assert same(there_and_back(value), value)


@pytest.mark.parametrize("array", [
    np.array([0.1, -math.inf, math.nan]), np.array([0.1, 1e30], dtype=np.float32),
    np.array([1, 255], dtype=np.uint8), np.array([True, False]), np.arange(6).reshape(2, 3),
    np.empty((0, 3)), np.array(["a", "\ud800", ""], dtype=object), np.array(3.5),
    np.array([None, (1, "a")], dtype=object),
], ids=repr)  # fmt: skip
def test_arrays(array):
    loaded = there_and_back(array)
    assert loaded.dtype == array.dtype
    assert loaded.shape == array.shape
    assert same(loaded.tolist(), array.tolist())
