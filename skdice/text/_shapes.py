"""The shapes of words: what an encoder that does not see case is told of them."""

from collections.abc import Sequence

import numpy as np

# Their numbers begin at 1: 0 is what belongs to no word.
SHAPES = (
    "digits",
    "digits and others",
    "neither letters nor digits",
    "lower case",
    "upper case",
    "one upper-case letter",
    "capitalised",
    "other letters",
)


def word_shapes(words: Sequence[str]) -> np.ndarray:
    """Return the shape of each word.

    Returns
    -------
    ndarray of shape (n_words,), int32
        Places in ``SHAPES``, counted from 1.
    """
    known = {word: _shape(word) for word in set(words)}
    return np.array([known[word] for word in words], dtype=np.int32)


def _shape(word: str) -> int:
    if any(character.isdigit() for character in word):
        return 1 if word.isdigit() else 2
    if not any(character.isalpha() for character in word):
        return 3
    if word.islower():
        return 4
    if word.isupper():
        return 5 if len(word) > 1 else 6
    is_capitalised = word[0].isupper() and word[1:].islower()
    return 7 if is_capitalised else 8
