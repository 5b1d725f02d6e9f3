"""The losses on part-of-speech tags, Chinese characters and sparse entities: one run each.

    python -m benchmarks.tagger_corpora --data ../shared/data

The encoder is English and uncased. Subsets keep a run under a minute; see the table's sizes.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import torch
from sklearn.metrics import precision_recall_fscore_support

from skdice import DiceTokenTagger
from skdice.datasets import read_conll, read_conllu, split_into_characters
from skdice.metrics import entity_precision_recall_fscore_support

from .taggers_by_size import LOSSES, make_tagger

Tagged = tuple[list[list[str]], list[list[str]]]


class Corpus(NamedTuple):
    read: Callable[[Path], Tagged]
    train: str
    test: str
    n_train: int
    n_test: int
    epochs: int


def read_weibo(path: Path) -> Tagged:
    """Characters come with a position digit."""
    X, y = read_conll(path)
    return [[token[:-1] for token in row] for row in X], y


def read_chinese(path: Path) -> Tagged:
    return split_into_characters(*read_conllu(path))


CORPORA = {
    "Ritter tweets, POS": Corpus(
        read_conll, "pos/ritter_tweets/train.txt.xz", "pos/ritter_tweets/test.txt.xz", 551, 118, 5
    ),
    "EWT, UPOS": Corpus(
        read_conllu,
        "pos/ud_english_ewt/train.conllu.xz",
        "pos/ud_english_ewt/test.conllu.xz",
        600,
        500,
        4,
    ),
    "UD Chinese 1.4, BIO-UPOS": Corpus(
        read_chinese,
        "pos/ud_chinese_1.4/train.conllu.xz",
        "pos/ud_chinese_1.4/test.conllu.xz",
        300,
        150,
        4,
    ),
    "Weibo, NER": Corpus(
        read_weibo, "ner/weibo_zh/train.conll.xz", "ner/weibo_zh/test.conll.xz", 500, 270, 3
    ),
}


def score(tagger: DiceTokenTagger, y_true: list, y_pred: list) -> dict[str, float]:
    """Micro and macro precision, recall and F1, of entities or of tags."""
    scores = {}
    for average in ("micro", "macro"):
        if tagger.scheme_ is None:
            flat = ([tag for row in rows for tag in row] for rows in (y_true, y_pred))
            p, r, f, _ = precision_recall_fscore_support(*flat, average=average, zero_division=0)
        else:
            p, r, f, _ = entity_precision_recall_fscore_support(y_true, y_pred, average=average)
        scores |= {f"P {average}": p, f"R {average}": r, f"F1 {average}": f}
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=None, help="torch threads")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    rows = []
    for name, corpus in CORPORA.items():
        X, y = corpus.read(arguments.data / corpus.train)
        X_test, y_test = corpus.read(arguments.data / corpus.test)
        X, y = X[: corpus.n_train], y[: corpus.n_train]
        X_test, y_test = X_test[: corpus.n_test], y_test[: corpus.n_test]
        for loss in LOSSES:
            tagger = make_tagger(loss, corpus.epochs, seed=0)
            start = time.perf_counter()
            tagger.fit(X, y)
            seconds = time.perf_counter() - start
            scores = score(tagger, y_test, list(tagger.predict(X_test)))
            row = {"corpus": name, "sentences": len(X), "loss": loss}
            row |= {key: f"{100 * value:.1f}" for key, value in scores.items()}
            rows.append(row | {"seconds": f"{seconds:.0f}"})
            print(rows[-1], flush=True)
        unknown = tagger.tokenizer_.tokenizer.unk_token_id
        pieces = tagger.tokenizer_.encode([word for row in X_test for word in row])
        share = (pieces.values[pieces.offsets[:-1]] == unknown).mean()
        print(f"{name}: {100 * share:.1f} % of the test words start with the unknown piece")
    print(pd.DataFrame(rows).to_markdown(index=False, disable_numparse=True))


if __name__ == "__main__":
    main()
