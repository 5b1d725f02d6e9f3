"""The encoded data set: each word once, on its first piece, in the order of the texts."""

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.text._encoding import EncodedDataset, encode_words
from skdice.text._ragged import Ragged
from skdice.text._windows import central_window, cut_windows

LONG_WORD = "a" * 40  # a piece per letter
WORDS = ["the", "john", "oslo", "ab", "abab", "babababa", "", LONG_WORD]

sentences_of_words = st.lists(st.lists(st.sampled_from(WORDS), max_size=25), max_size=4)


def body(dataset, window, frame):
    """Return the pieces of a window, after a look at the special tokens around them."""
    ids = dataset.input_ids[window].tolist()
    n_prefix, n_body = frame.n_before, len(ids) - frame.n_special
    prefix, suffix = frame.special
    assert tuple(ids[:n_prefix]) == prefix
    assert tuple(ids[n_prefix + n_body :]) == suffix
    before, after = frame.special_types
    types = [*before, *[frame.text_types[0]] * n_body, *after]
    assert dataset.token_type_ids[window].tolist() == types
    return ids[n_prefix : n_prefix + n_body]


def check_encoding(dataset, sentences, tokenizer, max_length, stride):
    """Compare a data set with its definition, sentence by sentence."""
    n_prefix = tokenizer.frame.n_before
    capacity = max_length - tokenizer.frame.n_special
    assert dataset.n_texts == len(sentences)
    assert dataset.n_items == sum(len(sentence) for sentence in sentences)
    assert np.diff(dataset.item_offsets).tolist() == [len(sentence) for sentence in sentences]
    assert len(dataset) == len(dataset.input_ids) == len(dataset.items)
    assert dataset.items.lengths.sum() == dataset.n_items

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
        dataset = encode_words(sentences, tokenizer, max_length, stride)
        check_encoding(dataset, sentences, tokenizer, max_length, stride)
        scored = [
            int(dataset.input_ids[window][position])
            for window in range(len(dataset))
            for position in dataset.items[window]
        ]
        words = [word for sentence in sentences for word in sentence]
        assert scored == [int(tokenizer.encode([word])[0][0]) for word in words]


def make_dataset(**changes):
    rows = Ragged.from_rows([[2, 5, 6, 3], [2, 7, 3]], np.int32)
    parts = {
        "input_ids": rows,
        "token_type_ids": Ragged(np.zeros_like(rows.values), rows.offsets),
        "items": Ragged.from_rows([[1, 2], [1]], np.int32),
        "text": np.array([0, 1]),
        "item_offsets": np.array([0, 2, 3]),
        "target": np.array([0, 1, 0]),
        "weight": np.array([1.0, 2.0], dtype=np.float32),
    }
    return EncodedDataset(**{**parts, **changes})


CHANGES = {
    "a piece": {"input_ids": Ragged.from_rows([[2, 5, 6, 3], [2, 8, 3]], np.int32)},
    "where a window ends": {"input_ids": Ragged.from_rows([[2, 5, 6], [3, 2, 7, 3]], np.int32)},
    "a type": {"token_type_ids": Ragged.from_rows([[0, 0, 0, 0], [0, 0, 1]], np.int32)},
    "a position": {"items": Ragged.from_rows([[1, 2], [2]], np.int32)},
    "the window of a word": {"items": Ragged.from_rows([[1], [2, 1]], np.int32)},
    "the text of a window": {"text": np.array([0, 2])},
    "the words of a text": {"item_offsets": np.array([0, 1, 3])},
    "an empty text": {"item_offsets": np.array([0, 2, 3, 3])},
    "a target": {"target": np.array([0, 1, 1])},
    "the type of the targets": {"target": np.array([0, 1, 0]).view(np.int32)},
    "no target": {"target": None},
    "a weight": {"weight": np.array([1.0, 2.5], dtype=np.float32)},
    "no weight": {"weight": None},
    "the type of the weights": {"weight": np.array([1.0, 2.0])},
}


@pytest.mark.parametrize("change", CHANGES)
def test_fingerprint_changes_with(change):
    assert make_dataset(**CHANGES[change]).fingerprint != make_dataset().fingerprint


def test_every_field_is_in_the_fingerprint():
    changed = {name for change in CHANGES.values() for name in change}
    assert changed == {field.name for field in dataclasses.fields(EncodedDataset)}


def test_fingerprint_of_equal_data_is_equal():
    dataset = make_dataset()
    strided = make_dataset(target=np.array([0, 9, 1, 9, 0, 9])[::2])
    assert len({dataset.fingerprint, make_dataset().fingerprint, strided.fingerprint}) == 1
    assert pickle.loads(pickle.dumps(dataset)).fingerprint == dataset.fingerprint
