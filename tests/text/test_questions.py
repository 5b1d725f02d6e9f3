import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from skdice.text import Candidates, SpanDecoder, TextReader, WordTokenizer, encode_questions

from ..tiny_models import WORDS
from .conftest import FAMILIES

IGNORED = -100
QUESTIONS = ["where lives john", "Who visited the old market, near paris?", "a"]
CONTEXTS = [
    "john lives in oslo", "The old market, near paris.", "",
    "mary-anna said: 'went'!  was \t\n at work ", " a\u00a0b ",
]  # fmt: skip
STRANGE = [
    "\u200b", "  ", "😀", "👩‍👩‍👧 at 😀😀", "cafe\u0301 e\u0301e\u0323\u0301", "日本の都市 東京",
    "a\ud800b \udfff", "½ ﬁ ① ㎏", "\u3000oslo\u2028paris\x00", "x" * 300, "İstanbul ẞ ŉ",
    "[SEP] <s> [CLS]",
]  # fmt: skip

any_text = st.text(st.characters(exclude_categories=()), max_size=12)
strange_text = st.lists(st.sampled_from(STRANGE + WORDS[:5]) | any_text, max_size=6).map("".join)


def encode_one(context, tokenizer, max_length=512, stride=None, *, question="a", answer=None):
    return encode_questions(
        [question], [context], TextReader(tokenizer, max_length), stride, answers=[answer]
    )


def windows_of(encoded):
    offsets = encoded.dataset.items.offsets
    return [slice(*bounds) for bounds in pairwise(offsets)]


def spaced(words):
    """Return the words as one text, and where each lies in it."""
    starts = np.cumsum([0] + [len(word) + 1 for word in words[:-1]]).tolist()
    return " ".join(words), [(start, start + len(word)) for start, word in zip(starts, words)]


def find_answer(encoded, window, context):
    """Return the text from the start to the end in a window, or None if it has no answer there."""
    here = windows_of(encoded)[window]
    start, end = (np.flatnonzero(encoded.dataset.target[here, column] == 1) for column in (0, 1))
    assert len(start) == len(end) == 1
    assert (start[0] == 0) == (end[0] == 0)
    if start[0] == 0:
        return None
    return context[encoded.start[here][start[0]] : encoded.end[here][end[0]]]


def test_rows_that_fit_are_those_of_transformers(model, tokenizer):
    theirs = AutoTokenizer.from_pretrained(model)
    rows = [(question, context) for question in QUESTIONS for context in CONTEXTS]
    questions, contexts = zip(*rows)
    dataset = encode_questions(questions, contexts, TextReader(tokenizer, 512)).dataset
    assert dataset.text.tolist() == list(range(len(rows)))
    for i, (question, context) in enumerate(rows):
        texts = (context, question) if tokenizer.pads_left else (question, context)
        # Not theirs(first, second): that takes an empty second text for none.
        expected = theirs(*([text] for text in texts), return_token_type_ids=True)
        assert dataset.input_ids[i].tolist() == expected["input_ids"][0], texts
        assert dataset.token_type_ids[i].tolist() == expected["token_type_ids"][0]


@pytest.mark.parametrize("max_length", [12, 20, 512])
def test_items_are_the_no_answer_position_and_the_pieces(tokenizer, max_length):
    contexts = [*CONTEXTS, " ".join(WORDS)]
    encoded = encode_questions(["who"] * len(contexts), contexts, TextReader(tokenizer, max_length))
    dataset = encoded.dataset
    for window, here in enumerate(windows_of(encoded)):
        pieces = tokenizer.encode([contexts[dataset.text[window]]], as_words=False)[0]
        first, last = encoded.window_start[window], encoded.window_stop[window]
        ids = dataset.input_ids[window][dataset.items[window]]
        assert ids[0] == tokenizer.tokenizer.cls_token_id
        assert ids[1:].tolist() == pieces[first:last].tolist()
        assert encoded.piece[here].tolist() == [-1, *range(first, last)]
        question = tokenizer.encode(["who"], as_words=False)[0].tolist()
        rest = np.delete(dataset.input_ids[window], dataset.items[window][1:]).tolist()
        assert [i for i in rest if i in question] == question, "the question is there as a whole"
    assert dataset.item_offsets[-1] == len(encoded.piece) == dataset.items.offsets[-1]


