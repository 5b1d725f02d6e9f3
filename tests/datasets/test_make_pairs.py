import re
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from skdice.datasets import make_pairs

NAME = r"([A-Z]\w+ [A-Z]\w+)"


def get_words(sentence):
    return re.findall(r"[\w-]+", sentence.lower())


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


def read_thanks(sentence):
    """Return who thanks whom, None if nobody does."""
    if match := re.search(rf"{NAME} (?:thanked|said thank you to) {NAME}", sentence):
        return match[1], match[2]
    match = re.search(rf"{NAME} was thanked by {NAME}", sentence)
    return match and (match[2], match[1])


def test_roles_decide(sample):
    found = set()
    for pair, label in zip(*sample):
        first, second = map(read_thanks, pair)
        if first and second:
            assert label == 0 or first == second
            found.add((label, sorted(first) == sorted(second)))
    assert found == {(1, True), (0, True), (0, False)}, "names are swapped, and are others"
