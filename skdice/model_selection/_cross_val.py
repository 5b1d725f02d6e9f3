"""Out-of-fold probabilities, also of taggers, whose rows have different lengths."""

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import BaseCrossValidator, check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from .._inputs import indexable_rows, list_some, object_array
from .._typing import Labels
from ..exceptions import told_once, warn
from ..tasks import in_columns

# The number of folds, a splitter, or (train, test) of each fold.
CrossValidator: TypeAlias = int | BaseCrossValidator | Iterable[Any] | None


@told_once()
def cross_val_predict_proba(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    *,
    groups: Labels | None = None,
    cv: CrossValidator = None,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Return the class probabilities of every row by a fit that has not seen it.

    As ``sklearn.model_selection.cross_val_predict``, and for taggers too, whose rows have different
    lengths.

    Parameters
    ----------
    estimator : estimator with ``predict_proba``
        A tagger, a classifier, also of scikit-learn, or a Pipeline that ends in one.
    X, y : sequences of length n_rows
        What the estimator takes.
    groups : array-like of shape (n_rows,), optional
        For splitters by group.
    cv : int, splitter or iterable of (train, test), default=None
        As in scikit-learn: None is 5 folds. For taggers :class:`StratifiedTagKFold` keeps rare tags
        in every fold.
    n_jobs : int, optional
        Folds that are fitted at the same time, by joblib.

    Returns
    -------
    ndarray of shape (n_rows, n_classes), or (n_rows,) of object
        A tagger gives an array of shape (n_words, n_classes) for each row. Columns are
        ``estimator.fit(X, y).classes_``: with several labels the columns of y, else the classes in
        sorted order. A class that a fold's training part does not have is 0 in its test part, with
        a RuntimeWarning.

    Raises
    ------
    TypeError, ValueError
        If `estimator` has no ``predict_proba``, `y` is None, or the test parts of `cv` do not
        partition the rows.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdice.model_selection import cross_val_predict_proba
    >>> X, y = [[0.0], [1.0], [0.2], [0.9]], ["no", "yes", "no", "yes"]
    >>> cross_val_predict_proba(LogisticRegression(C=100), X, y, cv=2).argmax(axis=1)
    array([0, 1, 0, 1])
    """
    if isinstance(estimator, type) or not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"cross_val_predict_proba takes an estimator with predict_proba; got {estimator!r}."
        )
    if y is None:
        raise ValueError("cross_val_predict_proba needs y, the tags or labels. Got y=None.")
    X, y, groups = indexable(indexable_rows(X), indexable_rows(y), groups)
    n_rows = _num_samples(y)
    parts = check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y, groups)
    # Parts may be masks or lists.
    splits = [tuple(np.arange(n_rows)[part] for part in split) for split in parts]
    counts = np.bincount([row for _, test in splits for row in test], minlength=n_rows)
    for row in np.flatnonzero(counts != 1)[:1]:
        raise ValueError(
            f"cross_val_predict_proba only works for partitions: every row in exactly one test "
            f"part of cv; row {row} is in {counts[row]}."
        )
    results = Parallel(n_jobs=n_jobs)(
        delayed(_fit_and_predict)(clone(estimator), X, y, train, test) for train, test in splits
    )
    every = results[0][0]  # Several labels are in the order of the columns of y.
    if any(classes != every for classes, _ in results):
        every = sorted(set().union(*(classes for classes, _ in results)))
    rows: list[Any] = [None] * n_rows
    lacking = [fold for fold, (classes, _) in enumerate(results) if len(classes) < len(every)]
    for (classes, found), (_, test) in zip(results, splits):
        for i, known in zip(test, found):
            rows[i] = in_columns(known, classes, every, 0.0)
    if lacking:
        known = results[lacking[0]][0]
        warn(
            f"The training parts of {len(lacking)} of {len(splits)} folds lack some classes, which "
            f"are 0 there: fold {lacking[0]} (counted from 0) has no "
            f"{list_some([name for name in every if name not in known])}. Stratified folds avoid "
            f"this.",
            RuntimeWarning,
        )
    return np.stack(rows) if results[0][1].dtype != object else object_array(rows)


def _fit_and_predict(
    estimator: BaseEstimator, X: Any, y: Any, train: np.ndarray, test: np.ndarray
) -> tuple[list[Any], np.ndarray]:
    """Return the classes and the probabilities of the test part of a fold."""
    estimator.fit(_safe_indexing(X, train), _safe_indexing(y, train))
    proba: np.ndarray = estimator.predict_proba(_safe_indexing(X, test))
    return np.asarray(estimator.classes_).tolist(), proba