# Theirs takes no lone surrogates, takes "[SEP]" for a token, and leaves marks out of pieces.
ORDINARY = [text for text in STRANGE if not set(text) & set("\ud800\u0301[")]


def test_characters_are_those_of_transformers_without_white_space(model, tokenizer):
    theirs = AutoTokenizer.from_pretrained(model)
    for context in CONTEXTS + ORDINARY:
        expected = theirs([context], add_special_tokens=False, return_offsets_mapping=True)
        encoded = encode_one(context, tokenizer)
        tokens = theirs.convert_ids_to_tokens(expected["input_ids"][0])
        assert len(encoded.start) == 1 + len(tokens)
        for i, (start, end) in enumerate(expected["offset_mapping"][0], start=1):
            covered = "" if tokens[i - 1] == "▁" else context[start:end]  # It covers no letter.
            assert (encoded.start[i] < encoded.end[i]) == bool(covered.strip())
            if covered.strip():
                start += len(covered) - len(covered.lstrip())
                assert (encoded.start[i], encoded.end[i]) == (start, start + len(covered.strip()))


def check_targets(encoded, rows):
    """Compare the targets of all windows with the definition; rows are (context, answer)."""
    assert encoded.dataset.target.shape == (encoded.dataset.item_offsets[-1], 2)
    kept = {}
    for window, here in enumerate(windows_of(encoded)):
        row = int(encoded.dataset.text[window])
        context, answer = rows[row]
        target = encoded.dataset.target[here]
        inside = [
            answer is not None and start < end and end > answer[0] and start < answer[1]
            for start, end in zip(encoded.start[here], encoded.end[here])
        ]
        if (target == IGNORED).any():
            assert (target == IGNORED).all()
            assert any(inside)
            assert row in encoded.uncovered
            continue
        assert np.isin(target, (0, 1)).all()
        found = find_answer(encoded, window, context)
        if found is not None:
            kept[row] = kept.get(row, 0) + 1
            assert found == context[slice(*answer)]
            start, end = (target[:, column].argmax() for column in (0, 1))
            assert encoded.start[here][start] == answer[0], "this mention and no other"
            assert encoded.end[here][end] == answer[1]
            assert encoded.can_start[here][start]
            assert encoded.can_end[here][end]
        elif any(inside):
            assert row not in encoded.uncovered, "another window has the whole answer"
    for row, (_, answer) in enumerate(rows):
        assert (row in kept) == (answer is not None and row not in encoded.uncovered)


some_words = st.lists(
    st.sampled_from(["the", "oslo", "john", "babababa", "don't", "日本", "😀", "x,y"]),
    min_size=1,
    max_size=30,
)


@given(st.lists(st.tuples(some_words, st.data()), min_size=1, max_size=3), st.integers(16, 40))
@settings(deadline=None, max_examples=60)
def test_targets_are_the_answers(tokenizers, drawn, max_length):
    rows = []
    for words, data in drawn:
        context, places = spaced(words)
        answer = None
        if data.draw(st.booleans()):
            first = data.draw(st.integers(0, len(words) - 1))
            last = data.draw(st.integers(first, min(first + 4, len(words) - 1)))
            answer = (places[first][0], places[last][1])
        rows.append((context, answer))
    contexts, answers = zip(*rows)
    for tokenizer in tokenizers.values():
        encoded = encode_questions(
            ["who"] * len(rows), contexts, TextReader(tokenizer, max_length), answers=answers
        )
        check_targets(encoded, rows)


def test_combining_marks_belong_to_the_letter_before(tokenizer):
    """Also where the tokenizer drops them, or makes one character of both."""
    for context in ("cafe\u0301 oslo", "the re\u0301sume\u0301", "हिन्दु oslo"):
        for answer in spaced(context.split())[1]:
            encoded = encode_one(context, tokenizer, answer=answer)
            assert find_answer(encoded, 0, context) == context[slice(*answer)]


@st.composite
def strange_answers(draw):
    """Return (context, answer), the answer not empty."""
    context = draw(strange_text.filter(len))
    start = draw(st.integers(0, len(context) - 1))
    return context, (start, draw(st.integers(start + 1, len(context))))


