"""Exported networks in onnxruntime, which knows nothing of torch."""

import copy
import errno
import functools
import json
import logging
import math
import os
import warnings

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from transformers import AutoTokenizer

import skdice
from skdice.io import _onnx

from .conftest import make

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

INPUTS = ["input_ids", "attention_mask", "token_type_ids"]
# Each kind of estimator and each family once: an export takes seconds.
EXPORTED = [
    ("tagger", "bert"),
    ("texts", "distilbert"),
    ("questions", "roberta"),
    ("queries", "bert"),
]


def state_of(estimator):
    """Return what an export must not change."""
    module = estimator.net_.module_
    return {
        "modes": [part.training for part in module.modules()],
        "attention": module.transformer.config._attn_implementation,
        "weights": [weight.sum().item() for weight in module.parameters()],
        "random": torch.get_rng_state().tolist(),
        "logging": logging.root.manager.disable,
    }


@pytest.fixture(scope="module")
def exported(fitted_shallow, tmp_path_factory):
    """Return a fitted estimator, its X, and the file, by case and family."""

    @functools.cache
    def export(case, family):
        estimator, X, _ = fitted_shallow(case, family)
        path = tmp_path_factory.mktemp("onnx") / "model.onnx"
        estimator.net_.module_.train()  # To see that dropout is off in the file, and on after it.
        before = state_of(estimator)
        with warnings.catch_warnings(action="error"):
            estimator.export_onnx(path)
        assert state_of(estimator) == before
        assert os.listdir(path.parent) == ["model.onnx"]
        return estimator, X, path

    return export


@pytest.fixture(scope="module")
def session(exported):
    """Return a fitted estimator, its X, and a session of its file, by case and family."""

    @functools.cache
    def load(case, family):
        estimator, X, path = exported(case, family)
        return estimator, X, onnxruntime.InferenceSession(path)

    return load


def metadata(session):
    return session.get_modelmeta().custom_metadata_map


def run(session, batch):
    """Return the outputs of a batch by name."""
    inputs = {entry.name: batch[entry.name] for entry in session.get_inputs()}
    names = [entry.name for entry in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))


@pytest.mark.parametrize("case, family", EXPORTED)
def test_signature(exported, session, case, family):
    estimator, _, path = exported(case, family)
    onnx.checker.check_model(path, full_check=True)
    # Neither the user's nor the library's place on this machine is told.
    assert b"site-packages" not in path.read_bytes()
    assert os.fsencode(os.path.dirname(skdice.__file__)) not in path.read_bytes()
    session = session(case, family)[2]
    n_inputs = 3 if family == "bert" else 2
    assert [entry.name for entry in session.get_inputs()] == INPUTS[:n_inputs]
    assert [entry.shape for entry in session.get_inputs()] == [["batch", "length"]] * n_inputs
    pieces = ["batch", "length"]
    assert {entry.name: entry.shape for entry in session.get_outputs()} == {
        "tagger": {"logits": [*pieces, len(getattr(estimator, "classes_", []))]},
        "texts": {"logits": ["batch", 3]},
        "questions": {"start_logits": pieces, "end_logits": pieces},
        "queries": {
            "start_logits": pieces,
            "end_logits": pieces,
            "match_logits": [*pieces, "length"],
        },
    }[case]
    said = metadata(session)
    assert said["estimator"] == type(estimator).__name__
    assert said["skdice_version"] == skdice.__version__
    assert int(said["max_length"]) == estimator.max_length_


