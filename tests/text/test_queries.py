from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from transformers import AutoTokenizer

from skdice.text import Entity, TextReader, WordTokenizer, best_disjoint, encode_queries, find_spans

from .test_encoding import central_window

QUERIES = ["which city was visited ?", "john mary", "company"]
LONG_WORD = "a" * 40  # a piece per letter
WORDS = ["the", "john", "oslo", "ab", "babababa", "", "\u200b", LONG_WORD]

sentences_of_words = st.lists(st.lists(st.sampled_from(WORDS), max_size=20), max_size=4)


def windows_of(encoded, sentence, query):
    return np.flatnonzero((encoded.dataset.text == sentence) & (encoded.query == query))


def items_of(encoded, window):
    offsets = encoded.dataset.items.offsets
    return slice(offsets[window], offsets[window + 1])


def spans_of(encoded):
    found = {}
    for w in range(len(encoded.dataset)):
        words = encoded.word[items_of(encoded, w)].tolist()
        for start, end in encoded.dataset.matches[w].tolist():
            key = int(encoded.dataset.text[w]), int(encoded.query[w])
            found.setdefault(key, {}).setdefault((words[start], words[end] + 1), []).append(w)
    return found


def marks_of(encoded, column):
    """Return the (sentence, query, word) that are marked as starts (0) or ends (1)."""
    data = encoded.dataset
    window = np.repeat(np.arange(len(data)), data.items.lengths)
    marked = np.flatnonzero(data.target[:, column])
    return {
        (int(data.text[window[i]]), int(encoded.query[window[i]]), int(encoded.word[i]))
        for i in marked
    }


@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_rows_that_fit_are_those_of_transformers(tiny_models, family):
    model = tiny_models(family)
    tokenizer, theirs = WordTokenizer(model), AutoTokenizer.from_pretrained(model)
    sentences = [["john", "saw", "oslo"], [], ["the"]]
    data = encode_queries(sentences, QUERIES, TextReader(tokenizer, 64)).dataset
    rows = [(query, words) for words in sentences if words for query in QUERIES]
    assert len(data) == len(rows)
    for i, (query, words) in enumerate(rows):
        texts = (" ".join(words), query) if tokenizer.pads_left else (query, " ".join(words))
        expected = theirs(*([text] for text in texts), return_token_type_ids=True)
        assert data.input_ids[i].tolist() == expected["input_ids"][0]
        assert data.token_type_ids[i].tolist() == expected["token_type_ids"][0]
        first_pieces = data.input_ids[i][data.items[i]].tolist()
        assert first_pieces == [tokenizer.encode([word])[0][0] for word in words]


def test_each_sentence_with_each_query_is_a_text(bert):
    sentences = [["john"], [], ["mary"] * 40, ["oslo"]]
    encoded = encode_queries(
        sentences, QUERIES, TextReader(bert, 32), spans=[[(0, 1, 2)], [], [], []]
    )
    weight = np.array([1, 2, 3, 4], dtype=np.float32)
    data = replace(encoded.dataset, weight=weight)
    rows = replace(encoded, dataset=data).by_query()
    assert rows.n_texts == 3 * len(QUERIES)
    assert rows.weight.tolist() == np.repeat([1, 3, 4], len(QUERIES)).tolist()
    assert rows.item_offsets[-1] == data.item_offsets[-1]
    query = [set(encoded.query[rows.text == text].tolist()) for text in range(rows.n_texts)]
    assert query == [{i} for i in range(len(QUERIES))] * 3
    items = np.bincount(rows.text, rows.items.lengths).astype(int)
    assert np.diff(rows.item_offsets).tolist() == items.tolist()


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_targets(bert, xlnet, data):
    """Every span is in the windows that have its first and its last word, and no other."""
    tokenizer = data.draw(st.sampled_from([bert, xlnet]))
    sentences = data.draw(sentences_of_words)
    spans = []
    for sentence in sentences:
        place = st.integers(0, len(sentence))
        span = st.tuples(place, place, st.integers(0, 1)).filter(lambda s: s[0] < s[1])
        spans.append(data.draw(st.lists(span, unique=True, max_size=4)) if sentence else [])
    encoded = encode_queries(sentences, QUERIES[1:], TextReader(tokenizer, 20), spans=spans)
    expected, starts, ends = {}, set(), set()
    n_uncovered = 0
    for i, row in enumerate(spans):
        for start, end, query in row:
            starts.add((i, query, start))
            ends.add((i, query, end - 1))
            windows = [
                w
                for w in windows_of(encoded, i, query)
                if {start, end - 1} <= set(encoded.word[items_of(encoded, w)].tolist())
            ]
            if windows:
                expected.setdefault((i, query), {})[start, end] = windows
            n_uncovered += not windows
    assert spans_of(encoded) == expected
    assert encoded.n_uncovered == n_uncovered
    # Every word is in a window, so every start and every end is marked somewhere.
    assert marks_of(encoded, 0) == starts
    assert marks_of(encoded, 1) == ends


SIZE = 4
ASKED = ["a", "john mary"]
LABELS = ["LOC", "PER"]


def random_logits(encoded, seed, share=0.4):
    """Return logits that exceed 0 for a share of the words, and for about half of the pairs."""
    rng = np.random.default_rng(seed)
    shape = encoded.dataset.item_offsets[-1], 2 + 2 * SIZE
    logits = rng.standard_normal(shape).astype(np.float32)
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


@pytest.mark.parametrize("threshold", [-3.0, 0.0, 1.0])
@pytest.mark.parametrize("max_length, stride", [(64, None), (16, None), (16, 6), (14, 0)])
def test_found_spans_are_those_of_the_definition(bert, max_length, stride, threshold):
    sentences = [["john", "saw", "oslo"] * 9, [], ["mary"], ["ab", "babababa", "the"] * 4]
    encoded = encode_queries(sentences, ASKED, TextReader(bert, max_length), stride)
    for seed in range(3):
        logits = random_logits(encoded, seed)
        found = find_spans(encoded, logits, LABELS, threshold)
        expected = naive_spans(encoded, logits, threshold)
        assert sum(map(len, expected)) > 1
        for spans, naive in zip(found, expected, strict=True):
            assert [tuple(entity)[:3] for _, entity in spans] == sorted(naive)
            for logit, entity in spans:
                assert logit == pytest.approx(naive[tuple(entity)[:3]], abs=1e-4)
                assert entity.score == pytest.approx(expit(logit))


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


@settings(deadline=None, max_examples=150)
@given(spans_strategy())
def test_best_disjoint_spans_have_the_highest_total_of_all_subsets(spans):
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


def test_earlier_disjoint_spans_win_ties():
    spans = [(0.0, Entity(i, i + 2, "X", 0.5)) for i in range(4)]
    assert [e.start for _, e in best_disjoint(spans)] == [0, 2]
    spans = [(0.0, Entity(0, 1, label, 0.5)) for label in "BA"]
    assert [e.label for _, e in best_disjoint(spans)] == ["A"]
