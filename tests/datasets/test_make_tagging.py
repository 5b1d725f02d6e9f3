"""make_tagging: its ratio, its types and names, and entities inside of others."""

from collections import Counter, defaultdict
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.svm import LinearSVC

from skdice.datasets import make_tagging
from skdice.metrics import entity_f1_score, get_entities

TYPES = ["PER", "LOC", "ORG", "EVENT", "WORK", "PRODUCT", "DISEASE", "DRUG", "FOOD", "ANIMAL"]
TYPES += ["VESSEL"]


def get_ratio(y):
    n_outside = sum(tags.count("O") for tags in y)
    return n_outside / (sum(map(len, y)) - n_outside)


def get_roles(X, y):
    """Return {lower-case word: the entity types it has, "" outside of entities}."""
    roles = defaultdict(set)
    for words, tags in zip(X, y, strict=True):
        for word, tag in zip(words, tags, strict=True):
            roles[word.lower()].add(tag[2:])
    return roles


@pytest.mark.parametrize("ratio", [0.5, 1, 5.0, 30, 200])
@pytest.mark.parametrize("n_types, ambiguity", [(1, 0.2), (3, 1.0), (11, 0.2)])
def test_ratio(ratio, n_types, ambiguity):
    _, y = make_tagging(
        400, ratio=ratio, n_types=n_types, ambiguity=ambiguity, random_state=round(ratio)
    )
    assert get_ratio(y) == pytest.approx(ratio, rel=0.05)
    n_words = sum(map(len, y))
    n_inside = n_words - sum(tags.count("O") for tags in y)
    assert abs(n_inside - n_words / (1 + ratio)) <= 4


@settings(max_examples=60, deadline=None)
@given(
    n_sentences=st.integers(1, 60),
    ratio=st.floats(0.5, 300),
    n_types=st.integers(1, 11),
    ambiguity=st.floats(0, 1),
    random_state=st.integers(0, 2**40),
)
def test_form(n_sentences, ratio, n_types, ambiguity, random_state):
    X, y = make_tagging(
        n_sentences, ratio=ratio, n_types=n_types, ambiguity=ambiguity, random_state=random_state
    )
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
        assert {name for _, _, name in entities} <= set(TYPES[:n_types])
        ends = {end for _, end, _ in entities}
        assert not any(start in ends for start, _, _ in entities), "entities touch"


@pytest.mark.parametrize("n_types", [1, 2, 3, 11])
def test_all_types_occur_about_equally_often(n_types):
    _, y = make_tagging(1000, ratio=4, n_types=n_types, random_state=0)
    counts = Counter(name for tags in y for _, _, name in get_entities(tags))
    assert set(counts) == set(TYPES[:n_types])
    assert max(counts.values()) < 1.6 * min(counts.values())


@pytest.mark.parametrize(
    "n_types, ambiguity", [(1, 0), (1, 0.2), (3, 0.2), (3, 1.0), (11, 0), (11, 0.2)]
)
def test_ambiguity_is_the_share_of_ambiguous_words(n_types, ambiguity):
    X, y = make_tagging(4000, ratio=6, n_types=n_types, ambiguity=ambiguity, random_state=1)
    roles = get_roles(X, y)
    for name in TYPES[:n_types]:
        own = [kinds for kinds in roles.values() if name in kinds]
        share = sum(len(kinds) > 1 for kinds in own) / len(own)
        assert share == pytest.approx(ambiguity, abs=0.04)
    ambiguous = [kinds for kinds in roles.values() if len(kinds) > 1]
    if ambiguity == 0:
        assert not ambiguous
    elif n_types > 1:
        assert any("" in kinds for kinds in ambiguous)
        assert any("" not in kinds for kinds in ambiguous)


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


@pytest.mark.parametrize(
    "parameters, low, high",
    [
        ({}, 0.6, 0.93),
        ({"ambiguity": 1.0}, 0.3, 0.95),
        ({"n_types": 1}, 0.6, 0.97),
        ({"ratio": 50, "ambiguity": 0.4}, 0.6, 0.75),
    ],
)
def test_context_decides_and_words_alone_do_not(parameters, low, high):
    X, y = make_tagging(2000, random_state=0, **parameters)
    X_test, y_test = make_tagging(300, random_state=1, **parameters)
    assert entity_f1_score(y_test, predict_most_frequent_tag(X, y, X_test)) < low
    assert entity_f1_score(y_test, predict_from_window(X, y, X_test)) > high


