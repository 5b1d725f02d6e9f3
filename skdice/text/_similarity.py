"""How alike the two texts of a pair are in characters, words and numbers."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import log_softmax
from sklearn.feature_extraction.text import HashingVectorizer

# In Chinese and Japanese, which write no spaces, a character counts as a word.
_CHARACTER = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TERMS: dict[str, dict[str, Any]] = {
    "characters": {"analyzer": "char_wb", "ngram_range": (2, 4)},
    "words": {"token_pattern": rf"[{_CHARACTER}]|[^\W{_CHARACTER}]+", "ngram_range": (1, 2)},
    "numbers": {"token_pattern": r"\d+(?:[.,]\d+)*"},
}
# Terms are told apart by their hash, so that no vocabulary is saved.
_N_BUCKETS = 2**18
# The weight of a term that all texts have. With the 1 of TfidfVectorizer, what all records share
# (field names, say) makes every pair alike.
_LEAST_WEIGHT = 0.1
# The value where neither text has a term, so that there is nothing to compare.
_UNKNOWN = 0.5


class Similarities(NamedTuple):
    """The similarities of pairs, and how their scores add to those of a network.

    Terms are the 2 to 4 neighbouring characters within words, the words and pairs of neighbouring
    words, and the numbers of a text in lower case. A term weighs
    ``(1 + log(tf)) * (log((1 + n_texts) / (1 + df)) + 0.1)``, where ``tf`` counts it in the text
    and ``df`` counts the training texts that have it. A term that the training texts do not have
    thus weighs most, while ``TfidfVectorizer`` would drop it: two texts that share a rare name are
    alike, although no training text has this name.
    """

    n_texts: float  # the sum of their weights: a weight counts as repetition
    # For each kind of terms: the buckets of the terms that several texts have, ascending, int32,
    # and how many texts have each, float32. A term of a single text counts as new.
    frequencies: dict[str, tuple[np.ndarray, np.ndarray]]
    # A logistic regression on the similarities, (5, n_classes) and (n_classes,).
    slope: np.ndarray
    start: np.ndarray
    share: float = 1.0  # of the logits, that of the network; the regression gives the rest

    @classmethod
    def of_texts(
        cls, pairs: Sequence[Sequence[str]], n_classes: int, weight: np.ndarray
    ) -> "Similarities":
        """Count how many of the texts of weighted pairs have each term; nothing is regressed."""
        texts = [text for pair in pairs for text in pair]
        of_text, frequencies = np.repeat(weight, 2), {}
        for kind in _TERMS:
            counts = of_text @ _count(kind, texts).astype(bool)
            buckets = np.flatnonzero(counts > 1)
            frequencies[kind] = buckets.astype(np.int32), counts[buckets].astype(np.float32)
        return cls(float(of_text.sum()), frequencies, np.zeros((5, n_classes)), np.zeros(n_classes))

    def offset(self, pairs: Sequence[Sequence[str]]) -> np.ndarray:
        """Return the part of the logits that similarities give, float32 (n_pairs, n_classes)."""
        logits = log_softmax(self.features(pairs) @ self.slope + self.start, axis=1)
        offset: np.ndarray = ((1 - self.share) * logits).astype(np.float32)
        return offset

    def features(self, pairs: Sequence[Sequence[str]]) -> np.ndarray:
        """Return the similarities of each pair, in [0, 1], of shape (n_pairs, 5).

        The texts of a pair may change places.
        """
        sides = [[pair[side] for pair in pairs] for side in (0, 1)]
        characters, words, numbers = (
            [self._weigh(kind, texts) for texts in sides] for kind in _TERMS
        )
        lengths = np.array([[len(text) for text in texts] for texts in sides]) + 1.0
        columns = [
            _cosine(*characters),
            _overlap(*characters),
            _cosine(*words),
            _overlap(*numbers),
            lengths.min(axis=0) / lengths.max(axis=0),
        ]
        return np.stack(columns, axis=1)

    def _weigh(self, kind: str, texts: list[str]) -> csr_array:
        """Return the weights of the terms of each text, of shape (n_texts, n_buckets)."""
        terms = _count(kind, texts)
        buckets, counts = self.frequencies[kind]
        frequency = np.zeros(_N_BUCKETS)
        frequency[buckets] = counts
        rarity = np.log((1 + self.n_texts) / (1 + frequency[terms.indices])) + _LEAST_WEIGHT
        terms.data = (1 + np.log(terms.data)) * rarity
        return terms


def _count(kind: str, texts: list[str]) -> csr_array:
    """Return how often each text has the terms of a kind, of shape (n_texts, n_buckets)."""
    if not texts:
        return csr_array((0, _N_BUCKETS))
    vectorizer = HashingVectorizer(
        n_features=_N_BUCKETS, alternate_sign=False, norm=None, **_TERMS[kind]
    )
    # A lone surrogate has no bytes that could be hashed.
    readable = [text.encode(errors="replace").decode() for text in texts]
    return csr_array(vectorizer.transform(readable))


def _cosine(a: csr_array, b: csr_array) -> np.ndarray:
    lengths = np.sqrt(a.multiply(a).sum(axis=1) * b.multiply(b).sum(axis=1))
    return _ratio(a.multiply(b).sum(axis=1), lengths, a, b)


def _overlap(a: csr_array, b: csr_array) -> np.ndarray:
    """Return the weight of what both have, as a share of what at least one has (Jaccard)."""
    shared = a.minimum(b).sum(axis=1)
    return _ratio(shared, a.sum(axis=1) + b.sum(axis=1) - shared, a, b)


def _ratio(part: np.ndarray, whole: np.ndarray, a: csr_array, b: csr_array) -> np.ndarray:
    ratio = np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
    is_unknown = (np.diff(a.indptr) == 0) & (np.diff(b.indptr) == 0)
    return np.where(is_unknown, _UNKNOWN, np.clip(ratio, 0, 1))
