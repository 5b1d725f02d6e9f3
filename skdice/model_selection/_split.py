"""Cross-validation folds that share rare tags among them."""

import math
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator, KFold
from sklearn.utils import check_consistent_length, check_random_state

from .._inputs import check_rows
from ..metrics import check_tags
from ..text import are_chunk_tags

_MAX_LISTED = 10


class StratifiedTagKFold(KFold):
    """K-fold cross-validation for tagged sentences, with rare tags in every fold.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=False
        Whether sentences that are equally good for a fold are taken in random order, not in that
        of the data. The rows within a fold stay sorted.
    random_state : int, RandomState or None, default=None
        Of the shuffling. An int makes each call of ``split`` give the same folds.

    Raises
    ------
    ValueError
        If `n_splits` is no int >= 2, or `random_state` is given without `shuffle`.
    TypeError
        If `shuffle` is no bool.

    See Also
    --------
    sklearn.model_selection.StratifiedKFold : For rows with one label each.

    Notes
    -----
    The folds are made by iterative stratification after Sechidis, Tsoumakas and Vlahavas, "On the
    Stratification of Multi-Label Data" (ECML PKDD 2011). Of chunk tags the types count (``PER`` for
    ``B-PER`` and ``I-PER``; ``O`` is none), else the tags themselves. The sentences of the rarest
    tag are placed first, each in the fold that has the fewest sentences of that tag; among equal
    folds the next rarer tags of the sentence decide, then the number of sentences. So

    - the numbers of sentences in two test parts differ by at most 1;
    - a tag that occurs in m sentences occurs in min(m, `n_splits`) test parts. This is certain if
      no sentence has two tags; otherwise sentences are swapped at the end, and exceptions are rare.

    Examples
    --------
    >>> from skdice.model_selection import StratifiedTagKFold
    >>> y = [["O"], ["B-LOC"], ["B-PER", "I-PER"], ["O", "B-LOC"], ["B-PER", "O"], ["O", "O"]]
    >>> for train, test in StratifiedTagKFold(n_splits=2).split(y, y):
    ...     print(test, [y[i] for i in test])
    [0 1 2] [['O'], ['B-LOC'], ['B-PER', 'I-PER']]
    [3 4 5] [['O', 'B-LOC'], ['B-PER', 'O'], ['O', 'O']]
    """

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Generate the rows of the training and the test part of each fold.

        Parameters
        ----------
        X : sequence of length n_sentences
            Ignored.
        y : list, Series or object array of list of str
            The tags of each sentence.
        groups : array-like of shape (n_sentences,), default=None
            Sentences of one group, such as a document, are in the same part; it then is the number
            of groups that differs by at most 1.

        Yields
        ------
        train, test : ndarray of int
            Sorted row numbers.

        Raises
        ------
        ValueError
            If `y` is None, has another length than `X` or fewer rows than there are folds, or has
            an empty tag.
        TypeError
            If a row of `y` is no list of str.

        Warns
        -----
        UserWarning
            If tags occur in fewer sentences than there are folds; it names them.
        """
        if y is None:
            raise ValueError(f"{type(self).__name__} needs y, a list of tags for each sentence.")
        check_consistent_length(X, y, groups)
        rows = check_rows(y, "y", "lists of tags")
        sentences = [check_tags(row, f"row {i} of y") for i, row in enumerate(rows)]
        unit = np.arange(len(sentences))
        if groups is not None:
            unit = np.unique(np.asarray(groups), return_inverse=True)[1]
        n_units = unit.max(initial=-1) + 1
        if self.n_splits > n_units:
            what = "samples: n_samples" if groups is None else "groups: n_groups"
            raise ValueError(
                f"Cannot have number of splits n_splits={self.n_splits} greater than the number "
                f"of {what}={n_units}."
            )
        # That of KFold does not take groups.
        return BaseCrossValidator.split(self, X, sentences, unit)

    def _iter_test_masks(self, X: Any, y: list[list[str]], groups: Any) -> Iterator[np.ndarray]:
        rows: list[Counter[str]] = [Counter() for _ in range(groups.max() + 1)]
        for unit, labels in zip(groups, _count_labels(y)):
            rows[unit].update(labels)
        order = np.arange(len(rows))
        if self.shuffle:
            order = check_random_state(self.random_state).permutation(len(rows))
        folds = self._assign(rows, order)[groups]
        for fold in range(self.n_splits):
            yield folds == fold

    def _assign(self, rows: Sequence[Counter[str]], order: np.ndarray) -> np.ndarray:
        """Return the fold of each sentence, (n_sentences,); ties are broken by `order`."""
        n_sentences = Counter(label for row in rows for label in row)
        self._warn_about_rare(n_sentences)
        labels = sorted(n_sentences, key=lambda label: (n_sentences[label], label))
        rank = {label: i for i, label in enumerate(labels)}
        ranked = [sorted((rank[label], count) for label, count in row.items()) for row in rows]
        folds = _Folds(self.n_splits, len(labels), ranked)
        for i in sorted(order.tolist(), key=lambda i: _placement(ranked[i])):
            folds.place(i)
        for label in range(len(labels)):
            folds.spread(label)
        return np.array(folds.assigned)

    def _warn_about_rare(self, n_sentences: Counter[str]) -> None:
        rare = sorted(label for label, n in n_sentences.items() if n < self.n_splits)
        if not rare:
            return
        listed = ", ".join(f"{label!r} (in {n_sentences[label]})" for label in rare[:_MAX_LISTED])
        more = ", ..." if len(rare) > _MAX_LISTED else ""
        warnings.warn(
            f"Some tags of y occur in fewer sentences than n_splits={self.n_splits}, so that some "
            f"test parts lack them: {listed}{more}.",
            stacklevel=2,
        )


class _Folds:
    """Folds that are being filled with sentences, `rows` of (label, number of words), rarest first.

    Labels are numbers.
    """

    def __init__(
        self, n_folds: int, n_labels: int, rows: Sequence[Sequence[tuple[int, int]]]
    ) -> None:
        self.rows = rows
        self.assigned = [-1] * len(rows)
        self.sizes = [0] * n_folds
        self.smallest, self.n_larger = divmod(len(rows), n_folds)
        self.sentences = [[0] * n_folds for _ in range(n_labels)]
        self.words = [[0] * n_folds for _ in range(n_labels)]

    def place(self, i: int) -> None:
        """Put a sentence into the fold that lacks its labels most."""
        has_room = self.smallest + (self.n_larger > 0)
        open_folds = [fold for fold, size in enumerate(self.sizes) if size < has_room]
        fold = min(open_folds, key=lambda fold: self._content(fold, self.rows[i]))
        self.n_larger -= self.sizes[fold] == self.smallest
        self.sizes[fold] += 1
        self._move(i, fold)

    def spread(self, label: int) -> None:
        """Swap sentences until no fold lacks the label that could have it."""
        for fold, n_sentences in enumerate(self.sentences[label]):
            if not n_sentences and max(self.sentences[label]) > 1:
                self._supply(fold, label)

    def _content(self, fold: int, row: Sequence[tuple[int, int]]) -> tuple[list[int], int, int]:
        """Return what a fold already has of a sentence's labels, the most important first."""
        n_words = self.words[row[0][0]][fold] if row else 0
        # Sizes before words: folds that drift apart fill up before the last labels are placed.
        return [self.sentences[label][fold] for label, _ in row], self.sizes[fold], n_words

    def _move(self, i: int, fold: int) -> None:
        before, self.assigned[i] = self.assigned[i], fold
        for label, n_words in self.rows[i]:
            self.sentences[label][fold] += 1
            self.words[label][fold] += n_words
            if before >= 0:
                self.sentences[label][before] -= 1
                self.words[label][before] -= n_words

    def _supply(self, fold: int, label: int) -> None:
        """Swap a sentence with the label into the fold, if that makes labels be in more folds."""
        with_label = [i for i, row in enumerate(self.rows) if any(label == own for own, _ in row)]
        in_fold = [i for i, other in enumerate(self.assigned) if other == fold]
        for i, j in product(with_label, in_fold):
            if self._gain(i, j) + self._gain(j, i) > 0:
                giver = self.assigned[i]
                self._move(i, fold)
                self._move(j, giver)
                return

    def _gain(self, i: int, j: int) -> int:
        """Return in how many more folds the labels that only i has are if i and j are swapped."""
        before, after = self.assigned[i], self.assigned[j]
        common = {label for label, _ in self.rows[j]}
        changed = [self.sentences[label] for label, _ in self.rows[i] if label not in common]
        return sum((counts[after] == 0) - (counts[before] == 1) for counts in changed)


def _placement(row: Sequence[tuple[int, int]]) -> tuple[float, int]:
    """Return the sort key of a sentence: rarest label first, then most words with it."""
    if not row:
        return math.inf, 0
    label, n_words = row[0]
    return label, -n_words


def _count_labels(sentences: Sequence[Sequence[str]]) -> list[Counter[str]]:
    """Return how many words of each sentence have each label."""
    rows = [Counter(tags) for tags in sentences]
    tags = {tag for row in rows for tag in row}
    if not are_chunk_tags(list(tags)):
        return rows
    types: list[Counter[str]] = []
    for row in rows:
        types.append(Counter())
        for tag, n_words in row.items():
            if tag != "O":
                types[-1][tag[2:]] += n_words
    return types
