"""Scores of named entity recognition, in which an entity is right or wrong as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._parameters import check_number, check_option
from .._typing import TagSequences
from ._averaging import AVERAGES, ZERO_DIVISIONS, LabelCounts, Score, average_scores
from ._bootstrap import check_confidence, interval, resampled_sums
from ._entities import EntitySpan, check_scheme, find_entities
from ._validation import check_tag_sequences

# The actual and the predicted entities of a sentence.
_Row: TypeAlias = tuple[set[EntitySpan], set[EntitySpan]]
_N_RESAMPLES = 1000


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
    mode : {None, "strict"}, default=None
        How tags are read, see :func:`get_entities`.
    scheme : {"IOB1", "IOB2", "IOBES", "BIOES", "BMES", "BILOU"}, default=None
        The tagging scheme, with ``mode="strict"`` only.
    zero_division : {0, 1}, default=0
        The score where there are no entities at all.

    Returns
    -------
    float or ndarray of shape (n_types,)
        In [0, 1]. With ``average=None`` in the sorted order of the types.

    Raises
    ------
    TypeError
        If a sentence is not a list of tags, or a tag not a string.
    ValueError
        If the shapes of `y_true` and `y_pred` differ, an option is unknown, or a tag does not
        belong to the strict scheme.

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
) -> tuple[Score, Score, Score, int | NDArray[np.int64]]:
    """Compute precision, recall, F1 score and support of whole entities.

    Parameters
    ----------
    y_true, y_pred : list, tuple, Series or array of lists of str
        The tags, one list per sentence and one tag per word.
    average : {"micro", "macro", "weighted"} or None, default=None
        None gives one value per type; the others as in :func:`entity_f1_score`. An average over
        nothing (macro without entities, weighted without entities in `y_true`) is the micro
        average.
    mode : {None, "strict"}, default=None
        How tags are read, see :func:`get_entities`.
    scheme : {"IOB1", "IOB2", "IOBES", "BIOES", "BMES", "BILOU"}, default=None
        The tagging scheme, with ``mode="strict"`` only.
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

    Raises
    ------
    TypeError
        If a sentence is not a list of tags, or a tag not a string.
    ValueError
        If the shapes of `y_true` and `y_pred` differ, an option is unknown, or a tag does not
        belong to the strict scheme.

    See Also
    --------
    entity_classification_report : The same numbers as a table.

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
    check_option("entity metrics", "average", average, AVERAGES)
    check_option("entity metrics", "zero_division", zero_division, ZERO_DIVISIONS)
    counts = _count_entities(y_true, y_pred, mode, scheme)
    return average_scores(counts, average, zero_division)


