"""From logits of starts, ends and matches to entities."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from skdice.text import Entity, TextReader, best_disjoint, encode_queries, find_spans
from skdice.text._encoding import central_window

SIZE = 4
QUERIES = ["a", "john mary"]
LABELS = ["LOC", "PER"]


def random_logits(encoded, seed, share=0.4):
    """Return logits that exceed 0 for a share of the words, and for about half of the pairs."""
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((encoded.dataset.item_offsets[-1], 2 + 2 * SIZE)).astype(
        np.float32
    )
    logits[:, :2] -= np.quantile(logits[:, :2], 1 - share) if len(logits) else 0
    return 2 * logits


def naive_spans(encoded, logits, threshold):
    """All pairs of words of all windows; of the windows that share one, the most central one."""
    found = [{} for _ in range(encoded.dataset.n_texts)]
    data = encoded.dataset
    for w in range(len(data)):
        text, query = int(data.text[w]), int(encoded.query[w])
        row = np.flatnonzero((data.text == text) & (encoded.query == query))
        start, stop = encoded.window_start[row], encoded.window_stop[row]
        low, high = data.items.offsets[w], data.items.offsets[w + 1]
        for i in range(low, high):
            for j in range(i, high):
                match = float(logits[i, 2 : 2 + SIZE] @ logits[j, 2 + SIZE :]) / SIZE**0.5
                lowest = min(float(logits[i, 0]), float(logits[j, 1]), match)
                middle = (encoded.place[i] + encoded.place[j]) / 2
                most_central = row[central_window(np.array([middle]), row * 0, start, stop)[0]]
                if lowest > threshold and most_central == w:
                    span = int(encoded.word[i]), int(encoded.word[j]) + 1, LABELS[query]
                    assert span not in found[text]
                    found[text][span] = lowest
    return found


def assert_same_spans(found, expected):
    assert len(found) == len(expected)
    for spans, naive in zip(found, expected):
        assert [tuple(entity)[:3] for _, entity in spans] == sorted(naive)
        for logit, entity in spans:
            assert logit == pytest.approx(naive[tuple(entity)[:3]], abs=1e-4)
            assert entity.score == pytest.approx(expit(logit))


class TestFindSpans:
    @pytest.mark.parametrize("threshold", [-3.0, 0.0, 1.0])
    @pytest.mark.parametrize("max_length, stride", [(64, None), (16, None), (16, 6), (14, 0)])
    def test_are_those_of_the_definition(self, bert, max_length, stride, threshold):
        sentences = [["john", "saw", "oslo"] * 9, [], ["mary"], ["ab", "babababa", "the"] * 4]
        encoded = encode_queries(sentences, QUERIES, TextReader(bert, max_length), stride)
        for seed in range(3):
            logits = random_logits(encoded, seed)
            found = find_spans(encoded, logits, LABELS, threshold)
            expected = naive_spans(encoded, logits, threshold)
            assert sum(map(len, expected)) > 1
            assert_same_spans(found, expected)


def spans_strategy(n_words=8):
    place = st.integers(0, n_words)
    span = st.tuples(place, place, st.sampled_from("AB")).filter(lambda s: s[0] < s[1])
    score = st.sampled_from([0.1, 0.5, 0.5, 0.6, 0.9, 1.0]) | st.floats(0.02, 1)
    return st.dictionaries(span, score, max_size=9).map(
        lambda scores: [(0.0, Entity(*span, score)) for span, score in scores.items()]
    )


def are_disjoint(spans):
    ordered = sorted(spans, key=lambda span: span[1].start)
    return all(a.end <= b.start for (_, a), (_, b) in pairwise(ordered))


class TestBestDisjoint:
    @settings(deadline=None, max_examples=150)
    @given(spans_strategy())
    def test_has_the_highest_total_of_all_subsets(self, spans):
        chosen = best_disjoint(spans)
        assert are_disjoint(chosen)
        assert [e.start for _, e in chosen] == sorted(e.start for _, e in chosen)
        assert all(span in spans for span in chosen)
        best = max(
            sum(entity.score for _, entity in subset)
            for n in range(len(spans) + 1)
            for subset in combinations(spans, n)
            if are_disjoint(subset)
        )
        assert sum(entity.score for _, entity in chosen) == pytest.approx(best)

    def test_earlier_spans_win_ties(self):
        spans = [(0.0, Entity(i, i + 2, "X", 0.5)) for i in range(4)]
        assert [e.start for _, e in best_disjoint(spans)] == [0, 2]
        spans = [(0.0, Entity(0, 1, label, 0.5)) for label in "BA"]
        assert [e.label for _, e in best_disjoint(spans)] == ["A"]
