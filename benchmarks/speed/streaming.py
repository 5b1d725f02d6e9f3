"""Memory of ``predict_iter`` over streams of different lengths.

Each stream runs in a process of its own, which loads a saved tagger first. Memory is the peak of
the resident memory during the stream above that with the model loaded (VmHWM of /proc), with
nothing kept of what was predicted. The sentences are those of NCBI-disease, over and over.
"""

import tempfile
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pandas as pd

from skdice import DiceTokenTagger
from skdice.datasets import read_conll

from ._memory import in_fresh_process, measured
from .prediction import fitted_tagger

TITLE = "predict_iter, memory above the loaded model"
N_WORDS = (10_000, 100_000, 1_000_000)
MOST_MB = 300


def run(
    rounds: int, data: Path | None, out: Path, *, n_words: tuple[int, ...] = N_WORDS
) -> pd.DataFrame:
    """Measure each stream once, write ``speed_streaming.csv`` and return the table.

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
            rows.append({"words": tagged, "words/s": tagged / seconds, "MB": megabytes})
    results = pd.DataFrame(rows)
    out.mkdir(parents=True, exist_ok=True)
    results.to_csv(out / "speed_streaming.csv", index=False)
    return pd.DataFrame(
        {
            "words": results["words"].map("{:,}".format),
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


def _first(sentences: list[list[str]], n_words: int) -> Iterator[list[str]]:
    """Repeat the sentences until they have so many words."""
    for words in cycle(sentences):
        if n_words <= 0:
            return
        yield words
        n_words -= len(words)
