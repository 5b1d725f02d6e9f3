import re
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from skdice.datasets import make_pairs

NAME = r"[A-Z]\w+ [A-Z]\w+"
VERBS = {
    "sold": r"(?P<a>NAME) sold (?P<n>.+) to (?P<b>NAME)",
    "bought": r"(?P<b>NAME) bought (?P<n>.+) from (?P<a>NAME)",
    "were sold": r"(?P<n>.+) were sold to (?P<b>NAME) by (?P<a>NAME)",
    "thanked": r"(?P<a>NAME) thanked (?P<b>NAME)",
    "said thank you": r"(?P<a>NAME) said thank you to (?P<b>NAME)",
    "was thanked": r"(?P<b>NAME) was thanked by (?P<a>NAME)",
}
MEANINGS = {"bought": "sold", "were sold": "sold"}
MEANINGS |= {"said thank you": "thanked", "was thanked": "thanked"}


def get_words(sentence):
    return re.findall(r"[\w-]+", sentence.lower())


def read_relation(sentence):
    """Return (meaning, a, b) of a sentence, None if it has none of the verbs above."""
    for verb, pattern in VERBS.items():
        if match := re.search(pattern.replace("NAME", NAME), sentence):
            return MEANINGS.get(verb, verb), match["a"], match["b"]
    return None


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 120), st.floats(0.01, 0.99), st.integers(0, 2**40))
def test_form(n_samples, positive_share, random_state):
    X, y = make_pairs(n_samples, positive_share=positive_share, random_state=random_state)
    assert type(X) is list
    assert len({frozenset(pair) for pair in X}) == len(X), "no pair occurs twice"
    assert y.dtype == np.int64
    assert y.shape == (len(X),) == (n_samples,)
    assert y.sum() == np.clip(round(positive_share * n_samples), 1, n_samples - 1)
    for pair in X:
        assert type(pair) is tuple
        assert [type(sentence) for sentence in pair] == [str, str]
        assert pair[0] != pair[1]


@pytest.fixture(scope="module")
def sample():
    return make_pairs(8_000, positive_share=0.4, random_state=0)


def test_word_overlap_does_not_decide(sample):
    X, y = sample
    words = [[set(get_words(sentence)) for sentence in pair] for pair in X]
    overlap = [len(first & second) / len(first | second) for first, second in words]
    assert roc_auc_score(y, overlap) < 0.85


@pytest.mark.parametrize("side", [0, 1])
def test_sentences_alone_tell_nothing(sample, side):
    """Whatever a single word could tell lies within what chance makes of its frequency."""
    X, y = sample
    counts = defaultdict(lambda: [0, 0])
    for pair, label in zip(X, y):
        for word in set(get_words(pair[side])):
            counts[word][label] += 1
    for n_negative, n_positive in counts.values():
        n = n_negative + n_positive
        assert abs(n_positive - 0.4 * n) < 4.5 * np.sqrt(0.4 * 0.6 * n) + 1


def test_relations_and_roles_decide(sample):
    X, y = sample
    kinds = Counter()
    for pair, label in zip(X, y):
        first, second = map(read_relation, pair)
        if first is not None and second is not None:
            assert label == 0 or first == second
            kinds[label, first == second, sorted(first) == sorted(second)] += 1
    # Paraphrases; swapped names; another name; other things, so that the rest is the same.
    assert kinds[1, True, True] > 200
    assert kinds[0, False, True] > 150
    assert kinds[0, False, False] > 50
    assert kinds[0, True, True] > 20
    assert len(kinds) == 4
