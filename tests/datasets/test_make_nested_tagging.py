"""make_tagging(nested=True): entities inside others, which no flat tagger can all give."""

from collections import defaultdict
from itertools import combinations

import pytest

from skdice.datasets import make_tagging

from .test_make_tagging import TYPES


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
@pytest.mark.parametrize("n_types", [1, 3, 20])
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
        ({"ratio": 30}, 0.75, 0.85),
        ({"n_types": 1}, 0.75, 0.81),
        ({"n_types": 12}, 0.75, 0.81),
        ({"ambiguity": 0.0}, 0.75, 0.81),
        ({"ambiguity": 1.0}, 0.85, 0.95),
    ],
)
def test_the_best_flat_choice_falls_short(parameters, low, high):
    for seed in range(3):
        _, y = make_tagging(1500, nested=True, random_state=seed, **parameters)
        assert low < best_flat_f1(y) < high


def test_levels():
    _, y = make_tagging(3000, nested=True, random_state=0)
    depths = {sum(holds(outer, span) for outer in spans) for spans in y for span in spans}
    assert depths == {0, 1, 2, 3}


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
