"""Rows of one or two texts as windows, against what transformers makes of them."""

from dataclasses import replace

import numpy as np
import pytest
from transformers import AutoTokenizer

from skdice.text._encoding import encode_rows, encode_words
from skdice.text._tokenizer import WordTokenizer

TEXTS = ["john lives in oslo", "The old market, near paris.", "", "a", "mary-anna said: 'went'!"]
PAIRS = [(a, b) for a in TEXTS for b in TEXTS]


def encode(tokenizer, rows, max_length=512, truncation="longest_first", **kwargs):
    frame = tokenizer.frame if len(rows[0]) == 1 else tokenizer.pair_frame
    return encode_rows(rows, tokenizer, frame, max_length, truncation, **kwargs)


def test_pairs_are_those_of_transformers(model):
    theirs = AutoTokenizer.from_pretrained(model)
    dataset, cut = encode(WordTokenizer(model), PAIRS)
    assert not len(cut)
    for i, (first, second) in enumerate(PAIRS):
        # Not theirs(first, second): that takes an empty second text for none.
        expected = theirs([first], [second], return_token_type_ids=True)
        assert dataset.input_ids[i].tolist() == expected["input_ids"][0], (first, second)
        assert dataset.token_type_ids[i].tolist() == expected["token_type_ids"][0]


def test_texts_are_those_of_transformers(model):
    theirs = AutoTokenizer.from_pretrained(model)
    dataset, _ = encode(WordTokenizer(model), [(text,) for text in TEXTS])
    for i, text in enumerate(TEXTS):
        assert dataset.input_ids[i].tolist() == theirs(text)["input_ids"]


def test_cut_rows(tiny_bert):
    tokenizer = WordTokenizer(tiny_bert)
    rows = [("the", "saw"), ("the saw in was", "by"), ("in the was", "by the saw")]
    dataset, cut = encode(tokenizer, rows, max_length=7)
    assert cut.tolist() == [1, 2]
    words = [tokenizer.tokenizer.convert_ids_to_tokens(dataset.input_ids[i]) for i in range(3)]
    assert words[1] == ["[CLS]", "the", "saw", "in", "[SEP]", "by", "[SEP]"]
    assert words[2] == ["[CLS]", "in", "the", "[SEP]", "by", "the", "[SEP]"]
    assert dataset.token_type_ids[2].tolist() == [0, 0, 0, 0, 1, 1, 1]


def test_no_rows(tiny_bert):
    tokenizer = WordTokenizer(tiny_bert)
    dataset, cut = encode_rows([], tokenizer, tokenizer.pair_frame, 64, "longest_first")
    assert (len(dataset), len(cut)) == (0, 0)


@pytest.mark.parametrize("rows", [[3, 0], [], [1, 1, 2]])
def test_taken_texts_are_those_encoded_alone(tiny_bert, rows):
    tokenizer = WordTokenizer(tiny_bert)
    sentences = [["john"] * 30, [], ["the", "saw"], ["was"] * 9]
    target = np.arange(41) % 3
    parts = np.split(target, [30, 30, 32])
    weight = np.arange(4, dtype=np.float32)
    whole = encode_words(sentences, tokenizer, 12, 4)
    whole = replace(whole, target=target, weight=weight)
    alone = replace(
        encode_words([sentences[i] for i in rows], tokenizer, 12, 4),
        target=np.concatenate([parts[i] for i in rows] or [target[:0]]),
        weight=weight[rows],
    )
    taken = whole.take(np.array(rows, dtype=np.int64))
    assert taken.n_items == alone.n_items
    for name in ("input_ids", "token_type_ids", "items"):
        np.testing.assert_array_equal(getattr(taken, name).values, getattr(alone, name).values)
        np.testing.assert_array_equal(getattr(taken, name).offsets, getattr(alone, name).offsets)
    for name in ("text", "item_offsets", "target", "weight"):
        np.testing.assert_array_equal(getattr(taken, name), getattr(alone, name))
