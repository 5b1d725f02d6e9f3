"""Small made corpora that a tiny random model learns in seconds, and where published ones lie."""

from pathlib import Path

import numpy as np
import pytest

from skdice.losses import LOSS_NAMES

from .quick import quick

# Without the preset that collapses.
LEARNING = quick(["ce", "dsc"], [name for name in LOSS_NAMES if name != "dsc-paper"])
NAMES = {"PER": ["john", "mary", "anna", "peter"], "LOC": ["oslo", "paris", "rome", "berlin"]}
FILLERS = ["the", "saw", "in", "was", "said", "went", "to", "by"]


def published(name: str) -> Path:
    """Return the file of a published corpus; skip the test if it is absent."""
    path = Path(__file__).resolve().parents[1].parent / "shared" / "data" / f"{name}.xz"
    if not path.exists():
        pytest.skip(f"needs the corpus {name}.xz in ../shared/data")
    return path


def easy_corpus(n: int, seed: int = 0, scheme: str = "IOB2") -> tuple[list, list]:
    """Sentences of 3 to 7 words in which the word alone decides the tag."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for i in range(n):
        words, tags = [], []
        for j in range(int(rng.integers(3, 8))):
            if j == i % 3:
                label = ["PER", "LOC"][i % 2]
                words.append(str(rng.choice(NAMES[label])))
                tags.append({"IOB2": "B-", "IOBES": "S-", "IOB1": "I-"}[scheme] + label)
            else:
                words.append(str(rng.choice(FILLERS)))
                tags.append("O")
        X.append(words)
        y.append(tags)
    return X, y


def easy_texts(n: int, seed: int = 0, n_classes: int = 2) -> tuple[list, list]:
    """Texts in which one word decides the class: a person, a place, or neither; mixed."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for i in range(n):
        label = i % n_classes
        words = [str(word) for word in rng.choice(FILLERS, int(rng.integers(2, 6)))]
        if label < 2:
            words[int(rng.integers(len(words)))] = str(rng.choice(NAMES[["PER", "LOC"][label]]))
        X.append(" ".join(words))
        y.append(["person", "place", "neither"][label])
    return X, y


def easy_pairs(n: int, seed: int = 0) -> tuple[list, list]:
    """Pairs that are 1 if both texts name a place; one in four is."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for i in range(n):
        named = [i % 4 in (0, 1), i % 4 in (0, 2)]
        texts = []
        for has_place in named:
            words = [str(word) for word in rng.choice(FILLERS, 3)]
            if has_place:
                words[int(rng.integers(3))] = str(rng.choice(NAMES["LOC"]))
            texts.append(" ".join(words))
        X.append(tuple(texts))
        y.append(int(all(named)))
    return X, y


def easy_labels(n: int, seed: int = 0) -> tuple[list, np.ndarray]:
    """Texts with a 0/1 matrix: whether one person, and whether one place is named."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for i in range(n):
        row = [int(i % 3 == 0), int(i % 4 == 0)]
        words = [str(word) for word in rng.choice(FILLERS, 3)]
        for kind, label in zip(("PER", "LOC"), row):
            if label:
                words.append(NAMES[kind][0])
        rng.shuffle(words)
        X.append(" ".join(words))
        Y.append(row)
    return X, np.array(Y)