class TestEndToEnd:
    """The file and the tokenizer alone give what ``predict`` gives."""

    @pytest.fixture
    def load_tokenizer(self, tmp_path):
        def load(estimator):
            estimator.save_pretrained(tmp_path)
            return AutoTokenizer.from_pretrained(tmp_path)

        return load

    def test_tagger(self, session, load_tokenizer):
        estimator, X, session = session("tagger", "bert")
        encoding = load_tokenizer(estimator)(
            X, is_split_into_words=True, padding=True, return_tensors="np"
        )
        best = run(session, encoding)["logits"].argmax(axis=-1)
        said = metadata(session)
        decision = {"scheme_": "IOB2", "background_bias_": 0.0, "threshold_": 0.0}
        assert json.loads(said["decision"]) == decision
        classes = json.loads(said["classes"])
        found = [
            [classes[best[i, encoding.word_to_tokens(i, w).start]] for w in range(len(words))]
            for i, words in enumerate(X)
        ]
        greedy = copy.copy(estimator).set_params(decode="argmax")
        assert found == greedy.predict(X).tolist()
        assert len({tag for row in found for tag in row}) > 1

    def test_classifier(self, session, load_tokenizer):
        estimator, X, session = session("texts", "distilbert")
        encoding = load_tokenizer(estimator)(X, padding=True, return_tensors="np")
        said = metadata(session)
        scores = run(session, encoding)["logits"] - json.loads(said["decision"])["threshold_"]
        found = np.array(json.loads(said["classes"]))[scores.argmax(axis=1)]
        assert found.tolist() == estimator.predict(X).tolist()

    def test_query_tagger(self, session, load_tokenizer):
        estimator, X, session = session("queries", "bert")
        said = metadata(session)
        assert json.loads(said["decision"]) == {"scheme_": "IOB2", "threshold_": 0.5}
        tokenizer = load_tokenizer(estimator)
        labels, queries = json.loads(said["classes"]), json.loads(said["queries"])
        threshold = -1.0  # One that enough spans exceed, of a model that has hardly learned.
        n_found = 0
        for words, spans in zip(
            X, estimator.task.find(X, estimator.fitted.reader, estimator.logits, threshold)
        ):
            found = {}
            for label in labels:
                query = queries[label].split()
                encoding = tokenizer(query, words, is_split_into_words=True, return_tensors="np")
                outputs = run(session, encoding)
                first = [encoding.word_to_tokens(0, w, 1).start for w in range(len(words))]
                starts, ends = outputs["start_logits"][0, first], outputs["end_logits"][0, first]
                match = outputs["match_logits"][0][np.ix_(first, first)]
                lowest = np.minimum(match, np.minimum.outer(starts, ends))
                for i, j in np.argwhere(lowest > threshold).tolist():
                    if i <= j:
                        found[i, j + 1, label] = pytest.approx(lowest[i, j], abs=1e-4)
            assert found == {tuple(entity)[:3]: logit for logit, entity in spans}
            n_found += len(found)
        assert n_found > 20


@pytest.mark.parametrize(
    "case, threshold, decision",
    [
        ("labels", np.array([0.5, 0.25]), {"threshold_": [0.5, 0.25]}),
        ("questions", math.inf, {"null_threshold_": "inf"}),
    ],
)
def test_decisions_are_told(fitted_shallow, monkeypatch, tmp_path, case, threshold, decision):
    """Without an export: what it is given is looked at."""
    given = []
    monkeypatch.setattr(_onnx, "_write", lambda path, module, outputs, n, said: given.append(said))
    estimator = copy.copy(fitted_shallow(case)[0])
    setattr(estimator, next(iter(decision)), threshold)
    estimator.export_onnx(tmp_path / "model.onnx")
    assert json.loads(given[0]["decision"]) == decision
    assert ("classes" in given[0]) == (case == "labels")


@pytest.mark.parametrize(
    "path, error",
    [
        (None, TypeError),
        ("model.pt", ValueError),
        ("directory.onnx/", ValueError),
        ("missing/model.onnx", FileNotFoundError),
    ],
)
def test_refused_paths(fitted_shallow, tiny_bert, tmp_path, monkeypatch, path, error):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "directory.onnx").mkdir()
    with pytest.raises(error):
        fitted_shallow("tagger")[0].export_onnx(path)
    with pytest.raises(NotFittedError):
        make("tagger", tiny_bert)[0].export_onnx("model.onnx")


def test_an_old_file_is_replaced_as_a_whole_or_not_at_all(fitted_shallow, tmp_path, monkeypatch):
    def write(path, *args):
        path.write_bytes(b"new")
        if is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(_onnx, "_write", write)
    estimator, old, link = fitted_shallow("tagger")[0], tmp_path / "a.onnx", tmp_path / "link.onnx"
    old.write_bytes(b"old")
    link.symlink_to(old)
    is_full = True
    with pytest.raises(OSError, match="No space"):
        estimator.export_onnx(link)
    assert old.read_bytes() == b"old"
    is_full = False
    estimator.export_onnx(link)
    assert link.is_symlink()
    assert old.read_bytes() == b"new"
    assert sorted(os.listdir(tmp_path)) == ["a.onnx", "link.onnx"]