@pytest.mark.parametrize("nested", [False, True])
def test_seeds_share_a_language(nested):
    X, _ = make_tagging(4000, ratio=2, nested=nested, random_state=0)
    X_other, _ = make_tagging(500, ratio=20, nested=nested, random_state=1)
    known = {word.lower() for words in X for word in words}
    assert {word.lower() for words in X_other for word in words} <= known
    assert not {tuple(words) for words in X_other} & {tuple(words) for words in X}


def holds(outer, inner):
    return outer != inner and outer[0] <= inner[0] and inner[1] <= outer[1]


def words_inside(spans):
    return {word for start, end, _ in spans for word in range(start, end)}


def size_of_best_disjoint(spans, end=0):
    """Return how many entities without overlap there can be at most: take what ends first."""
    n = 0
    for start, stop, _ in sorted(spans, key=lambda span: span[1]):
        if start >= end:
            n, end = n + 1, stop
    return n


def best_flat_f1(y):
    n_flat, n = sum(map(size_of_best_disjoint, y)), sum(map(len, y))
    return 2 * n_flat / (n_flat + n)


def list_nests(X, y):
    """Yield (words, outer, inner) for every entity right inside another one."""
    for words, spans in zip(X, y, strict=True):
        for inner in spans:
            around = [outer for outer in spans if holds(outer, inner)]
            if around:
                yield words, min(around, key=lambda span: span[1] - span[0]), inner


@pytest.mark.parametrize("ratio", [0.5, 1, 2.5, 10, 100])
@pytest.mark.parametrize("n_types", [1, 3, 11])
def test_form_and_ratio_of_words_outside_of_all_entities(ratio, n_types):
    X, y = make_tagging(1000, ratio=ratio, n_types=n_types, nested=True, random_state=0)
    n_inside = sum(len(words_inside(spans)) for spans in y)
    assert (sum(map(len, X)) - n_inside) / n_inside == pytest.approx(ratio, rel=0.05)
    for words, spans in zip(X, y, strict=True):
        assert 4 <= len(words) <= 50
        assert spans == sorted(set(spans))
        assert all(0 <= start < end < len(words) and end - start <= 4 for start, end, _ in spans)
        assert {label for *_, label in spans} <= set(TYPES[:n_types])
        for a, b in combinations(spans, 2):
            assert a[1] <= b[0] or b[1] <= a[0] or holds(a, b) or holds(b, a), "they cross"
            assert a[:2] != b[:2], "two labels for the same words"


@pytest.mark.parametrize(
    "parameters, low, high",
    [
        ({}, 0.75, 0.81),
        ({"ratio": 1}, 0.63, 0.69),
        ({"ambiguity": 1.0}, 0.85, 0.95),
    ],
)
def test_the_best_flat_choice_falls_short(parameters, low, high):
    _, y = make_tagging(1500, nested=True, random_state=0, **parameters)
    assert low < best_flat_f1(y) < high


@pytest.mark.parametrize("n_types", [1, 2, 3, 7])
def test_the_form_of_a_name_decides_what_is_inside(n_types):
    """Also whether there is anything inside: first and last words of types are in no plain name."""
    X, y = make_tagging(4000, ratio=2, n_types=n_types, nested=True, random_state=0)
    inside = defaultdict(set)
    heads = set()
    for words, outer, inner in list_nests(X, y):
        if outer[0] == inner[0]:
            form = "before a head"
            heads.add(words[outer[1] - 1])
        else:
            form = "after a head" if words[inner[0] - 1] == "of" else "after its type"
            heads.add(words[outer[0]])
        inside[outer[2], form].add((inner[2], inner[0] == outer[0], inner[1] == outer[1]))
    assert len(inside) == 3 * n_types
    assert all(len(kinds) == 1 for kinds in inside.values())
    for words, spans in zip(X, y):
        for span in spans:
            if not any(holds(span, inner) for inner in spans):
                assert not heads & set(words[span[0] : span[1]])
