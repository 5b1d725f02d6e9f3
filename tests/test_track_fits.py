"""The example of trackers, run against the real ones."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "examples" / "track_fits.py"


def run(tracker, model, out):
    command = [sys.executable, SCRIPT, tracker, "--model", model, "--out", out]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_tensorboard(tiny_bert, tmp_path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run("tensorboard", tiny_bert, tmp_path)
    events = reader.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert set(events.Tags()["scalars"]) >= {"Loss/train_loss", "Loss/valid_score", "lr"}
    assert [event.step for event in events.Scalars("Loss/train_loss")] == [1, 2]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the database that it uses
def test_mlflow(tiny_bert, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("sqlalchemy")
    score = float(run("mlflow", tiny_bert, tmp_path).split()[-1])
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    runs = client.search_runs([client.get_experiment_by_name("losses").experiment_id])
    assert {run.data.params["loss"] for run in runs} == {"ce", "dice"}
    for one in runs:
        history = client.get_metric_history(one.info.run_id, "train_loss")
        assert [metric.step for metric in history] == [1, 2]
    assert 0 <= score <= 1


def test_wandb(tiny_bert, tmp_path):
    pytest.importorskip("wandb")
    assert "Weights & Biases: offline-run-" in run("wandb", tiny_bert, tmp_path)
    (folder,) = (tmp_path / "wandb").glob("offline-run-*")
    assert any(path.suffix == ".wandb" for path in folder.iterdir())
