"""Out-of-fold probabilities, also of estimators whose rows have different lengths."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from .._inputs import check_sample_weight, indexable_rows, is_table, list_items, table_cells
from .._pipeline import weight_parameter
from ..estimators._rows import object_array

_Split = tuple[np.ndarray, np.ndarray]
_MAX_LISTED = 5


def cross_val_predict_proba(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    cv: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> np.ndarray:
    """Return the class probabilities of every row by a fit that has not seen it.

    As ``sklearn.model_selection.cross_val_predict(..., method="predict_proba")``, and for taggers
    too, whose rows have different lengths.

    Parameters
    ----------
    estimator : estimator with ``predict_proba``
        A tagger, a classifier, also of scikit-learn, or a Pipeline that ends in one. A clone is
        fitted for each fold.
    X : sequence of length n_rows
        What the estimator takes.
    y : sequence of length n_rows
        Tags or labels.
    groups : array-like of shape (n_rows,), optional
        For splitters by group.
    cv : int, splitter or iterable of (train, test), default=None
        As in scikit-learn: None is 5 folds; a number of folds is a ``StratifiedKFold`` for
        classifiers and a ``KFold`` otherwise. For taggers :class:`StratifiedTagKFold` keeps rare
        tags in every fold.
    sample_weight : array-like of shape (n_rows,), optional
        For the fits. In a Pipeline it goes to the last step.
    n_jobs : int, optional
        Folds that are fitted at the same time, by joblib.
    verbose : int, default=0
        Of joblib; the bars of training are the estimator's.

    Returns
    -------
    ndarray of shape (n_rows, n_classes), or (n_rows,) of object
        Of a tagger an array of shape (n_words, n_classes) for each row. Columns are the classes of
        the folds in sorted order, which is ``estimator.fit(X, y).classes_``, or without a fit
        ``sorted({tag for row in y for tag in row})`` and ``np.unique(y)`` (of the rows with a
        weight). A class that a fold's training part does not have is 0 in its test part.

    Raises
    ------
    TypeError
        If `estimator` has no ``predict_proba``, or it returns a list for several outputs.
    ValueError
        If `y` is None, the test parts of `cv` do not partition the rows, or the training part of a
        fold has only one tag or label; nothing is fitted then.

    Warns
    -----
    RuntimeWarning
        If the training part of a fold lacks a class; it names fold and classes.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdice.model_selection import cross_val_predict_proba
    >>> X, y = [[0.0], [1.0], [0.2], [0.9]], ["no", "yes", "no", "yes"]
    >>> cross_val_predict_proba(LogisticRegression(C=100), X, y, cv=2).argmax(axis=1)
    array([0, 1, 0, 1])

    >>> proba = cross_val_predict_proba(tagger, X, y, cv=StratifiedTagKFold())  # doctest: +SKIP
    >>> proba[0].shape  # doctest: +SKIP
    (7, 9)
    """
    if isinstance(estimator, type) or not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"cross_val_predict_proba takes an estimator with predict_proba; got {estimator!r}."
        )
    if y is None:
        raise ValueError("cross_val_predict_proba needs y, the tags or labels. Got y=None.")
    X, y, groups = indexable(*map(indexable_rows, (X, y)), groups)
    n_rows = _num_samples(y)
    weight = check_sample_weight(sample_weight, n_rows)
    cv = check_cv(cv, y, classifier=is_classifier(estimator))
    splits = [
        (_row_numbers(train, n_rows), _row_numbers(test, n_rows))
        for train, test in cv.split(X, y, groups)
    ]
    _check_partition([test for _, test in splits], n_rows)
    _check_training_parts(splits, y, weight)
    parameter = weight_parameter(estimator)
    results = Parallel(n_jobs=n_jobs, verbose=verbose)(
        delayed(_fit_and_predict)(
            clone(estimator),
            X,
            y,
            split,
            {} if weight is None else {parameter: weight[split[0]]},
            f"fold {fold} of {len(splits)}",
        )
        for fold, split in enumerate(splits)
    )
    return _join(
        [test for _, test in splits],
        [proba for _, proba in results],
        [classes for classes, _ in results],
    )


def _row_numbers(part: Any, n_rows: int) -> np.ndarray:
    """Return the rows of a part of a split, which may also be a list, or a mask of all rows."""
    rows = np.asarray(part)
    if rows.dtype == bool and rows.shape == (n_rows,):
        return np.flatnonzero(rows)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ValueError(
            f"The parts of cv must be row numbers (int), or masks of {n_rows} rows (bool); got an "
            f"array of {rows.dtype} and shape {rows.shape}."
        )
    return rows.astype(np.int64)


def _check_partition(tests: Sequence[np.ndarray], n_rows: int) -> None:
    """Raise a ValueError unless every row is in exactly one test part."""
    if not tests:
        raise ValueError("cv must have at least one split; got none.")
    rows = np.concatenate(tests)
    outside = (rows < 0) | (rows >= n_rows)
    if outside.any():
        raise ValueError(
            f"The test parts of cv must have row numbers in 0..{n_rows - 1}; got "
            f"{rows[outside][0]}."
        )
    counts = np.bincount(rows, minlength=n_rows)
    wrong = np.flatnonzero(counts != 1)
    if len(wrong):
        raise ValueError(
            f"cross_val_predict_proba only works for partitions: every row must be in exactly one "
            f"test part of cv; row {wrong[0]} is in {counts[wrong[0]]}."
        )


def _check_training_parts(splits: Sequence[_Split], y: Any, weight: np.ndarray | None) -> None:
    """Raise a ValueError if there is only one tag or label to learn from in some fold."""
    are_sentences = isinstance(y, np.ndarray) and y.dtype.kind in "OU"  # All of one length.
    if is_table(y) and not are_sentences:
        if y.shape[1] != 1:
            return  # An indicator matrix: what its columns need, the estimator says.
        y = table_cells(y)[:, 0]
    listed = list_items(y) or []
    inner = [list_items(row) for row in listed]
    rows = [_plain([label] if row is None else row) for label, row in zip(listed, inner)]
    what = "label" if all(row is None for row in inner) else "tag"
    every = set().union(*rows)
    for fold, (train, _) in enumerate(splits):
        used = train if weight is None else train[weight[train] > 0]
        found = set().union(*(rows[i] for i in used))
        if len(found) > 1:
            continue
        has = f"only the {what} {next(iter(found))!r}" if found else f"no {what}"
        raise ValueError(
            f"The training part of fold {fold} of {len(splits)} (counted from 0) has {has}; at "
            f"least two are needed. Missing: {_list_some(every - found) or 'others'}. Use fewer "
            f"folds, or shuffled or stratified ones."
        )


def _plain(labels: list[Any]) -> set[Any]:
    """Return distinct labels as Python values, which errors show as they are."""
    return {label.item() if isinstance(label, np.generic) else label for label in labels}


def _fit_and_predict(
    estimator: Any, X: Any, y: Any, split: _Split, fit_params: dict[str, Any], fold: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes and the probabilities of the test part of one fold."""
    train, test = split
    try:
        estimator.fit(_safe_indexing(X, train), _safe_indexing(y, train), **fit_params)
        proba = estimator.predict_proba(_safe_indexing(X, test))
    except Exception as error:
        error.add_note(f"This was {fold} (counted from 0) in cross_val_predict_proba.")
        raise
    if isinstance(proba, list):
        raise TypeError(
            f"cross_val_predict_proba takes estimators with one output; predict_proba of "
            f"{estimator!r} returns a list of {len(proba)} arrays. See "
            f"sklearn.model_selection.cross_val_predict."
        )
    return estimator.classes_, proba


