"""Precision, recall and F1 of whole entities and of single tags."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import make_scorer

from .._parameters import check_number, check_option
from .._typing import TagSequences
from ._entities import check_scheme, check_tag_sequences, find_entities
from ._row_counts import count_by_label, precision_recall_f1

Score = float | NDArray[np.float64]
Support = int | NDArray[np.int64]


def entity_f1_score(
    y_true: TagSequences,
    y_pred: TagSequences,
    *,
    average: str | None = "micro",
    mode: str | None = None,
    scheme: str | None = None,
    zero_division: float = 0,
) -> Score:
    """Compute the F1 score of whole entities.

    An entity is right if its first word, its last word and its type are.

    Parameters
    ----------
    y_true, y_pred : list, tuple, Series or array of lists of str
        The tags, one list per sentence and one tag per word.
    average : {"micro", "macro", "weighted"} or None, default="micro"
        ``"micro"`` counts entities of all types together, ``"macro"`` is the mean over the types,
        ``"weighted"`` the mean weighted by support. None gives one score per type. The types are
        those of the entities in `y_true` or `y_pred`.
    mode, scheme
        How tags are read, as in :func:`get_entities`.
    zero_division : {0, 1}, default=0
        The score where there are no entities at all.

    Returns
    -------
    float or ndarray of shape (n_types,)
        In [0, 1]. With ``average=None`` in the sorted order of the types.

    Raises
    ------
    TypeError, ValueError
        If a sentence is not a list of tags, a tag no string, empty or not of the strict scheme,
        some tags have a prefix ("B-x", "I-x") and others are those of words, the shapes of `y_true`
        and `y_pred` differ, or an option is unknown.

    See Also
    --------
    entity_precision_recall_fscore_support : Precision and recall as well.
    tag_f1_score : Scores words rather than entities.

    Examples
    --------
    >>> from skdice.metrics import entity_f1_score
    >>> y_true = [["B-PER", "I-PER", "O"], ["B-LOC", "O"]]
    >>> y_pred = [["B-PER", "I-PER", "O"], ["B-ORG", "O"]]
    >>> entity_f1_score(y_true, y_pred)
    0.5
    >>> entity_f1_score(y_true, y_pred, average=None)  # LOC, ORG, PER
    array([0., 0., 1.])
    """
    return entity_precision_recall_fscore_support(
        y_true, y_pred, average=average, mode=mode, scheme=scheme, zero_division=zero_division
    )[2]


def entity_precision_recall_fscore_support(
    y_true: TagSequences,
    y_pred: TagSequences,
    *,
    average: str | None = None,
    mode: str | None = None,
    scheme: str | None = None,
    zero_division: float = 0,
) -> tuple[Score, Score, Score, Support]:
    """Compute precision, recall, F1 score and support of whole entities.

    Parameters
    ----------
    y_true, y_pred, mode, scheme
        As in :func:`entity_f1_score`, errors included.
    average : {"micro", "macro", "weighted"} or None, default=None
        None gives one value per type; the others as in :func:`entity_f1_score`. An average over
        nothing (macro without entities, weighted without entities in `y_true`) is the micro
        average.
    zero_division : {0, 1}, default=0
        Precision of a type that was never predicted, recall of a type that is not in `y_true`,
        and F1 where there are no entities at all.

    Returns
    -------
    precision, recall, f1 : float or ndarray of shape (n_types,)
        In [0, 1]. With ``average=None`` in the sorted order of the types.
    support : int or ndarray of shape (n_types,)
        Number of entities in `y_true`; their total if averaged, as in seqeval (scikit-learn has
        None there).

    Examples
    --------
    >>> from skdice.metrics import entity_precision_recall_fscore_support
    >>> y_true = [["B-PER", "I-PER", "O"], ["B-LOC", "O"]]
    >>> y_pred = [["B-PER", "I-PER", "O"], ["O", "O"]]
    >>> entity_precision_recall_fscore_support(y_true, y_pred)  # LOC, PER
    (array([0., 1.]), array([0., 1.]), array([0., 1.]), array([1, 1]))
    >>> entity_precision_recall_fscore_support(y_true, y_pred, average="macro")
    (0.5, 0.5, 0.5, 2)
    """
    _check_options("entity metrics", average, zero_division)
    _, counts = _count_all(y_true, y_pred, mode, scheme)
    return _average(counts, average, zero_division)


def entity_classification_report(
    y_true: TagSequences,
    y_pred: TagSequences,
    *,
    digits: int = 2,
    output_dict: bool = False,
    mode: str | None = None,
    scheme: str | None = None,
    zero_division: float = 0,
) -> str | dict[str, dict[str, float]]:
    """Tabulate precision, recall, F1 score and support of whole entities, type by type.

    Parameters
    ----------
    y_true, y_pred, mode, scheme, zero_division
        As in :func:`entity_precision_recall_fscore_support`, errors included.
    digits : int, default=2
        Decimals in the text; a dict is not rounded.
    output_dict : bool, default=False
        Return a dict instead of text.

    Returns
    -------
    str or dict
        The layout of seqeval and scikit-learn. The dict maps each type, and then
        ``"micro avg"``, ``"macro avg"`` and ``"weighted avg"``, to a dict with the keys
        ``"precision"``, ``"recall"``, ``"f1-score"`` and ``"support"``.

    Examples
    --------
    >>> from skdice.metrics import entity_classification_report
    >>> y_true = [["B-PER", "I-PER", "O"], ["B-LOC", "O"]]
    >>> y_pred = [["B-PER", "I-PER", "O"], ["O", "O"]]
    >>> print(entity_classification_report(y_true, y_pred))
                  precision    recall  f1-score   support
    <BLANKLINE>
             LOC       0.00      0.00      0.00         1
             PER       1.00      1.00      1.00         1
    <BLANKLINE>
       micro avg       1.00      0.50      0.67         2
       macro avg       0.50      0.50      0.50         2
    weighted avg       0.50      0.50      0.50         2
    <BLANKLINE>
    """
    owner = "entity_classification_report"
    check_number(owner, "digits", digits, low=0, integer=True)
    _check_options(owner, None, zero_division)
    labels, counts = _count_all(y_true, y_pred, mode, scheme)
    columns = (np.asarray(column).tolist() for column in _average(counts, None, zero_division))
    rows = dict(zip(labels, zip(*columns)))
    for average in ("micro", "macro", "weighted"):
        rows[f"{average} avg"] = _average(counts, average, zero_division)
    headers = ("precision", "recall", "f1-score", "support")
    if output_dict:
        return {name: dict(zip(headers, row)) for name, row in rows.items()}

    width = max(map(len, rows))
    lines = [" ".join([" " * width, "", *(f"{header:>9}" for header in headers)]), ""]
    for i, (name, (*scores, support)) in enumerate(rows.items()):
        if i == len(labels):
            lines.append("")
        cells = [f"{score:>9.{digits}f}" for score in scores]
        lines.append(" ".join([name.rjust(width), "", *cells, f"{support:>9}"]))
    return "\n".join([*lines, ""])


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
    y_true, y_pred
        As in :func:`entity_f1_score`, errors included, but for those of how tags are read.
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
    _check_options("tag_f1_score", average, zero_division)
    true_rows, pred_rows = check_tag_sequences(y_true, y_pred)
    true, pred = list(chain.from_iterable(true_rows)), list(chain.from_iterable(pred_rows))
    both = [tag for tag, other in zip(true, pred) if tag == other]
    labels = sorted({*true, *pred})
    counts = [[tags[label] for label in labels] for tags in map(Counter, (both, pred, true))]
    return _average(np.array(counts, dtype=np.int64), average, zero_division)[2]


def _check_options(owner: str, average: str | None, zero_division: float) -> None:
    check_option(owner, "average", average, (None, "micro", "macro", "weighted"))
    check_option(owner, "zero_division", zero_division, (0, 1))


def _count_all(
    y_true: TagSequences, y_pred: TagSequences, mode: str | None, scheme: str | None
) -> tuple[list[str], NDArray[np.int64]]:
    """Return the labels, sorted, and their counts in all sentences, (3, n_labels)."""
    scheme, rows = check_scheme(mode, scheme), []
    both = check_tag_sequences(y_true, y_pred, are_entities=scheme is None)
    for i, (true, pred) in enumerate(zip(*both)):
        actual = {*find_entities(true, scheme, f"row {i} of y_true")}
        rows.append((actual, {*find_entities(pred, scheme, f"row {i} of y_pred")}))
    labels = sorted({entity.label for row in rows for entities in row for entity in entities})
    return labels, count_by_label(rows, labels).sum(axis=0)


def _average(
    counts: NDArray[np.int64], average: str | None, zero_division: float
) -> tuple[Score, Score, Score, Support]:
    """Return precision, recall, F1 and support of counts of shape (3, n_labels)."""
    actual = counts[2]
    support = int(actual.sum())
    nothing_to_average = (average == "macro" and not len(actual)) or (
        average == "weighted" and support == 0
    )
    if average == "micro" or nothing_to_average:
        counts = counts.sum(axis=1, keepdims=True)
    scores: Sequence[Score] = precision_recall_f1(counts, zero_division)
    if average is not None:
        weights = actual if average == "weighted" and support else None
        scores = [float(np.average(score, weights=weights)) for score in scores]
    precision, recall, f1 = scores
    return precision, recall, f1, actual if average is None else support


# Other options by scikit-learn's make_scorer(entity_f1_score, mode="strict", scheme="IOBES").
entity_f1_scorer = make_scorer(entity_f1_score)
tag_f1_scorer = make_scorer(tag_f1_score)
