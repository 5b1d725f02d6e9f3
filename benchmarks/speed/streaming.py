"""Memory of ``predict_iter`` and ``choose_rows``, and the time of the latter beside predictions.

Each stream or pool has a process of its own, which loads a saved tagger first. Memory is the peak
of the resident memory above that with the model loaded (VmHWM of /proc), with nothing kept of what
was predicted. The sentences of streams are those of NCBI-disease, over and over; rows of pools are
parts of them, three to nine words long, so that what is not prediction shows.
"""

import tempfile
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import pandas as pd

from skdice import DiceTokenTagger
from skdice.datasets import read_conll
from skdice.labeling import choose_rows

from ._memory import in_fresh_process, measured
from .prediction import fitted_tagger

TITLE = "predict_iter and choose_rows, memory above the loaded model"
N_WORDS = (10_000, 100_000, 1_000_000)
N_ROWS = (10_000, 100_000)
MOST_MB = 300


def run(
    rounds: int,
    data: Path | None,
    out: Path,
    *,
    n_words: tuple[int, ...] = N_WORDS,
    n_rows: tuple[int, ...] = N_ROWS,
) -> pd.DataFrame:
    """Measure each stream and pool once, write ``speed_streaming.csv`` and return the table.

    Parameters
    ----------
    rounds : int
        Not used: memory varies little.
    data : Path
        Directory of the corpora.
    out : Path
        Directory of the results.
    n_words : tuple of int
        Lengths of the streams.
    n_rows : tuple of int
        Sizes of the pools.
    """
    if data is None:
        raise ValueError("The streaming benchmark needs the directory of the corpora.")
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        model = Path(directory) / "tagger"
        fitted_tagger(data).save_pretrained(model)
        for n in n_words:
            tagged, seconds, extra = in_fresh_process(_stream, model, data, n)
            megabytes = extra / 1e6
            row = {"what": f"predict_iter, {tagged:,} words", "words/s": tagged / seconds}
            rows.append({**row, "MB": megabytes})
        for n in n_rows:
            words, predicted, seconds, extra = in_fresh_process(_rank, model, data, n)
            times = f"{seconds / predicted:.2f} of the time of predict_proba"
            row = {"what": f"choose_rows, {n:,} rows: {times}", "words/s": words / seconds}
            rows.append({**row, "MB": extra / 1e6})
    results = pd.DataFrame(rows)
    out.mkdir(parents=True, exist_ok=True)
    results.to_csv(out / "speed_streaming.csv", index=False)
    return pd.DataFrame(
        {
            "what": results["what"],
            "words/s": results["words/s"].map("{:,.0f}".format),
            "MB": results["MB"].map("{:,.0f}".format),
            "budget": f"<= {MOST_MB}",
            "met": (results["MB"] <= MOST_MB).map({True: "yes", False: "no"}),
        }
    )


def _stream(model: Path, data: Path, n_words: int) -> tuple[int, float, int]:
    sentences = read_conll(data / "ner/ncbi_disease/dev.tsv.xz")[0]
    tagger = DiceTokenTagger.from_pretrained(model)
    return measured(
        lambda: sum(len(tags) for tags in tagger.predict_iter(_first(sentences, n_words)))
    )


def _rank(model: Path, data: Path, n_rows: int) -> tuple[int, float, float, int]:
    """Return the words of a pool, the time to predict them, and time and memory of a choice."""
    words = [word for row in read_conll(data / "ner/ncbi_disease/dev.tsv.xz")[0] for word in row]
    sizes = np.random.default_rng(0).integers(3, 10, n_rows)
    stream = cycle(words)
    pool = [list(islice(stream, size)) for size in sizes.tolist()]
    tagger = DiceTokenTagger.from_pretrained(model)
    parts = [pool[first : first + 1024] for first in range(0, n_rows, 1024)]
    _, predicted, _ = measured(lambda: [len(tagger.predict_proba(part)) for part in parts])
    _, seconds, extra = measured(lambda: choose_rows(tagger, pool, random_state=0))
    return int(sizes.sum()), predicted, seconds, extra


def _first(sentences: list[list[str]], n_words: int) -> Iterator[list[str]]:
    """Repeat the sentences until they have so many words."""
    for words in cycle(sentences):
        if n_words <= 0:
            return
        yield words
        n_words -= len(words)
