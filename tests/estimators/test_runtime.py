"""Predictions on ONNX Runtime: those of torch, from the same batches."""

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np
import pytest
import torch
from sklearn.base import clone

from skdice.estimators import load_pretrained
from skdice.nn import _onnx

from ..io.conftest import fitted_shallow, make, scores  # noqa: F401
from ..spies import internals
from ..tiny_models import build_bert

for package in ("onnx", "onnxruntime", "onnxscript"):
    pytest.importorskip(package)

# Each estimator, and families of all kinds of tokenizers and attention: an export takes seconds.
CASES = [
    ("tagger", "bert"),
    ("questions", "roberta"),
    pytest.param("texts", "distilbert", marks=pytest.mark.slow),
    pytest.param("pairs", "electra", marks=pytest.mark.slow),
    pytest.param("tagger", "modernbert", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", autouse=True)
def sessions(traced_once):
    """Return the sizes of the files that sessions are opened of."""
    sessions = []
    open_session = _onnx.open_session

    def open_and_count(path):
        sessions.append(path.stat().st_size)
        return open_session(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_onnx, "open_session", open_and_count)
        yield sessions


@pytest.fixture
def estimator(fitted_shallow):  # noqa: F811
    """Return a function from case, family and runtime to an own copy with X and y."""

    def get(case="tagger", family="bert", runtime="onnx", **params):
        estimator, X, y = fitted_shallow(case, family)
        return copy.copy(estimator).set_params(runtime=runtime, **params), X, y

    return get


@pytest.mark.parametrize("case, family", CASES)
def test_same_as_torch(estimator, monkeypatch, case, family):
    torch_one, X, y = estimator(case, family, "torch")
    onnx_one = estimator(case, family)[0]
    expected = scores(torch_one, X), torch_one.predict(X), torch_one.score(X, y)

    def refuse(*args, **kwargs):
        raise AssertionError("torch has computed")

    monkeypatch.setattr("skdice.nn._net.to_device", refuse)
    assert scores(onnx_one, X) == pytest.approx(expected[0], abs=1e-4)
    np.testing.assert_array_equal(onnx_one.predict(X), expected[1])
    assert onnx_one.score(X, y) == expected[2]


@pytest.mark.parametrize("case, family", CASES[:3])
def test_int8_is_close(estimator, case, family):
    torch_one, X, _ = estimator(case, family, "torch")
    int8_one = estimator(case, family, "onnx-int8")[0]
    expected, found = scores(torch_one, X), scores(int8_one, X)
    assert found == pytest.approx(expected, abs=0.05)
    assert found != pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_int8_of_a_layer_with_an_outlier(tmp_path, monkeypatch):
    """A large input without effect leaves nothing of the others in int8, so the layer is left."""
    monkeypatch.setattr(_onnx, "_OUTLIER", 10)
    tagger, X, y = make("tagger", build_bert(tmp_path, intermediate_size=256, num_hidden_layers=1))
    layer = tagger.fit(X, y).net_.module_.transformer.base_model.encoder.layer[0]
    with torch.no_grad():
        layer.intermediate.dense.bias[0] = 1e5
        layer.output.dense.weight[:, 0] = 0
    expected = scores(tagger, X)
    found = scores(tagger.set_params(runtime="onnx-int8"), X)
    assert found == pytest.approx(expected, abs=0.01)


class TestSessions:
    def test_made_once(self, estimator, sessions, capfd, monkeypatch):
        """It is said at the first time, unless verbose is 0."""
        monkeypatch.setattr(_onnx, "_SESSIONS", WeakKeyDictionary())
        one, X, _ = estimator(verbose=0)
        copy.deepcopy(one).predict(X)
        assert capfd.readouterr() == ("", "")
        one.set_params(verbose=1).predict(X)
        out, err = capfd.readouterr()
        assert err.startswith("predict: exporting the network for runtime='onnx', once")
        assert out == ""
        n_sessions = len(sessions)
        with ThreadPoolExecutor(3) as pool:  # The first prediction of three threads.
            monkeypatch.setattr(_onnx, "_SESSIONS", WeakKeyDictionary())
            list(pool.map(one.predict, [X] * 3))
        assert len(sessions) == (n_sessions := n_sessions + 1)
        assert capfd.readouterr().err == err
        for runtime in ("onnx", "torch", "onnx"):
            one.set_params(runtime=runtime).predict(X)
        copy.copy(one).predict_proba(X)
        assert len(sessions) == n_sessions
        assert capfd.readouterr() == ("", "")

    @pytest.mark.slow
    def test_another_one_after_a_fit(self, estimator, sessions):
        one, X, y = estimator(max_epochs=1, validation_fraction=0.25)
        old = scores(one, X)
        n_sessions = len(sessions)
        one.set_params(random_state=1).fit(X, y)
        assert len(sessions) == n_sessions  # Validation is torch's.
        found = scores(one, X)
        assert len(sessions) == n_sessions + 1
        assert found == pytest.approx(scores(one.set_params(runtime="torch"), X), abs=1e-4)
        assert found != pytest.approx(old, abs=1e-4)


class TestExported:
    """A file of the network, which what predicts goes by in place of exporting again."""

    @pytest.fixture
    def exported(self, fitted_shallow, tmp_path, monkeypatch):  # noqa: F811
        """Return an estimator, the directory with its file, and X; no other export is let be."""
        one = pickle.loads(pickle.dumps(fitted_shallow("tagger", "bert")[0]))
        one.save_pretrained(tmp_path / "saved")
        one.export_onnx(tmp_path / "saved" / "model.onnx")
        monkeypatch.setattr(_onnx, "trace", None)
        return one, tmp_path / "saved", fitted_shallow("tagger", "bert")[1]

    def test_used_wherever_it_is_known(self, exported, tmp_path, capfd):
        one, saved, X = exported
        expected, loaded = scores(one, X), load_pretrained(saved)
        loaded.save_pretrained(tmp_path / "again")
        again = load_pretrained(tmp_path / "again")
        for other in (one, loaded, again, pickle.loads(pickle.dumps(one))):
            found = scores(other.set_params(runtime="onnx", verbose=1), X)
            assert found == pytest.approx(expected, abs=1e-4)
        int8 = scores(loaded.set_params(runtime="onnx-int8"), X)
        assert int8 == pytest.approx(expected, abs=0.05)
        assert capfd.readouterr().err == ""

    def test_not_used_if_it_is_another_one(self, exported):
        one, saved, X = exported
        loaded = load_pretrained(saved).set_params(runtime="onnx")
        (saved / "model.onnx").write_bytes(b"")
        with pytest.raises(TypeError, match="not callable"):  # It would export.
            loaded.predict(X)
        with pytest.raises(ValueError, match=r"model.onnx was changed after it was saved"):
            load_pretrained(saved)
        with pytest.raises(ValueError, match=r"must be 'model.onnx' .*; got 'tagger.onnx'"):
            one.export_onnx(saved / "tagger.onnx")
        one._fitted = replace(internals(one).fitted, history=one.history_ * 2)
        with pytest.raises(ValueError, match="of the fit that is saved there"):
            one.export_onnx(saved / "model.onnx")


class TestRefused:
    def test_unknown_or_not_installed(self, estimator, fitted_shallow, monkeypatch):  # noqa: F811
        one, X, y = estimator(runtime="tensorrt")
        message = "The 'runtime' parameter of DiceTokenTagger must be"
        for call in (lambda: one.predict(X), lambda: clone(one).fit(X, y)):
            with pytest.raises(ValueError, match=message):
                call()
        one = pickle.loads(pickle.dumps(fitted_shallow("tagger", "bert")[0]))
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
        message = r"runtime='onnx' needs onnxruntime, not installed here: pip .*skdice\[onnx\]"
        with pytest.raises(ImportError, match=message):
            one.set_params(runtime="onnx").predict([["a"]])

    @pytest.mark.slow
    def test_xlnet(self, shallow_models):
        tagger, X, y = make("tagger", shallow_models("xlnet"), runtime="onnx-int8")
        tagger.fit(X, y)
        message = "cannot export the architecture XLNet"
        with pytest.raises(ValueError, match=message):
            tagger.predict(X)
        assert len(tagger.set_params(runtime="torch").predict(X)) == len(X)

    def test_another_network(self, fitted_shallow, monkeypatch):  # noqa: F811
        """The file is that of other weights."""
        one = pickle.loads(pickle.dumps(fitted_shallow("tagger", "bert")[0]))
        compare_as_it_is = _onnx.compare

        def compare(session, module, *args):
            module = copy.deepcopy(module)  # The traced program shares its weights.
            module.transformer.classifier.bias[0] += 3e-4
            compare_as_it_is(session, module, *args)

        monkeypatch.setattr(_onnx, "compare", compare)
        with pytest.raises(RuntimeError, match=r"logits .* differ by 0\.0003"):
            one.set_params(runtime="onnx").predict([["a"]])