def entity_classification_report(
    y_true: TagSequences,
    y_pred: TagSequences,
    *,
    digits: int = 2,
    output_dict: bool = False,
    mode: str | None = None,
    scheme: str | None = None,
    zero_division: float = 0,
    confidence_level: float | None = None,
) -> str | dict[str, dict[str, float]]:
    """Tabulate precision, recall, F1 score and support of whole entities, type by type.

    Parameters
    ----------
    y_true, y_pred : list, tuple, Series or array of lists of str
        The tags, one list per sentence and one tag per word.
    digits : int, default=2
        Decimals in the text; a dict is not rounded.
    output_dict : bool, default=False
        Return a dict instead of text.
    mode : {None, "strict"}, default=None
        How tags are read, see :func:`get_entities`.
    scheme : {"IOB1", "IOB2", "IOBES", "BIOES", "BMES", "BILOU"}, default=None
        The tagging scheme, with ``mode="strict"`` only.
    zero_division : {0, 1}, default=0
        As in :func:`entity_precision_recall_fscore_support`.
    confidence_level : float, optional
        Adds an interval of F1 over sentences, 0.95 for one of 95 %; see :func:`bootstrap_interval`.

    Returns
    -------
    str or dict
        The layout of seqeval and scikit-learn. The dict maps each type, and then
        ``"micro avg"``, ``"macro avg"`` and ``"weighted avg"``, to a dict with the keys
        ``"precision"``, ``"recall"``, ``"f1-score"`` and ``"support"`` and, if there is an
        interval, ``"f1-score low"`` and ``"f1-score high"``.

    Raises
    ------
    TypeError
        If a sentence is not a list of tags, or a tag not a string.
    ValueError
        If the shapes of `y_true` and `y_pred` differ, an option is unknown, or a tag does not
        belong to the strict scheme.

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
    check_option(owner, "zero_division", zero_division, ZERO_DIVISIONS)
    check_confidence(owner, confidence_level, optional=True)
    rows = list(_entities_of_rows(y_true, y_pred, mode, scheme))
    counts = _count(rows)
    report = _tabulate(counts, zero_division)
    if confidence_level is not None:
        lows, highs = _f1_intervals(rows, counts.labels, zero_division, confidence_level)
        for name, low, high in zip(report, lows.tolist(), highs.tolist()):
            report[name] |= {"f1-score low": low, "f1-score high": high}
    if output_dict:
        return report

    width = max(map(len, report))
    headers = ["precision", "recall", "f1-score"]
    if confidence_level is not None:
        headers.append(f"{100 * confidence_level:g} % interval")
    lines = [" ".join([" " * width, "", *(f"{name:>9}" for name in [*headers, "support"])]), ""]
    for i, (name, scores) in enumerate(report.items()):
        if i == len(counts.labels):
            lines.append("")
        cells = [f"{scores[header]:>9.{digits}f}" for header in headers[:3]]
        if confidence_level is not None:
            ends = f"{scores['f1-score low']:.{digits}f}-{scores['f1-score high']:.{digits}f}"
            cells.append(ends.rjust(len(headers[3])))
        lines.append(" ".join([name.rjust(width), "", *cells, f"{scores['support']:>9}"]))
    return "\n".join([*lines, ""])


def _tabulate(counts: LabelCounts, zero_division: float) -> dict[str, dict[str, float]]:
    """Return the scores of each type, and then of each average, by name."""
    columns = (
        np.asarray(column).tolist() for column in average_scores(counts, None, zero_division)
    )
    rows = dict(zip(counts.labels, zip(*columns)))
    for average in ("micro", "macro", "weighted"):
        rows[f"{average} avg"] = average_scores(counts, average, zero_division)
    header = ("precision", "recall", "f1-score", "support")
    return {name: dict(zip(header, row)) for name, row in rows.items()}


def _f1_intervals(
    rows: list[_Row], labels: list[str], zero_division: float, confidence_level: float
) -> NDArray[np.float64]:
    """Return the ends of the intervals of F1 of each type and average, (2, n_names)."""
    counts = np.zeros((max(1, len(rows)), 3, len(labels)))
    number = {label: k for k, label in enumerate(labels)}
    for row, (true, pred) in zip(counts, rows):
        for part, entities in zip(row, (true & pred, pred, true)):
            for entity in entities:
                part[number[entity.label]] += 1
    sums = resampled_sums(counts.reshape(len(counts), -1), _N_RESAMPLES, 0).astype(np.int64)
    resamples = (LabelCounts(labels, *parts) for parts in sums.reshape(len(sums), 3, -1))
    tables = (_tabulate(resample, zero_division).values() for resample in resamples)
    return interval(
        np.array([[scores["f1-score"] for scores in table] for table in tables]), confidence_level
    )


def _count_entities(
    y_true: TagSequences, y_pred: TagSequences, mode: str | None, scheme: str | None
) -> LabelCounts:
    return _count(_entities_of_rows(y_true, y_pred, mode, scheme))


def _entities_of_rows(
    y_true: TagSequences, y_pred: TagSequences, mode: str | None, scheme: str | None
) -> Iterator[_Row]:
    """Yield the actual and the predicted entities of each sentence."""
    strict_scheme = check_scheme(mode, scheme)
    for row, (true_tags, pred_tags) in enumerate(zip(*check_tag_sequences(y_true, y_pred))):
        yield (
            {*find_entities(true_tags, strict_scheme, f"row {row} of y_true")},
            {*find_entities(pred_tags, strict_scheme, f"row {row} of y_pred")},
        )


def _count(rows: Iterable[_Row]) -> LabelCounts:
    correct: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    actual: Counter[str] = Counter()
    for true, pred in rows:
        actual.update(entity.label for entity in true)
        predicted.update(entity.label for entity in pred)
        correct.update(entity.label for entity in true & pred)
    return LabelCounts.from_mappings(correct, predicted, actual)
