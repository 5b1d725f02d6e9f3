"""What is said of training rows by fits that have not seen them: what decisions are tuned on."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from .._parameters import parameters_of

# Folds of background_bias="cv" and null_threshold="cv".
N_FOLDS = 5


def out_of_fold_scores(
    estimator: Any,
    X: Any,
    y: Any,
    weight: np.ndarray | None = None,
    groups: Any = None,
    validation: tuple[Any, Any] | None = None,
    n_folds: int = N_FOLDS,
    splits: Sequence[tuple[np.ndarray, np.ndarray]] | None = None,
) -> list[Any]:
    """Return what ``estimator._decision_scores`` is for each row, by a clone that has not seen it.

    Logits have the classes of the estimator, which is fitted; those that a clone does not know get
    the lowest logit there is. Weights, groups and validation are as its ``fit`` takes them. There
    are ``n_folds``, fewer if there are not so many rows, groups of rows, or rows of a class; or
    those of ``splits``, where each row is in one test part. Two folds at least, or a ValueError.
    """
    n_rows = _num_samples(X)
    rows: list[Any] = [None] * n_rows
    groups = estimator._groups(X) if groups is None else groups
    for train, test in splits or _splits(estimator, y, groups, n_rows, n_folds):
        part = clone(estimator).set_params(runtime="torch", **without_folds(estimator))
        extra: dict[str, Any] = {"validation": validation}
        if weight is not None:
            extra["sample_weight"] = weight[train]
        if groups is not None:
            extra["groups"] = [groups[i] for i in train]
        with warnings.catch_warnings():
            # What is wrong with rows, the fit of all rows has said.
            warnings.simplefilter("ignore", UserWarning)
            part.fit(_safe_indexing(X, train), _safe_indexing(y, train), **extra)
            scores = part._decision_scores(_safe_indexing(X, test))
        if hasattr(part, "classes_"):
            scores = _with_all_classes(scores, part.classes_, estimator.classes_)
        for i, score in zip(test, scores):
            rows[i] = score
    return rows


def without_folds(estimator: Any) -> dict[str, Any]:
    """Return parameters with which a fit tunes no decision by "cv"."""
    return {
        name: parameter.in_folds
        for name, parameter in parameters_of(type(estimator)).items()
        if parameter.in_folds is not None and getattr(estimator, name) == "cv"
    }


def _splits(
    estimator: Any, y: Any, groups: Any, n_rows: int, n_folds: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the training and test rows of each fold."""
    by_class = groups is None and estimator._task.is_classifier and np.ndim(y) == 1
    kinds = y if by_class else range(n_rows) if groups is None else groups
    _, number, sizes = np.unique(kinds, return_inverse=True, return_counts=True)
    most, needed = len(sizes), "two rows"
    if groups is not None:
        needed = "rows of two groups"
    elif by_class:
        most, needed = sizes.min(), "two rows of each class"
        if len(sizes) > 2:  # A class may be missing in a fold.
            most, needed = sizes.max(), "two rows of a class"
    if most < 2:
        raise ValueError(f"Out-of-fold predictions need {needed}; got {n_rows} rows.")
    kind = StratifiedKFold if by_class else KFold if groups is None else GroupKFold
    cv = kind(min(n_folds, int(most)), shuffle=True, random_state=estimator._draw_seed())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Of a class with fewer rows than folds.
        return list(cv.split(number, number, number))


def _with_all_classes(scores: list[np.ndarray], known: Any, classes: Any) -> list[np.ndarray]:
    if len(known) == len(classes):
        return scores
    lowest = min((float(row.min()) for row in scores if row.size), default=0.0)
    return [in_columns(row, known.tolist(), classes.tolist(), lowest) for row in scores]


def in_columns(row: np.ndarray, known: list[Any], classes: list[Any], fill: float) -> np.ndarray:
    """Return scores of some classes among those of all, which are filled up."""
    whole = np.full((*row.shape[:-1], len(classes)), fill, dtype=row.dtype)
    whole[..., [classes.index(name) for name in known]] = row
    return whole


def check_partition(splits: Sequence[Any], n_rows: int, owner: str) -> None:
    """Raise a ValueError unless each row is in one test part."""
    counts = np.bincount([row for _, test in splits for row in test], minlength=n_rows)
    for row in np.flatnonzero(counts != 1)[:1]:
        raise ValueError(
            f"{owner} only works for partitions: every row in exactly one test part of cv; row "
            f"{row} is in {counts[row]}."
        )