def _join(
    tests: Sequence[np.ndarray], probas: Sequence[np.ndarray], classes: Sequence[np.ndarray]
) -> np.ndarray:
    """Put the probabilities of all folds into the order of the rows."""
    labels = [fold_classes.tolist() for fold_classes in classes]
    if any(fold_labels != labels[0] for fold_labels in labels):
        _warn_about_missing(labels)
        probas = _aligned(probas, labels)
    order = np.argsort(np.concatenate(tests))
    if probas[0].dtype != object:
        return np.concatenate(probas)[order]
    rows = [row for proba in probas for row in proba]
    return object_array([rows[i] for i in order])


def _warn_about_missing(labels: Sequence[list[Any]]) -> None:
    every = set().union(*labels)
    fold = next(i for i, fold_labels in enumerate(labels) if len(fold_labels) < len(every))
    n_folds = sum(len(fold_labels) < len(every) for fold_labels in labels)
    warnings.warn(
        f"The training parts of {n_folds} of {len(labels)} folds lack some classes, which are 0 "
        f"there: fold {fold} (counted from 0) has no {_list_some(every - set(labels[fold]))}. "
        f"Stratified folds avoid this.",
        RuntimeWarning,
        stacklevel=4,
    )


def _aligned(probas: Sequence[np.ndarray], labels: Sequence[list[Any]]) -> list[np.ndarray]:
    """Return the probabilities of each fold with a column for the classes of all folds."""
    column = {label: i for i, label in enumerate(sorted(set().union(*labels)))}
    aligned = []
    for proba, fold_labels in zip(probas, labels):
        columns = [column[label] for label in fold_labels]
        if proba.dtype == object:
            spread = object_array([_spread(row, columns, len(column)) for row in proba])
        else:
            spread = _spread(proba, columns, len(column))
        aligned.append(spread)
    return aligned


def _spread(proba: np.ndarray, columns: Sequence[int], n_classes: int) -> np.ndarray:
    """Return the columns at other positions of a wider array, (n_items, n_classes)."""
    wide = np.zeros((len(proba), n_classes), dtype=proba.dtype)
    wide[:, columns] = proba
    return wide


def _list_some(labels: set[Any]) -> str:
    shown = ", ".join(sorted(map(repr, labels))[:_MAX_LISTED])
    return shown + (", ..." if len(labels) > _MAX_LISTED else "")
