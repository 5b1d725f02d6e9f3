from collections import Counter, defaultdict
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.svm import LinearSVC

from skdice.datasets import make_tagging
from skdice.metrics import entity_f1_score, get_entities

TYPES = {"PER", "LOC", "ORG"}


@pytest.mark.parametrize("ratio, ambiguity", [(2, 1.0), (5.0, 0.2), (200, 0.2)])
@pytest.mark.parametrize("nested", [False, True])
def test_ratio(ratio, ambiguity, nested):
    X, y = make_tagging(400, ratio=ratio, ambiguity=ambiguity, nested=nested, random_state=0)
    n_words = sum(map(len, X))
    rows = y if nested else list(map(get_entities, y))
    n_inside = sum(len({i for a, b, _ in spans for i in range(a, b)}) for spans in rows)
    assert abs(n_inside - n_words / (1 + ratio)) <= 4
    if ratio == 2:  # Seeds share a language, and no sentence.
        X, _ = make_tagging(4000, ratio=2, nested=nested, random_state=0)
        X_other, _ = make_tagging(500, ratio=20, nested=nested, random_state=1)
        known = {word.lower() for words in X for word in words}
        assert {word.lower() for words in X_other for word in words} <= known
        assert not {tuple(words) for words in X_other} & {tuple(words) for words in X}


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.floats(2, 300), st.floats(0, 1), st.integers(0, 2**40))
def test_form(n_sentences, ratio, ambiguity, random_state):
    X, y = make_tagging(n_sentences, ratio=ratio, ambiguity=ambiguity, random_state=random_state)
    assert type(X) is type(y) is list
    assert len(X) == len(y) == n_sentences
    for words, tags in zip(X, y, strict=True):
        assert type(words) is type(tags) is list
        assert 4 <= len(words) == len(tags) <= 50
        assert all(type(word) is str and word.split() == [word] for word in words)
        assert words[0][0].isupper()
        assert words[-1] == "."
        entities = get_entities(tags, mode="strict", scheme="IOB2")
        assert entities == get_entities(tags), "no tag is broken"
        assert all(1 <= end - start <= 4 for start, end, _ in entities)
        assert {name for _, _, name in entities} <= TYPES
        ends = {end for _, end, _ in entities}
        assert not any(start in ends for start, _, _ in entities), "entities touch"


@pytest.mark.parametrize("ambiguity", [0, 0.2, 1.0])
def test_ambiguity_is_the_share_of_ambiguous_names(ambiguity):
    X, y = make_tagging(4000, ratio=6, ambiguity=ambiguity, random_state=1)
    roles, counts = defaultdict(set), Counter(s[2] for tags in y for s in get_entities(tags))
    # All types occur about equally often.
    assert set(counts) == TYPES
    assert max(counts.values()) < 1.6 * min(counts.values())
    for words, tags in zip(X, y, strict=True):
        for word, tag in zip(words, tags, strict=True):
            roles[word.lower()].add(tag[2:])
    for name in TYPES:
        own = [kinds for kinds in roles.values() if name in kinds]
        assert sum(len(kinds) > 1 for kinds in own) / len(own) == pytest.approx(ambiguity, abs=0.13)
    assert all("" in kinds for kinds in roles.values() if len(kinds) > 1)


def predict_most_frequent_tag(X, y, X_test):
    counts = defaultdict(Counter)
    for words, tags in zip(X, y, strict=True):
        for word, tag in zip(words, tags, strict=True):
            counts[word][tag] += 1
    lookup = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
    return [[lookup.get(word, "O") for word in words] for words in X_test]


def predict_from_window(X, y, X_test, reach=4):
    def list_windows(sentences):
        for words in sentences:
            for i in range(len(words)):
                around = range(max(i - reach, 0), min(i + reach + 1, len(words)))
                yield [f"{j - i}:{words[j].lower()}" for j in around]

    vectorizer = CountVectorizer(analyzer=list, binary=True)
    features = vectorizer.fit_transform(list_windows(X))
    model = LinearSVC(random_state=0).fit(features, [tag for tags in y for tag in tags])
    predicted = iter(model.predict(vectorizer.transform(list_windows(X_test))).tolist())
    return [[next(predicted) for _ in words] for words in X_test]


@pytest.mark.parametrize("parameters", [{}, {"ratio": 50, "ambiguity": 0.4}])
def test_context_decides_and_words_alone_do_not(parameters):
    X, y = make_tagging(2000, random_state=0, **parameters)
    X_test, y_test = make_tagging(300, random_state=1, **parameters)
    assert entity_f1_score(y_test, predict_most_frequent_tag(X, y, X_test)) < 0.6
    assert entity_f1_score(y_test, predict_from_window(X, y, X_test)) > 0.7


def holds(outer, inner):
    return outer != inner and outer[0] <= inner[0] and inner[1] <= outer[1]


def test_nested_names():
    """The form of a name decides what is inside: heads of types are in no plain name."""
    X, y = make_tagging(2000, ratio=2, nested=True, random_state=0)
    inside, heads, plain = defaultdict(set), set(), set()
    for words, spans in zip(X, y, strict=True):
        assert spans == sorted(set(spans))
        assert all(0 <= start < end < len(words) and end - start <= 4 for start, end, _ in spans)
        for a, b in combinations(spans, 2):
            assert a[1] <= b[0] or b[1] <= a[0] or holds(a, b) or holds(b, a), "they cross"
            assert a[:2] != b[:2], "two labels for the same words"
            for outer, inner in ((a, b), (b, a)):
                if holds(outer, inner):
                    is_first = outer[0] == inner[0]
                    heads.add(words[outer[1] - 1 if is_first else outer[0]])
                    inside[outer[2], is_first].add(inner[2])
        for span in spans:
            if not any(holds(span, inner) for inner in spans):
                plain |= set(words[span[0] : span[1]])
    assert len(inside) == 2 * len(TYPES)
    assert all(len(kinds) == 1 for kinds in inside.values())
    assert not heads & plain
