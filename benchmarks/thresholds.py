"""Thresholds of rare pairs and texts: what "auto" takes beside others, and beside the best one.

    python -m benchmarks.thresholds path/to/data [--rows 250 500 1000] [--draws 0 1 2]

Each cell is a fit of the defaults on rows of which a share is positive: others are left out until
it is. F1 of the positive class on up to 2,000 test rows with the same share. Finished cells
stand in ``benchmarks/results/thresholds.csv`` and are not run again.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import precision_recall_curve

from skdice import DicePairClassifier, DiceTextClassifier

from .speed._tasks import MODEL
from .study.corpora import CORPORA, read_corpus

# Of each corpus the shares of positive rows; None takes the rows as they are.
SHARES = {
    "Amazon-Google": (None, 0.05),
    "QQP": (0.05, 0.1),
    "MRPC": (0.05, 0.1),
    "SMS": (None, 0.05),
}
N_TEST = 2000


def rows_with_share(
    y: np.ndarray, share: float | None, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw up to n rows, of which a share is positive."""
    order = rng.permutation(len(y))
    if share is None:
        return order[:n]
    positive, negative = order[y[order] == 1], order[y[order] == 0]
    n = min(n, int(len(positive) / share), int(len(negative) / (1 - share)))
    n_positive = max(2, round(n * share))
    return np.concatenate([positive[:n_positive], negative[: n - n_positive]])


def cell(
    corpus: str, share: float | None, n: int, draw: int, data: Path, device: str
) -> dict[str, Any]:
    """Return the F1 of a fit with several thresholds, in percent."""
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
    return f1 | {"best in hindsight": 100 * best, "threshold": estimator.threshold_}


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
    args.out.parent.mkdir(parents=True, exist_ok=True)
    keys = ["corpus", "share of positives", "rows", "draw"]
    done = pd.read_csv(args.out) if args.out.exists() else pd.DataFrame(columns=keys)
    finished = set(done[keys].fillna("as it is").astype(str).itertuples(index=False, name=None))
    for draw in args.draws:
        for corpus, shares in SHARES.items():
            for share in shares:
                for n in args.rows:
                    key = (corpus, "as it is" if share is None else str(share), str(n), str(draw))
                    if key in finished:
                        continue
                    found = cell(corpus, share, n, draw, args.data, args.device)
                    row = pd.DataFrame([dict(zip(keys, key)) | found])
                    done = pd.concat([done, row], ignore_index=True)
                    done.to_csv(args.out, index=False)
    names = ["auto", ".5", "best in hindsight"]
    print(done.groupby(keys[:2])[names].mean().round(1).to_markdown())


if __name__ == "__main__":
    main()
