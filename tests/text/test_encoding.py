import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from skdice.text import N_SHAPES, TextReader, encode_rows, encode_words
from skdice.text._encoding import central_window, cut_windows, truncated_lengths, word_shapes

LONG_WORD = "a" * 40  # a piece per letter
WORDS = ["the", "john", "oslo", "ab", "abab", "babababa", "", LONG_WORD]

sentences_of_words = st.lists(st.lists(st.sampled_from(WORDS), max_size=25), max_size=4)


def body(dataset, window, frame):
    """Return the pieces of a window, after a look at the special tokens around them."""
    ids = dataset.input_ids[window].tolist()
    n_prefix, n_body = len(frame.special[0]), len(ids) - frame.n_special
    prefix, suffix = frame.special
    assert tuple(ids[:n_prefix]) == prefix
    assert tuple(ids[n_prefix + n_body :]) == suffix
    before, after = frame.special_types
    types = [*before, *[frame.text_types[0]] * n_body, *after]
    assert dataset.token_type_ids[window].tolist() == types
    return ids[n_prefix : n_prefix + n_body]


def check_encoding(dataset, sentences, tokenizer, max_length, stride):
    """Compare a data set with its definition, sentence by sentence."""
    n_prefix = len(tokenizer.frame.special[0])
    capacity = max_length - tokenizer.frame.n_special
    assert dataset.n_texts == len(sentences)
    assert dataset.item_offsets[-1] == sum(len(sentence) for sentence in sentences)
    assert np.diff(dataset.item_offsets).tolist() == [len(sentence) for sentence in sentences]
    assert len(dataset) == len(dataset.input_ids) == len(dataset.items)
    assert dataset.items.lengths.sum() == dataset.item_offsets[-1]

    window = 0
    for text, sentence in enumerate(sentences):
        words = tokenizer.encode(sentence)
        pieces, first = words.values.tolist(), words.offsets[:-1]
        row, start, stop = cut_windows(np.array([len(pieces)]), capacity, stride)
        owner = central_window(first, row, start, stop)
        for i in np.unique(owner):
            assert dataset.text[window] == text
            assert body(dataset, window, tokenizer.frame) == pieces[start[i] : stop[i]]
            positions = dataset.items[window] - n_prefix
            assert positions.tolist() == (first[owner == i] - start[i]).tolist()
            window += 1
    assert window == len(dataset)


@given(sentences_of_words, st.integers(3, 40), st.data())
@settings(deadline=None, max_examples=30)
def test_every_word_is_scored_once_on_its_first_piece(
    bert, roberta, xlnet, sentences, max_length, data
):
    stride = data.draw(st.integers(0, max_length - 3))
    for tokenizer in (bert, roberta, xlnet):
        dataset = encode_words(sentences, TextReader(tokenizer, max_length), stride)
        check_encoding(dataset, sentences, tokenizer, max_length, stride)
        scored = [
            int(dataset.input_ids[window][position])
            for window in range(len(dataset))
            for position in dataset.items[window]
        ]
        words = [word for sentence in sentences for word in sentence]
        assert scored == [int(tokenizer.encode([word])[0][0]) for word in words]


TEXTS = ["john lives in oslo", "The old market, near paris.", "", "a", "mary-anna said: 'went'!"]
PAIRS = [(a, b) for a in TEXTS for b in TEXTS]


def encode(tokenizer, rows, max_length=512, truncation="longest_first", **kwargs):
    return encode_rows(rows, len(rows[0]), TextReader(tokenizer, max_length), truncation, **kwargs)


@pytest.mark.parametrize("rows", [PAIRS, [(text,) for text in TEXTS]], ids=["pairs", "texts"])
def test_rows_are_those_of_transformers(model, tokenizer, rows):
    theirs = AutoTokenizer.from_pretrained(model)
    dataset, lengths = encode(tokenizer, rows)
    assert max(lengths) < 512
    for i, texts in enumerate(rows):
        # Not theirs(first, second): that takes an empty second text for none.
        expected = theirs(*([text] for text in texts), return_token_type_ids=True)
        assert dataset.input_ids[i].tolist() == expected["input_ids"][0], texts
        assert dataset.token_type_ids[i].tolist() == expected["token_type_ids"][0]


def test_cut_rows(bert):
    rows = [("the", "saw"), ("the saw in was", "by"), ("in the was", "by the saw")]
    dataset, lengths = encode(bert, [*rows, ("by", "the saw in was")], max_length=7)
    assert lengths.tolist() == [5, 8, 9, 8]
    words = [bert.tokenizer.convert_ids_to_tokens(dataset.input_ids[i]) for i in range(3)]
    assert words[1] == ["[CLS]", "the", "saw", "in", "[SEP]", "by", "[SEP]"]
    assert words[2] == ["[CLS]", "in", "the", "[SEP]", "by", "the", "[SEP]"]
    assert dataset.token_type_ids[2].tolist() == [0, 0, 0, 0, 1, 1, 1]


