"""Small made corpora that a tiny random model learns in seconds."""

import numpy as np

NAMES = {"PER": ["john", "mary", "anna", "peter"], "LOC": ["oslo", "paris", "rome", "berlin"]}
FILLERS = ["the", "saw", "in", "was", "said", "went", "to", "by"]


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


def equal_length_corpus(n: int) -> tuple[list, list]:
    """All sentences have four words: where numpy would build a matrix."""
    X = [["john", "saw", "the", "oslo"], ["the", "mary", "went", "to"]] * (n // 2)
    y = [["B-PER", "O", "O", "B-LOC"], ["O", "B-PER", "O", "O"]] * (n // 2)
    return X, y
