"""The benchmark of one device runs through by itself, and writes down what fails."""

import json

import pytest

from benchmarks.speed import device
from benchmarks.speed._tasks import Setup

from ..tiny_models import BUILDERS, build_bert


def errors(found):
    return [part for part in found.values() if isinstance(part, dict) and "error" in part]


def test_runs_through(tmp_path, monkeypatch):
    model = build_bert(tmp_path / "encoder", max_position_embeddings=512, num_hidden_layers=1)
    for name in ("_N_WARMUP", "_N_WATCHED", "_MOST_ROUNDS"):
        monkeypatch.setattr(device, name, 1)
    monkeypatch.setattr(device, "PIPELINE_SIZES", (2,))
    path = tmp_path / "found.json"
    found = device.run(Setup(str(model), 2, "cpu"), path, n_steps=2, n_predicted=8)
    assert json.loads(path.read_text()) == found
    assert errors(found) == []
    assert found["equality"]["met"]
    for name in device.TEXTS:
        contenders = found[name]["contenders"]
        assert errors(contenders) == []
        assert contenders["skdice"]["utilisation"] > 0
        assert contenders["bare loop"]["skdice by this"] > 0
    assert errors(found["prediction"]["contenders"]) == []


@pytest.mark.parametrize("family", ["roberta", "distilbert", "modernbert"])
def test_predicts_with_other_families(family, tmp_path, monkeypatch):
    """Without token types, and with a tokenizer that takes words after a space alone."""
    model = str(BUILDERS[family](tmp_path / family))
    texts = [["Paris", "is", "big"]] * 4, [["B-LOC", "O", "O"]] * 4
    monkeypatch.setattr(device, "_texts", lambda *sizes: texts)
    found = device._prediction(Setup(model, 2, "cpu"), 4, lambda: 0.0)
    assert errors(found["contenders"]) == []


def test_errors_are_findings(tmp_path):
    results = device.Results(tmp_path / "found.json", minutes=1)
    results.keep("wrong", lambda: 1 / 0)
    results.keep("right", lambda: 2)
    found = json.loads(results.path.read_text())
    assert found["wrong"] == {"error": "ZeroDivisionError: division by zero"}
    assert found["right"] == 2