EXAMPLES = {
    "digits": ["7", "2024", "٣"], "digits and others": ["B2B", "1990s", "3.5", "p53"],
    "neither letters nor digits": [".", "--", "", "\u200b", "€"],
    "lower case": ["the", "être", "well-known"], "upper case": ["NATO", "U.N.", "ÖBB"],
    "one upper-case letter": ["A", "É"], "capitalised": ["Oslo", "Émile", "Anglo-american"],
    "other letters": ["iPhone", "McDonald", "Anglo-American", "東京"],
}  # fmt: skip


def test_shapes():
    assert len(EXAMPLES) == N_SHAPES
    for number, words in enumerate(EXAMPLES.values(), start=1):
        assert word_shapes(words).tolist() == [number] * len(words)


def test_pieces_have_the_shape_of_their_word(tokenizer):
    """In each of several windows; special tokens have none."""
    sentences = [["John", "met", "ANNA", "at", "7"] * 4, [], ["babab", "Q."]]
    reader = TextReader(tokenizer, 12)
    plain = encode_words(sentences, reader, 3)
    shaped = encode_words(sentences, reader, 3, with_shapes=True)
    assert len(shaped) > 3
    words = [word for sentence in sentences for word in sentence]
    pieces = tokenizer.encode(words)
    of_pieces = np.repeat(word_shapes(words), pieces.lengths)
    frame, word = tokenizer.frame, 0
    for window in range(len(shaped)):
        types = shaped.token_type_ids[window].tolist()
        n_before, n_body = len(frame.special[0]), len(types) - frame.n_special
        body = types[n_before : n_before + n_body]
        assert types[:n_before] + types[n_before + n_body :] == [0] * frame.n_special
        # Each window is found again by the word that it scores first.
        start = pieces.offsets[word] - (plain.items[window][0] - n_before)
        assert body == of_pieces[start : start + n_body].tolist()
        assert plain.input_ids[window].tolist() == shaped.input_ids[window].tolist()
        word += len(plain.items[window])
    assert word == plain.item_offsets[-1] == 22


@pytest.mark.parametrize("words", [["in", "oslo", "7"], ["7", "."], ["東京"]])
def test_sentences_without_a_capital_have_no_shapes(bert, words):
    both = encode_words([words, ["In", "Oslo", "7"]], TextReader(bert, 12), 3, with_shapes=True)
    assert not both.token_type_ids[0].any()
    assert both.token_type_ids[1].any()


@st.composite
def cuts(draw):
    capacity = draw(st.integers(1, 24))
    return draw(st.integers(0, 120)), capacity, draw(st.integers(0, capacity - 1))


def slow_central_window(position, start, stop):
    """The window whose poorer side has most context; the ends of the text count as unlimited."""

    def context(window):
        left = math.inf if window == 0 else position - start[window]
        right = math.inf if window == len(start) - 1 else stop[window] - 1 - position
        return min(left, right)

    inside = [i for i in range(len(start)) if start[i] <= position < stop[i]]
    return max(inside, key=lambda window: (context(window), -window))


@given(cuts())
@settings(deadline=None, max_examples=50)
def test_windows_cover_the_text_and_overlap(cut):
    n_pieces, capacity, stride = cut
    _, start, stop = cut_windows(np.array([n_pieces]), capacity, stride)
    assert start[0] == 0
    assert stop[-1] == n_pieces
    assert (np.diff(start) > 0).all()
    assert (stop[:-1] - start[1:] >= stride).all()
    assert (np.diff(start)[:-1] == capacity - stride).all()
    if n_pieces <= capacity:
        assert len(start) == 1
    else:
        assert (stop - start == capacity).all()
        assert len(start) == 1 + math.ceil((n_pieces - capacity) / (capacity - stride))


@given(cuts(), st.integers(1, 60))
@settings(deadline=None, max_examples=50)
def test_central_window_is_the_one_with_most_context(cut, n_before):
    n_pieces, capacity, stride = cut
    text, start, stop = cut_windows(np.array([n_before, n_pieces]), capacity, stride)
    first = np.array([0, n_before])[text]
    owner = central_window(np.arange(n_before + n_pieces), text, start + first, stop + first)
    mine = text == 1
    assert (owner[n_before:] - (~mine).sum()).tolist() == [
        slow_central_window(i, start[mine], stop[mine]) for i in range(n_pieces)
    ]


lengths = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=20)


def one_by_one(first, second, capacity):
    """Take pieces from the longer text until both fit."""
    while first + second > capacity:
        if first > second:
            first -= 1
        else:
            second -= 1
    return first, second


@given(lengths, st.integers(1, 40))
def test_longest_first_takes_piece_by_piece(rows, capacity):
    first, second = map(np.array, zip(*rows))
    kept = truncated_lengths([first, second], capacity, "longest_first")
    assert list(zip(*kept)) == [one_by_one(a, b, capacity) for a, b in rows]


@given(lengths, st.integers(30, 40))
def test_second(rows, capacity):
    first, second = map(np.array, zip(*rows))
    kept = truncated_lengths([first, second], capacity, "second")
    np.testing.assert_array_equal(kept[0], first)
    np.testing.assert_array_equal(kept[1], np.minimum(second, capacity - first))
