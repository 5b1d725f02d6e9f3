"""The encoded data set: words and their shapes in windows, and rows of one or two texts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from skdice.text import SHAPES, TextReader, encode_rows, encode_words
from skdice.text._encoding import central_window, cut_windows, word_shapes

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


def test_pairs_are_those_of_transformers(model, tokenizer):
    theirs = AutoTokenizer.from_pretrained(model)
    dataset, cut = encode(tokenizer, PAIRS)
    assert not len(cut)
    for i, (first, second) in enumerate(PAIRS):
        # Not theirs(first, second): that takes an empty second text for none.
        expected = theirs([first], [second], return_token_type_ids=True)
        assert dataset.input_ids[i].tolist() == expected["input_ids"][0], (first, second)
        assert dataset.token_type_ids[i].tolist() == expected["token_type_ids"][0]


def test_texts_are_those_of_transformers(model, tokenizer):
    theirs = AutoTokenizer.from_pretrained(model)
    dataset, _ = encode(tokenizer, [(text,) for text in TEXTS])
    assert [row.tolist() for row in dataset.input_ids] == theirs(TEXTS)["input_ids"]


def test_cut_rows(bert):
    rows = [("the", "saw"), ("the saw in was", "by"), ("in the was", "by the saw")]
    dataset, cut = encode(bert, [*rows, ("by", "the saw in was")], max_length=7)
    assert cut.tolist() == [1, 2, 3]
    words = [bert.tokenizer.convert_ids_to_tokens(dataset.input_ids[i]) for i in range(3)]
    assert words[1] == ["[CLS]", "the", "saw", "in", "[SEP]", "by", "[SEP]"]
    assert words[2] == ["[CLS]", "in", "the", "[SEP]", "by", "the", "[SEP]"]
    assert dataset.token_type_ids[2].tolist() == [0, 0, 0, 0, 1, 1, 1]


EXAMPLES = {
    "digits": ["7", "2024", "٣"],
    "digits and others": ["B2B", "1990s", "3.5", "p53"],
    "neither letters nor digits": [".", "--", "", "\u200b", "€"],
    "lower case": ["the", "être", "well-known"],
    "upper case": ["NATO", "U.N.", "ÖBB"],
    "one upper-case letter": ["A", "É"],
    "capitalised": ["Oslo", "Émile", "Anglo-american"],
    "other letters": ["iPhone", "McDonald", "Anglo-American", "東京"],
}


def test_shapes():
    assert tuple(EXAMPLES) == SHAPES
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
