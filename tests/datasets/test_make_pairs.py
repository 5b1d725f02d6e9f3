import random
import re
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from skdice.datasets import make_pairs

NAME = r"(?:[A-Z]\w+ [A-Z]\w+|[A-Z]\w+|[Tt]he \w+ \w+)"
VERBS = {
    "sold": r"(?P<a>NAME) sold (?P<n>.+) to (?P<b>NAME)",
    "bought": r"(?P<b>NAME) bought (?P<n>.+) from (?P<a>NAME)",
    "were sold": r"(?P<n>.+) were sold to (?P<b>NAME) by (?P<a>NAME)",
    "thanked": r"(?P<a>NAME) thanked (?P<b>NAME)",
    "said thank you": r"(?P<a>NAME) said thank you to (?P<b>NAME)",
    "was thanked": r"(?P<b>NAME) was thanked by (?P<a>NAME)",
    "older": r"(?P<a>NAME) is (?P<n>.+) years older than (?P<b>NAME)",
    "younger": r"(?P<b>NAME) is (?P<n>.+) years younger than (?P<a>NAME)",
}
MEANINGS = {"bought": "sold", "were sold": "sold", "said thank you": "thanked"}
MEANINGS |= {"was thanked": "thanked", "younger": "older"}
NUMBERS = {"twelve": "12", "ninety-nine": "99", "twenty": "20", "two": "2", "fifty-five": "55"}


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
    assert type(y) is np.ndarray
    assert y.dtype == np.int64
    assert y.shape == (len(X),) == (n_samples,)
    assert Counter(y.tolist()) == {1: n_positive, 0: n_samples - n_positive}
    for pair in X:
        assert type(pair) is tuple
        assert [type(sentence) for sentence in pair] == [str, str]
        assert pair[0] != pair[1]


def test_defaults():
    X, y = make_pairs()
    assert len(X) == 100
    assert y.sum() == 20


@pytest.mark.parametrize("n_samples, share, n", [(10, 0.25, 2), (10, 0.35, 4), (3, 0.5, 2)])
def test_positives_are_rounded(n_samples, share, n):
    assert make_pairs(n_samples, positive_share=share)[1].sum() == round(share * n_samples) == n


def test_sentences_are_spaced_and_punctuated():
    X, _ = make_pairs(4000, random_state=0)
    sentence = re.compile(r"[A-Z][\w-]*(,? [\w-]+)+\.")
    for text in (text for pair in X for text in pair):
        assert sentence.fullmatch(text)
        assert not re.search(r"\b(A|B|N|THINGS)\b|\b(\w+) \2\b", text)
        assert text.count(",") <= 1
        assert not text[0].isdigit()


def test_no_pair_occurs_twice():
    X, _ = make_pairs(30_000, random_state=3)
    assert len({frozenset(pair) for pair in X}) == len(X)


def test_classes_are_shuffled():
    _, y = make_pairs(1000, positive_share=0.5, random_state=0)
    assert 400 < (y[1:] != y[:-1]).sum() < 600


@pytest.fixture(scope="module")
def sample():
    return make_pairs(12_000, positive_share=0.4, random_state=0)


def test_word_overlap_does_not_decide(sample):
    X, y = sample
    overlap = np.array([get_overlap(pair) for pair in X])
    assert roc_auc_score(y, overlap) < 0.75
    assert max(balanced_accuracy_score(y, overlap >= t) for t in np.unique(overlap)) < 0.7


def test_second_sentences_alone_tell_nothing(sample):
    X, y = sample
    for side in (0, 1):
        # Whatever a single word could tell lies within what chance makes of its frequency.
        counts = defaultdict(lambda: [0, 0])
        for pair, label in zip(X, y):
            for word in set(get_words(pair[side])):
                counts[word][label] += 1
        for n_negative, n_positive in counts.values():
            n = n_negative + n_positive
            assert abs(n_positive - 0.4 * n) < 4.5 * np.sqrt(0.24 * n) + 1


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
    assert kinds[0, True, True] > 50
    assert set(kinds) == {(1, True, True), (0, False, True), (0, False, False), (0, True, True)}


def test_numbers_are_written_in_both_ways(sample):
    X, y = sample
    found = set()
    for (first, second), label in zip(X, y):
        for spelled, digits in NUMBERS.items():
            if label and re.search(rf"\b{digits}\b", first):
                number = re.search(rf"(?<![\w-])({spelled}|{digits})(?![\w-])", second, re.I)
                assert number
                found.add(number[0].lower())
    assert {"twelve", "12", "ninety-nine", "99"} <= found


def test_most_negatives_are_hard(sample):
    X, y = sample
    shared = np.array([get_overlap(pair) > 0.25 for pair in X])
    assert shared[y == 1].mean() > 0.98
    assert 0.72 < shared[y == 0].mean() < 0.88


@pytest.mark.parametrize(
    "make_state",
    [
        lambda: 7,
        lambda: np.int64(7),
        lambda: np.random.RandomState(7),
        lambda: np.random.default_rng(7),
    ],
)
def test_random_state(make_state):
    state = make_state()
    X, y = make_pairs(50, random_state=state)
    X_same, y_same = make_pairs(50, random_state=make_state())
    assert X_same == X
    np.testing.assert_array_equal(y_same, y)
    is_int = isinstance(state, int | np.integer)
    assert (make_pairs(50, random_state=state)[0] == X) is is_int


def test_global_random_states_are_untouched():
    before, before_numpy = random.getstate(), np.random.get_state()[1].copy()
    assert make_pairs(20)[0] != make_pairs(20)[0]
    make_pairs(20, random_state=0)
    assert random.getstate() == before
    np.testing.assert_array_equal(np.random.get_state()[1], before_numpy)


@pytest.mark.parametrize(
    "name, values, allowed",
    [
        ("n_samples", [1, 0, -1, 10.0, True, None, "9"], r"an int in the range \[2, inf\)"),
        (
            "positive_share",
            [0, 1, -0.1, 1.5, float("nan"), None, "0.5", True],
            r"a float in the range \(0, 1\)",
        ),
        ("hard_share", [-0.1, 1.1, None, "0.5", True], r"a float in the range \[0, 1\]"),
        ("random_state", [-1, 1.5, "0", True, random.Random(0)], "an int >= 0, a numpy RandomSt"),
    ],
)
def test_errors(name, values, allowed):
    for value in values:
        message = f"'{name}' parameter of make_pairs must be {allowed}.* Got .* instead"
        with pytest.raises(ValueError, match=message):
            make_pairs(**{name: value})


def test_hard_pairs_share_their_words():
    overlaps = []
    for hard_share in (0, 0.5, 1):
        X, y = make_pairs(1000, positive_share=0.1, hard_share=hard_share, random_state=0)
        words = [[set(text.lower().split()) for text in pair] for pair in X]
        shares = [len(first & second) / len(first | second) for first, second in words]
        overlaps.append(np.mean([share for share, label in zip(shares, y) if not label]))
    assert overlaps[0] < 0.2
    assert overlaps[0] + 0.1 < overlaps[1] < overlaps[2] - 0.1


def test_a_missing_class_is_an_error():
    with pytest.raises(ValueError, match=r"positive_share=0.001 of n_samples=100 makes 0 positive"):
        make_pairs(100, positive_share=0.001)
    with pytest.raises(ValueError, match=r"makes 5 positive and 0 negative pairs\. Take a larger"):
        make_pairs(5, positive_share=0.95)
