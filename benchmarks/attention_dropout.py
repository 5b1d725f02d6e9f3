"""Dropout of the weights of attention, of what attention gives, or none: windows of 256 pieces.

    python -m benchmarks.attention_dropout --data path/to/corpora --seeds 0 1 2

Where a CPU trains, weights are dropped without a fused kernel. Every fit is a row of a file, so a
run goes on where it stopped; `benchmarks.few_rows` has the same comparison on sentences.
"""

import argparse
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from skdice.metrics import squad_report

from ._runs import finish
from .extractors import TASKS, load, make_extractor
from .few_rows import weights_dropped

OUT = Path(__file__).parent / "results" / "attention_dropout.csv"
NAMES = ("task", "loss", "attention dropout", "seed")
N_TRAIN = 500
DROPOUTS: dict[str, float | None] = {"of weights": None, "of output": None, "none": 0.0}


def run(key: tuple[str, str, str, int], data: Path) -> dict[str, Any]:
    """Fit as a key says, and score the test questions."""
    torch.set_num_threads(1)
    task, loss, dropout, seed = key
    train, _, test = load(task, data, seed)
    extractor = make_extractor(loss, seed).set_params(
        attention_dropout=DROPOUTS[dropout],
        max_epochs=4,
    )
    cpu, start = time.process_time(), time.perf_counter()
    with weights_dropped() if dropout == "of weights" else nullcontext():
        extractor.fit(train.X[:N_TRAIN], train.y[:N_TRAIN])
    row = dict(zip(NAMES, key)) | {
        "CPU seconds": time.process_time() - cpu,
        "seconds": time.perf_counter() - start,
    }
    report = squad_report(test.y, extractor.predict(test.X), version=TASKS[task].version)
    return row | {
        "EM": 100 * report.loc["total", "exact_match"],
        "F1": 100 * report.loc["total", "f1"],
    }


def main() -> None:
    """Run what is asked for and print the means and the differences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--losses", nargs="+", default=["ce"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    args = parser.parse_args()
    keys = [
        ("SQuAD 1.1", loss, dropout, seed)
        for seed in args.seeds
        for loss in args.losses
        for dropout in DROPOUTS
    ]
    done = finish(keys, NAMES, run, args.data, OUT, args.jobs)
    scores = done.pivot_table(["F1", "EM", "CPU seconds"], ["loss", "seed"], "attention dropout")
    print(pd.concat([scores, scores.groupby("loss").mean()]).round(1).to_markdown())


if __name__ == "__main__":
    main()
