import re
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from skdice.datasets import make_pairs

NAME = r"(?:[A-Z]\w+ [A-Z]\w+|[A-Z]\w+|[Tt]he \w+ \w+)"
VERBS = {
    "sold": r"(?P<a>NAME) sold (?P<n>.+) to (?P<b>NAME)",
    "bought": r"(?P<b>NAME) bought (?P<n>.+) from (?P<a>NAME)",
    "were sold": r"(?P<n>.+) were sold to (?P<b>NAME) by (?P<a>NAME)",
    "thanked": r"(?P<a>NAME) thanked (?P<b>NAME)",
    "said thank you": r"(?P<a>NAME) said thank you to (?P<b>NAME)",
    "was thanked": r"(?P<b>NAME) was thanked by (?P<a>NAME)",
    "sued": r"(?P<a>NAME) sued (?P<b>NAME)",
    "was sued": r"(?P<b>NAME) was sued by (?P<a>NAME)",
    "took to court": r"(?P<a>NAME) took (?P<b>NAME) to court",
}
MEANINGS = {"bought": "sold", "were sold": "sold", "said thank you": "thanked"}
MEANINGS |= {"was thanked": "thanked", "was sued": "sued", "took to court": "sued"}


def get_words(sentence):
    return re.findall(r"[\w-]+", sentence.lower())


def get_overlap(pair):
    first, second = (set(get_words(sentence)) for sentence in pair)
    return len(first & second) / len(first | second)


def read_relation(sentence):
    """Return (meaning, a, b) of a sentence, None if it has none of the verbs above."""
    for verb, pattern in VERBS.items():
        if match := re.search(pattern.replace("NAME", NAME), sentence):
            a, b = (match[group].lower() for group in "ab")
            return MEANINGS.get(verb, verb), a, b
    return None


@settings(max_examples=60, deadline=None)
@given(
    n_samples=st.integers(2, 120),
    positive_share=st.floats(0.01, 0.99),
    random_state=st.integers(0, 2**40),
)
def test_form(n_samples, positive_share, random_state):
    n_positive = round(positive_share * n_samples)
    if not 0 < n_positive < n_samples:
        with pytest.raises(ValueError, match="at least one pair of each class"):
            make_pairs(n_samples, positive_share=positive_share, random_state=random_state)
        return
    X, y = make_pairs(n_samples, positive_share=positive_share, random_state=random_state)
    assert type(X) is list
    assert len({frozenset(pair) for pair in X}) == len(X), "no pair occurs twice"
    assert y.dtype == np.int64
    assert y.shape == (len(X),) == (n_samples,)
    assert Counter(y.tolist()) == {1: n_positive, 0: n_samples - n_positive}
    for pair in X:
        assert type(pair) is tuple
        assert [type(sentence) for sentence in pair] == [str, str]
        assert pair[0] != pair[1]


@pytest.fixture(scope="module")
def sample():
    return make_pairs(12_000, positive_share=0.4, random_state=0)


def test_word_overlap_does_not_decide(sample):
    X, y = sample
    overlap = np.array([get_overlap(pair) for pair in X])
    assert roc_auc_score(y, overlap) < 0.85


def check_words_tell_nothing(sentences, is_positive, share):
    """Whatever a single word could tell lies within what chance makes of its frequency."""
    counts = defaultdict(lambda: [0, 0])
    for words, label in zip(map(set, sentences), is_positive):
        for word in words:
            counts[word][label] += 1
    for n_negative, n_positive in counts.values():
        n = n_negative + n_positive
        assert abs(n_positive - share * n) < 4.5 * np.sqrt(share * (1 - share) * n) + 1


@pytest.mark.parametrize("side", [0, 1])
def test_sentences_alone_tell_nothing(sample, side):
    X, y = sample
    check_words_tell_nothing([get_words(pair[side]) for pair in X], y, 0.4)


def test_relations_and_roles_decide(sample):
    X, y = sample
    kinds = Counter()
    for pair, label in zip(X, y):
        first, second = map(read_relation, pair)
        if first is None or second is None:
            continue
        if label == 1:
            assert first == second
        same_words = sorted(first) == sorted(second)
        kinds[label, first == second, same_words] += 1
    # Paraphrases; swapped names; another name or verb; the same relation somewhere else.
    assert kinds[1, True, True] > 300
    assert kinds[0, False, True] > 200
    assert kinds[0, False, False] > 50
    assert kinds[0, True, True] > 20
    assert set(kinds) == {(1, True, True), (0, False, True), (0, False, False), (0, True, True)}
