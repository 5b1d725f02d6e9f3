"""Shapes of words, and where they stand in the encoded data set."""

import numpy as np
import pytest

from skdice.text._encoding import SHAPES, encode_words, word_shapes
from skdice.text._tokenizer import WordTokenizer

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


def test_all_shapes_have_examples():
    assert tuple(EXAMPLES) == SHAPES


@pytest.mark.parametrize("shape", SHAPES)
def test_shape(shape):
    number = SHAPES.index(shape) + 1
    assert word_shapes(EXAMPLES[shape]).tolist() == [number] * len(EXAMPLES[shape])


@pytest.mark.parametrize("family", ["bert", "roberta", "xlnet"])
def test_pieces_have_the_shape_of_their_word(tiny_models, family):
    """In each of several windows; special tokens have none."""
    tokenizer = WordTokenizer(tiny_models(family))
    sentences = [["John", "met", "ANNA", "at", "7"] * 4, [], ["babab", "Q."]]
    plain = encode_words(sentences, tokenizer, 12, 3)
    shaped = encode_words(sentences, tokenizer, 12, 3, with_shapes=True)
    assert len(shaped) > 3
    words = [word for sentence in sentences for word in sentence]
    pieces = tokenizer.encode(words)
    of_pieces = np.repeat(word_shapes(words), pieces.lengths)
    frame, seen = tokenizer.frame, 0
    for window in range(len(shaped)):
        types = shaped.token_type_ids[window].tolist()
        n_body = len(types) - frame.n_special
        first = plain.items[window][0] - frame.n_before
        assert types[: frame.n_before] + types[frame.n_before + n_body :] == [0] * frame.n_special
        # The windows of a text are found again by the word that each scores first.
        word = sum(len(plain.items[i]) for i in range(window))
        start = pieces.offsets[word] - first
        body = types[frame.n_before : frame.n_before + n_body]
        assert body == of_pieces[start : start + n_body].tolist()
        assert plain.input_ids[window].tolist() == shaped.input_ids[window].tolist()
        seen += len(plain.items[window])
    assert seen == plain.n_items == 22


@pytest.mark.parametrize("words", [["in", "oslo", "7"], ["7", "."], ["東京"]])
def test_sentences_without_a_capital_have_no_shapes(tiny_models, words):
    tokenizer = WordTokenizer(tiny_models("bert"))
    both = encode_words([words, ["In", "Oslo", "7"]], tokenizer, 12, 3, with_shapes=True)
    assert not both.token_type_ids[0].any()
    assert both.token_type_ids[1].any()
