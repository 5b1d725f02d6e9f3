"""Thresholds of rare pairs and texts: what "auto" takes beside others, and beside the best one.

    python -m benchmarks.thresholds path/to/data [--rows 250 500 1000] [--draws 0 1 2]

Each cell is a fit of the defaults on rows of which a share is positive: others are left out until
it is. F1 of the positive class on up to 2,000 test rows with the same share. Finished cells
stand in ``benchmarks/results/thresholds.csv`` and are not run again.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import precision_recall_curve

from skdice import DicePairClassifier, DiceTextClassifier

from ._runs import finish
from .speed._tasks import MODEL
from .study.corpora import CORPORA, read_corpus

KEY = ("corpus", "share of positives", "rows", "draw")
# Of each corpus the shares of positive rows; -1 takes the rows as they are.
SHARES = {"Amazon-Google": (-1, 0.05), "QQP": (0.05, 0.1), "MRPC": (0.05, 0.1), "SMS": (-1, 0.05)}
N_TEST = 2000


def rows_with_share(y: np.ndarray, share: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw up to n rows, of which a share is positive."""
    order = rng.permutation(len(y))
    if share < 0:
        return order[:n]
    positive, negative = order[y[order] == 1], order[y[order] == 0]
    n = min(n, int(len(positive) / share), int(len(negative) / (1 - share)))
    n_positive = max(2, round(n * share))
    return np.concatenate([positive[:n_positive], negative[: n - n_positive]])


def cell(key: tuple[str, float, int, int], data: Path, device: str) -> dict[str, Any]:
    """Return a row with the F1 of a fit with several thresholds, in percent."""
    corpus, share, n, draw = key
    how, parts = CORPORA[corpus], read_corpus(corpus, data)
    labels = [np.array([label == how.positive for label in p.y]) for p in (parts.train, parts.test)]
    rows = rows_with_share(labels[0], share, n, np.random.default_rng(1000 + draw))
    tested = rows_with_share(labels[1], share, N_TEST, np.random.default_rng(5))
    kind = DicePairClassifier if how.task == "pairs" else DiceTextClassifier
    estimator = kind(MODEL, random_state=draw, device=device, verbose=0)
    estimator.fit(parts.train.take(rows).X, labels[0][rows].astype(int))
    p, y = estimator.predict_proba(parts.test.take(tested).X)[:, 1], labels[1][tested]
    precision, recall, _ = precision_recall_curve(y, p)
    best = (2 * precision * recall / np.maximum(precision + recall, 1e-12)).max()
    thresholds = {"auto": estimator.threshold_, ".5": 0.5}
    f1 = {name: _f1(y, p > threshold) for name, threshold in thresholds.items()}
    row = dict(zip(KEY, key)) | f1
    return row | {"best in hindsight": 100 * best, "threshold": estimator.threshold_}


def _f1(y: np.ndarray, predicted: np.ndarray) -> float:
    return 200 * float((y & predicted).sum()) / max(1, int(y.sum() + predicted.sum()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="directory of the corpora")
    parser.add_argument("--rows", type=int, nargs="+", default=[250, 500, 1000])
    parser.add_argument("--draws", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/thresholds.csv"))
    args = parser.parse_args()
    cells = [(corpus, share) for corpus, shares in SHARES.items() for share in shares]
    keys = [(*of, n, draw) for draw in args.draws for of in cells for n in args.rows]
    do = partial(cell, device=args.device)
    done = finish(keys, KEY, do, args.data, args.out, jobs=1)
    names = ["auto", ".5", "best in hindsight"]
    print(done.groupby([*KEY[:2]])[names].mean().round(1).to_markdown())


if __name__ == "__main__":
    main()
