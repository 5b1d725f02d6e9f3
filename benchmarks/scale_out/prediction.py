"""``predict_parquet``: words per second of one and two workers, memory, and what is not arithmetic.

The sentences are the development part of NCBI-disease, over and over, in parts of a Parquet corpus;
the training part, once, where repetition would compress. Workers are processes of a local dask
cluster with one thread each.
"""

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from skdice import DiceTokenTagger
from skdice.datasets import read_conll
from skdice.distributed import predict_parquet

from ..speed._memory import in_fresh_process, measured
from ..speed.prediction import fitted_tagger

SENTENCES_OF_PART = 250
N_PARTS = 4
SIZES_OF_PART = (10_000, 50_000, 250_000)  # words
N_TINY = 64


def run(rounds: int, data: Path, out: Path) -> list[tuple[str, pd.DataFrame]]:
    """Measure, write ``scale_out_prediction_*.csv`` and return the tables."""
    out.mkdir(parents=True, exist_ok=True)
    sentences = read_conll(data / "ner/ncbi_disease/dev.tsv.xz")[0]
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        model = home / "tagger"
        fitted_tagger(data).save_pretrained(model)
        tables = {
            "workers": ("Workers", _workers(rounds, sentences, model, home)),
            "parts": ("What is not arithmetic", _parts(data, model, home)),
            "memory": ("Memory above the loaded model", _memory(sentences, model, home)),
        }
    for name, (_, table) in tables.items():
        table.to_csv(out / f"scale_out_prediction_{name}.csv", index=False)
    return list(tables.values())


def write_parts(
    directory: Path, sentences: list[list[str]], n_parts: int, n_sentences: int
) -> tuple[Path, int]:
    """Write a corpus of equal parts; return where it is and its number of words."""
    directory.mkdir()
    rows = list(islice(cycle(sentences), n_sentences))
    for number in range(n_parts):
        frame = pd.DataFrame({"id": range(n_sentences), "words": rows})
        frame.to_parquet(directory / f"part-{number:03d}.parquet")
    return directory, n_parts * sum(map(len, rows))


def _workers(rounds: int, sentences: list[list[str]], model: Path, home: Path) -> pd.DataFrame:
    corpus, n_words = write_parts(home / "corpus", sentences, N_PARTS, SENTENCES_OF_PART)
    rows = []
    for number in range(rounds):
        for n_workers in (0, 1, 2):
            with _client(n_workers) as client:
                if client is not None:  # Each worker loads the estimator once.
                    _predict(model, corpus, home / f"warm-{number}-{n_workers}", client)
                seconds = _predict(model, corpus, home / f"out-{number}-{n_workers}", client)
            row = {"round": number, "dask workers": n_workers, "words/s": n_words / seconds}
            rows.append(row)
            print(json.dumps(row), flush=True)
    found = pd.DataFrame(rows).pivot(index="round", columns="dask workers", values="words/s")
    ratios = found.div(found[0], axis=0)
    return pd.DataFrame(
        {
            "dask workers": found.columns,
            "words/s": found.median().round(0).to_numpy(),
            "x no cluster": ratios.median().round(2).to_numpy(),
        }
    )


def _parts(data: Path, model: Path, home: Path) -> pd.DataFrame:
    """Time a cluster's work on parts of one short row, tokenisation, reading and writing."""
    torch.set_num_threads(1)
    tiny, _ = write_parts(home / "tiny", [["word"]], N_TINY, 1)
    with _client(2) as client:
        _predict(model, tiny, home / "tiny-warm", client)
        of_part = 2 * _predict(model, tiny, home / "tiny-out", client) / N_TINY
    tagger = DiceTokenTagger.from_pretrained(model)
    texts = read_conll(data / "ner/ncbi_disease/train.tsv.xz")[0]
    n_words = sum(map(len, texts))
    start = time.perf_counter()
    for first in range(0, len(texts), 512):
        tagger._encode(texts[first : first + 512])
    tokenising = n_words / (time.perf_counter() - start)
    corpus, _ = write_parts(home / "one", texts, 1, len(texts))
    start = time.perf_counter()
    frame = pd.read_parquet(corpus)
    frame.to_parquet(home / "copy.parquet")
    copying = n_words / (time.perf_counter() - start)
    n_bytes = (home / "copy.parquet").stat().st_size
    model_bytes = sum(file.stat().st_size for file in model.iterdir())
    return pd.DataFrame(
        [
            {"what": "seconds of a worker for a part of one word", "value": of_part},
            {"what": "words/s to pieces, one thread", "value": tokenising},
            {"what": "words/s read and written by pandas, one thread", "value": copying},
            {"what": "bytes of a word in Parquet", "value": n_bytes / n_words},
            {"what": "MB of the saved tagger, once for each worker", "value": model_bytes / 1e6},
        ]
    )


def _memory(sentences: list[list[str]], model: Path, home: Path) -> pd.DataFrame:
    rows = []
    for n_words in SIZES_OF_PART:
        n_sentences = round(n_words * len(sentences) / sum(map(len, sentences)))
        corpus, n_words = write_parts(home / f"m{n_words}", sentences, 1, n_sentences)
        seconds, extra = in_fresh_process(_measure, model, corpus, home / f"mo{n_words}")
        rows.append({"words in one part": n_words, "words/s": n_words / seconds, "MB": extra / 1e6})
        print(json.dumps(rows[-1]), flush=True)
    return pd.DataFrame(rows)


def _measure(model: Path, corpus: Path, destination: Path) -> tuple[float, int]:
    tagger = DiceTokenTagger.from_pretrained(model)
    _, seconds, extra = measured(lambda: _predict(tagger, corpus, destination, None))
    return seconds, extra


def _predict(tagger: Any, corpus: Path, destination: Path, client: Any) -> float:
    torch.set_num_threads(1)
    start = time.perf_counter()
    predict_parquet(
        tagger, corpus, destination, columns="words", keep="id", client=client, verbose=0
    )
    return time.perf_counter() - start


@contextmanager
def _client(n_workers: int) -> Iterator[Any]:
    """Yield the client of a local cluster, None for no workers."""
    if not n_workers:
        yield None
        return
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client
