"""Scores of single tags, word by word."""

from __future__ import annotations

from collections import Counter
from itertools import chain

from .._parameters import check_option
from .._typing import TagSequences
from ._averaging import AVERAGES, ZERO_DIVISIONS, LabelCounts, Score, average_scores
from ._validation import check_tag_sequences


def tag_f1_score(
    y_true: TagSequences,
    y_pred: TagSequences,
    *,
    average: str | None = "micro",
    zero_division: float = 0,
) -> Score:
    """Compute the F1 score of the tags of all words.

    Every tag is a class, ``"O"`` and prefixes included, as in part-of-speech tagging.

    Parameters
    ----------
    y_true, y_pred : list, tuple, Series or array of lists of str
        The tags, one list per sentence and one tag per word.
    average : {"micro", "macro", "weighted"} or None, default="micro"
        ``"micro"`` is the accuracy over all words, ``"macro"`` the mean over the tags,
        ``"weighted"`` the mean weighted by support. None gives one score per tag. The tags are
        those in `y_true` or `y_pred`.
    zero_division : {0, 1}, default=0
        The score where there are no words at all.

    Returns
    -------
    float or ndarray of shape (n_tags,)
        In [0, 1]. With ``average=None`` in the sorted order of the tags.

    Raises
    ------
    TypeError
        If a sentence is not a list of tags, or a tag not a string.
    ValueError
        If the shapes of `y_true` and `y_pred` differ, an option is unknown, or a tag is empty.

    See Also
    --------
    entity_f1_score : Scores whole entities rather than words.

    Examples
    --------
    >>> from skdice.metrics import tag_f1_score
    >>> y_true = [["DET", "NOUN"], ["NOUN", "VERB"]]
    >>> y_pred = [["DET", "NOUN"], ["VERB", "VERB"]]
    >>> tag_f1_score(y_true, y_pred)
    0.75
    >>> tag_f1_score(y_true, y_pred, average=None)  # DET, NOUN, VERB
    array([1.        , 0.66666667, 0.66666667])
    """
    check_option("tag_f1_score", "average", average, AVERAGES)
    check_option("tag_f1_score", "zero_division", zero_division, ZERO_DIVISIONS)
    true_rows, pred_rows = check_tag_sequences(y_true, y_pred)
    pairs = Counter(zip(chain.from_iterable(true_rows), chain.from_iterable(pred_rows)))
    correct: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    actual: Counter[str] = Counter()
    for (true_tag, pred_tag), count in pairs.items():
        actual[true_tag] += count
        predicted[pred_tag] += count
        if true_tag == pred_tag:
            correct[true_tag] = count
    counts = LabelCounts.from_mappings(correct, predicted, actual)
    return average_scores(counts, average, zero_division)[2]