@given(strange_answers())
@example(("日本", (1, 2)))
@example(("a \u3000\n b", (1, 5)))
@settings(deadline=None, max_examples=60)
def test_any_answer_is_found_or_refused(tokenizers, row):
    context, answer = row
    for tokenizer in tokenizers.values():
        encoded = encode_one(context, tokenizer, 5000)
        inside = encoded.start < encoded.end
        inside &= (encoded.start < answer[1]) & (encoded.end > answer[0])
        if not inside.any():
            message = "The answer of row 0, characters {} to {} of the context, is nothing that"
            with pytest.raises(ValueError, match=message.format(*answer)):
                encode_one(context, tokenizer, 5000, answer=answer)
            continue
        encoded = encode_one(context, tokenizer, 5000, answer=answer)
        start, end = (encoded.dataset.target[:, column].argmax() for column in (0, 1))
        assert encoded.start[start] == encoded.start[inside].min()
        assert encoded.end[end] == encoded.end[inside].max()
        assert encoded.can_start[start], "prediction must be able to give what is learned"
        assert encoded.can_end[end]


@pytest.mark.parametrize("context", ["", "\u200b", "\x00\u200b"])
def test_contexts_of_which_nothing_is_kept(bert, context):
    encoded = encode_questions(
        ["who"] * 3, ["john", context, "mary"], TextReader(bert, 64), answers=[(0, 4), None, (0, 4)]
    )
    assert np.diff(encoded.dataset.item_offsets).tolist() == [2, 1, 2]
    assert encoded.piece.tolist() == [-1, 0, -1, -1, 0]
    assert encoded.dataset.target.tolist() == [[0, 0], [1, 1], [1, 1], [0, 0], [1, 1]]
    is_piece = [False, True, False, False, True]
    assert encoded.can_start.tolist() == encoded.can_end.tolist() == is_piece


def test_a_tokenizer_without_a_classification_token(tmp_path):
    backend = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]").save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="needs a tokenizer that puts a classification token"):
        encode_one("a", WordTokenizer(str(tmp_path)))


TEXTS = ["the", "oslo", "babababa", "don't", "日本", "😀", "\u200b", " ", "\n", "e\u0301", ","]

contexts = st.lists(st.sampled_from(TEXTS), max_size=25).map(" ".join)
rows_of_contexts = st.lists(contexts, min_size=1, max_size=4)


def encode(contexts, tokenizer, max_length=16, stride=None):
    reader = TextReader(tokenizer, max_length)
    return encode_questions(["the"] * len(contexts), contexts, reader, stride)


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
    rows_of_contexts, st.sampled_from(FAMILIES), st.integers(9, 30), st.none() | st.integers(0, 2),
    st.integers(1, 9), st.sampled_from([1, 2, 5, 1000]), st.sampled_from(["float", "ties"]),
    st.integers(0, 99),
)  # fmt: skip
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


@pytest.mark.parametrize("kind", ["float", "ties"])
def test_the_size_of_the_chunks_does_not_matter(tokenizers, kind):
    """It goes by the longest answer, here longer than all contexts."""
    contexts = [" ".join(WORDS[i : i + n]) for i, n in enumerate([20, 1, 0, 30, 3, 3, 50])]
    encoded = encode(contexts, tokenizers["bert"])
    logits = random_logits(encoded, 0, kind)
    expected = SpanDecoder(1000, 7).decode(encoded, logits)
    for longest in (20_000, 200_000):  # A hundred starts at a time, and ten.
        assert SpanDecoder(longest, 7).decode(encoded, logits) == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [100.0, 1e4, 1e30])
def test_large_logits_are_finite(tokenizers, dtype, scale):
    encoded = encode(["the oslo john", "", " ".join(WORDS[:30])], tokenizers["bert"])
    logits = (scale * random_logits(encoded, 0)).astype(dtype)
    for candidates in SpanDecoder(5, 5).decode(encoded, logits):
        assert all(0 <= score <= 1 for _, _, score in candidates.spans)
        assert sum(score for _, _, score in candidates.spans) <= 1 + 1e-6
        assert not math.isnan(candidates.no_answer)
