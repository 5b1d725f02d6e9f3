"""Cross-validation folds that share rare tags among them."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator, KFold
from sklearn.utils import check_consistent_length, check_random_state

from .._inputs import check_groups, check_rows, list_some, number_distinct
from .._typing import Labels
from ..exceptions import warn
from ..metrics import are_chunk_tags, check_tag_row


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
        Draws the shuffling. With an int, each call of ``split`` gives the same folds.

    Raises
    ------
    TypeError, ValueError
        If `n_splits` is no int >= 2, `shuffle` is no bool, or `random_state` is given without
        `shuffle`.

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
      no sentence has two tags; otherwise exceptions are rare.

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
        self, X: Any, y: Any = None, groups: Labels | None = None
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
        TypeError, ValueError
            If `y` is None, has another length than `X` or fewer rows than there are folds, if a row
            is no list of str or has an empty tag, or if a group cannot be hashed.

        Warns
        -----
        UserWarning
            If tags occur in fewer sentences than there are folds; it names them.
        """
        if y is None:
            raise ValueError(f"{type(self).__name__} needs y, a list of tags for each sentence.")
        check_consistent_length(X, y)
        rows = check_rows(y, "y", "lists of tags")
        sentences = [check_tag_row(row, f"row {i} of y") for i, row in enumerate(rows)]
        each = range(len(sentences))
        unit, _ = number_distinct(check_groups(groups, len(each)) or each)
        n_units = unit.max(initial=-1) + 1
        if self.n_splits > n_units:
            raise ValueError(
                f"n_splits={self.n_splits} must not be greater than the number of sentences, or of "
                f"groups. Got {n_units} of them."
            )
        # That of KFold does not take groups.
        return BaseCrossValidator.split(self, X, sentences, unit)

    def _iter_test_masks(
        self, X: Any, y: list[list[str]], groups: np.ndarray
    ) -> Iterator[np.ndarray]:
        if are_chunk_tags(list({tag for tags in y for tag in tags})):
            y = [[tag[2:] for tag in tags if tag != "O"] for tags in y]
        rows: list[Counter[str]] = [Counter() for _ in range(groups.max() + 1)]
        for unit, labels in zip(groups, y):
            rows[unit].update(labels)
        order = np.arange(len(rows))
        if self.shuffle:
            order = check_random_state(self.random_state).permutation(len(rows))
        occurrences = Counter(label for row in rows for label in row)
        rare = sorted(label for label, n in occurrences.items() if n < self.n_splits)
        if rare:
            warn(
                f"Some tags of y occur in fewer sentences than n_splits={self.n_splits}, so that "
                f"some test parts lack them: {list_some(rare)}."
            )
        labels = sorted(occurrences, key=lambda label: (occurrences[label], label))
        # (n_sentences, n_labels + 1), the rarest label first; a last one, which all have, counts
        # the sentences of a fold.
        words = np.array([[*(row[label] for label in labels), 1] for row in rows], dtype=np.int32)
        has = words > 0
        rarest = has.argmax(axis=1)
        in_turn = order[np.lexsort((-words[order, rarest[order]], rarest[order]))]
        n_sentences = np.zeros((self.n_splits, len(labels) + 1), dtype=int)
        n_words = np.zeros_like(n_sentences)
        folds = np.empty(len(rows), dtype=int)
        smallest, n_larger = divmod(len(rows), self.n_splits)
        for i in in_turn:
            sizes = n_sentences[:, -1]
            is_full = sizes >= smallest + ((sizes > smallest).sum() < n_larger)
            # Sizes before words: folds that drift apart fill up before the last labels are placed.
            keys = n_words[:, rarest[i]], *n_sentences[:, has[i]].T[::-1], is_full
            folds[i] = fold = np.lexsort(keys)[0]
            n_sentences[fold] += has[i]
            n_words[fold] += words[i]
        for fold in range(self.n_splits):
            yield folds[groups] == fold
