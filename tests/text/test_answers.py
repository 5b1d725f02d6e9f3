"""The best spans, against a search through all of them."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skdice.text import (
    Candidates,
    SpanDecoder,
    TextReader,
    _answers,
    encode_questions,
    pick_answers,
)

from ..tiny_models import WORDS
from .conftest import FAMILIES

TEXTS = ["the", "oslo", "babababa", "don't", "日本", "😀", "\u200b", " ", "\n", "e\u0301", ","]

contexts = st.lists(st.sampled_from(TEXTS), max_size=25).map(" ".join)
rows_of_contexts = st.lists(contexts, min_size=1, max_size=4)


def encode(contexts, tokenizer, max_length=16, stride=None):
    return encode_questions(
        ["the"] * len(contexts), contexts, TextReader(tokenizer, max_length), stride
    )


def random_logits(encoded, seed, kind="float"):
    """Return logits, whole numbers of few values for ties."""
    rng = np.random.default_rng(seed)
    shape = (encoded.dataset.item_offsets[-1], 2)
    return rng.integers(-1, 2, shape) / 2 if kind == "ties" else 3 * rng.standard_normal(shape)


def slow_spans(encoded, logits, row, max_answer_length):
    """Return (logit, start, end) of every legal span, the windows and starts in order."""
    offsets = encoded.dataset.items.offsets
    windows = np.flatnonzero(encoded.dataset.text == row)

    def room(window, first, last):
        """Context on the poorer side of a span; the ends of the text are no lack of it."""
        start, stop = encoded.window_start[window], encoded.window_stop[window]
        if first < start or last >= stop:
            return -math.inf
        left = math.inf if window == windows[0] else first - start
        right = math.inf if window == windows[-1] else stop - 1 - last
        return min(left, right)

    spans = []
    for window in windows:
        for i in range(offsets[window] + 1, offsets[window + 1]):
            for j in range(i, offsets[window + 1]):
                first, last = encoded.piece[i], encoded.piece[j]
                owner = max(windows, key=lambda w: (room(w, first, last), -w))
                if (
                    owner == window
                    and last - first < max_answer_length
                    and encoded.can_start[i]
                    and encoded.can_end[j]
                    and encoded.start[i] < encoded.end[j]
                ):
                    span = int(encoded.start[i]), int(encoded.end[j])
                    spans.append((logits[i, 0] + logits[j, 1], *span))
    return spans


def slow_candidates(encoded, logits, row, max_answer_length):
    """Return all spans of a row, the best first and of equal ones the first."""
    windows = np.flatnonzero(encoded.dataset.text == row)
    no_answer = min(logits[encoded.dataset.items.offsets[window]].sum() for window in windows)
    spans = slow_spans(encoded, logits, row, max_answer_length)
    total = sum(math.exp(logit) for logit, _, _ in spans) + math.exp(no_answer)
    spans.sort(key=lambda span: -span[0])
    best = spans[0][0] if spans else -math.inf
    shares = [(start, end, math.exp(logit) / total) for logit, start, end in spans]
    return Candidates(shares, no_answer - best)


def assert_best(found, every, n_best):
    """Compare to all candidates, best first; of equal ones only the very first is certain."""
    got = [score for _, _, score in found.spans]
    expected = [score for _, _, score in every.spans[:n_best]]
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    places = [span[:2] for span in found.spans]
    assert places[:1] == [span[:2] for span in every.spans[:1]]
    assert len(set(places)) == len(places)
    score_of = {(start, end): score for start, end, score in every.spans}
    assert len(score_of) == len(every.spans), "a span has one window"
    np.testing.assert_allclose(got, [score_of[place] for place in places], rtol=1e-9)
    assert found.no_answer == pytest.approx(every.no_answer, rel=1e-9, abs=1e-9)


@given(
    rows_of_contexts,
    st.sampled_from(FAMILIES),
    st.integers(9, 30),
    st.none() | st.integers(0, 2),
    st.integers(1, 9),
    st.sampled_from([1, 2, 5, 1000]),
    st.sampled_from(["float", "ties"]),
    st.integers(0, 99),
)
@example([" ".join(WORDS[:20])], "bert", 9, 3, 4, 1000, "float", 0)
@example([" ".join(WORDS[:20])], "bert", 9, 3, 1, 3, "ties", 0)
@settings(deadline=None, max_examples=150)
def test_candidates_are_the_best_of_all_spans(
    tokenizers, contexts, family, max_length, stride, max_answer_length, n_best, kind, seed
):
    encoded = encode(contexts, tokenizers[family], max_length, stride)
    logits = random_logits(encoded, seed, kind)
    decoder = SpanDecoder(max_answer_length, n_best)
    found = decoder.decode(encoded, logits)
    assert len(found) == len(contexts)
    for row, candidates in enumerate(found):
        assert_best(candidates, slow_candidates(encoded, logits, row, max_answer_length), n_best)


@pytest.mark.parametrize("cells", [1, 7, 60, 300, 10**9])
@pytest.mark.parametrize("kind", ["float", "ties"])
def test_the_size_of_the_chunks_does_not_matter(tokenizers, monkeypatch, cells, kind):
    contexts = [" ".join(WORDS[i : i + n]) for i, n in enumerate([20, 1, 0, 30, 3, 3, 50])]
    encoded = encode(contexts, tokenizers["bert"])
    logits = random_logits(encoded, 0, kind)
    decoder = SpanDecoder(6, 7)
    expected = decoder.decode(encoded, logits)
    monkeypatch.setattr(_answers, "_CELLS_AT_A_TIME", cells)
    assert decoder.decode(encoded, logits) == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [100.0, 1e4, 1e30])
def test_large_logits_are_finite(tokenizers, dtype, scale):
    encoded = encode(["the oslo john", "", " ".join(WORDS[:30])], tokenizers["bert"])
    logits = (scale * random_logits(encoded, 0)).astype(dtype)
    for candidates in SpanDecoder(5, 5).decode(encoded, logits):
        assert all(0 <= score <= 1 for _, _, score in candidates.spans)
        assert sum(score for _, _, score in candidates.spans) <= 1 + 1e-6
        assert not math.isnan(candidates.no_answer)


CANDIDATES = [
    Candidates([(4, 8, 0.6), (0, 3, 0.1)], -1.0),
    Candidates([(0, 4, 0.3)], 2.0),
    Candidates([], math.inf),
]
PICKED_CONTEXTS = ["the oslo", "john", "\u200b"]


@pytest.mark.parametrize(
    "threshold, expected",
    [
        (math.inf, ["oslo", "john", ""]),
        (2.0, ["oslo", "john", ""]),
        (1.999, ["oslo", "", ""]),
        (-1.0, ["oslo", "", ""]),
        (-1.001, ["", "", ""]),
    ],
)
def test_pick_answers(threshold, expected):
    assert pick_answers(CANDIDATES, PICKED_CONTEXTS, threshold) == expected
