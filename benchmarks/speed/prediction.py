"""Prediction throughput: skdice against a bare loop and transformers' pipeline.

Words per second on the development sentences of NCBI-disease, from words to tags, tokenisation
included. The network is the same one:

- skdice: ``predict`` of a tagger with default settings, with ``precision="bf16"``, and with each
  ``runtime``, whose network is made before the first round;
- bare loop: tokenisation, batches of similar length under inference mode, the best tag of each
  word; the batch size and the precision are those of skdice;
- pipeline: of transformers, on the words joined by spaces, for several batch sizes.

Before the first round the tags of the bare loop are compared with those of skdice.
"""

import copy
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from transformers import AutoTokenizer
from transformers.utils import logging

from skdice import DiceTokenTagger
from skdice.datasets import read_conll
from skdice.nn._runtime import denormals_flushed

from ._alternate import Contender, alternate, table_of_rates
from ._tasks import BATCH_SIZE, MODEL
from .contenders import bare, pipeline

TITLE = "Prediction, words per second"
BATCH_SIZES = (1, 8, 32)
ONNX, INT8 = "skdice, runtime='onnx'", "skdice, runtime='onnx-int8'"
Sentences = list[list[str]]
Predict = Callable[[Sentences], Any]

# Different padding and summation order turn a near tie now and then.
_LEAST_AGREEMENT = 0.999


def run(
    rounds: int, data: Path | None, out: Path, *, n_sentences: int | None = None
) -> pd.DataFrame:
    """Measure, write ``speed_prediction.csv`` and return the table.

    Parameters
    ----------
    rounds : int
    data : Path
        Directory of the corpora.
    out : Path
        Directory of the results.
    n_sentences : int, optional
        All by default.
    """
    if data is None:
        raise ValueError("The prediction benchmark needs the directory of the corpora.")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    tagger = fitted_tagger(data)
    sentences = read_conll(data / "ner/ncbi_disease/dev.tsv.xz")[0][:n_sentences]
    measured = alternate(_contenders(tagger, sentences), rounds)
    out.mkdir(parents=True, exist_ok=True)
    measured.to_csv(out / "speed_prediction.csv", index=False)
    medians = measured.groupby("contender")["words/s"].median()
    best = max((name for name in medians.index if "pipeline" in name), key=medians.__getitem__)
    tables = [
        _table(measured, "skdice", {"bare loop": 0.9}),
        _table(measured, ONNX, {"skdice": 1.3, best: 2.5}).query("budget != ''"),
        _table(measured, INT8, {best: 4}).query("budget != ''"),
    ]
    return pd.concat(tables).replace({"contender": {best: f"{best} (its best)"}})


def _table(measured: pd.DataFrame, reference: str, budgets: dict[str, float]) -> pd.DataFrame:
    table = table_of_rates(measured, "words/s", reference, budgets)
    table.insert(0, "what", reference)
    return table.rename(columns={f"{reference} / contender": "what / contender"})


def fitted_tagger(data: Path) -> DiceTokenTagger:
    """Return a tagger that has seen a few sentences, so that most of its tags are "O"."""
    X, y = read_conll(data / "ner/ncbi_disease/train.tsv.xz")
    tagger = DiceTokenTagger(
        MODEL, loss="ce", lr=5e-4, max_epochs=1, batch_size=BATCH_SIZE, random_state=0, verbose=0
    )
    return tagger.fit(X[:128], y[:128])


def _contenders(tagger: DiceTokenTagger, sentences: Sentences) -> dict[str, Contender]:
    model = tagger.net_.module_.transformer
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    precision = tagger.net_.predict_precision

    def limit(sentences: Sentences) -> Sentences:
        with denormals_flushed():
            return bare.predict_tags(
                model,
                tokenizer,
                tagger.classes_,
                sentences,
                batch_size=BATCH_SIZE,
                precision=precision,
            )

    _check_same_tags(tagger, sentences, limit(sentences))
    in_half = copy.deepcopy(tagger).set_params(precision="bf16")
    in_half.net_.predict_precision = "bf16"
    contenders: dict[str, Predict] = {
        "skdice": tagger.predict,
        "skdice, precision='bf16'": in_half.predict,
        ONNX: _warm(copy.copy(tagger).set_params(runtime="onnx"), sentences),
        INT8: _warm(copy.copy(tagger).set_params(runtime="onnx-int8"), sentences),
        "bare loop": limit,
    }
    for size in BATCH_SIZES:
        contenders[f"pipeline, batches of {size}"] = pipeline.tagging_pipeline(
            model, tokenizer, size
        )
    return {name: partial(timed, predict, sentences) for name, predict in contenders.items()}


def _warm(tagger: DiceTokenTagger, sentences: Sentences) -> Predict:
    tagger.predict(sentences[:1])
    return tagger.predict


def timed(predict: Predict, sentences: Sentences) -> dict[str, Any]:
    start = time.perf_counter()
    predicted = predict(sentences)
    seconds = time.perf_counter() - start
    if len(predicted) != len(sentences):
        raise RuntimeError(f"{len(sentences)} sentences gave {len(predicted)} predictions.")
    n_words = sum(map(len, sentences))
    return {
        "words/s": n_words / seconds,
        "seconds": seconds,
        "words": n_words,
        "threads": torch.get_num_threads(),
    }


def _check_same_tags(tagger: DiceTokenTagger, sentences: Sentences, tags: Sentences) -> None:
    """Raise if the best tags are not those of skdice, word for word."""
    ours = copy.copy(tagger).set_params(decode="argmax").predict(sentences)
    pairs = [pair for row, other in zip(ours, tags, strict=True) for pair in zip(row, other)]
    agreement = np.mean([tag == other for tag, other in pairs])
    if len(pairs) != sum(map(len, sentences)) or agreement < _LEAST_AGREEMENT:
        raise RuntimeError(
            f"The bare loop does not do the same work as skdice: {agreement:.2%} of the tags of "
            f"{len(pairs)} words agree."
        )
