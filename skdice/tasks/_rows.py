"""The rows of a fit: read, weighted and split."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.utils.validation import _num_samples

from .._inputs import check_groups, check_sample_weight, describe, number_distinct
from .._typing import Splits, T
from ..exceptions import hidden

# A sentence of words or tags, or one or two texts.
Row: TypeAlias = Sequence[str]
# A class of a classifier, a tag or a type of entities.
Label: TypeAlias = str | int | float
# Labels of all rows, with the probability of each; a row may have several.
Labelled: TypeAlias = Sequence[tuple[Any, np.ndarray]]


@dataclass(frozen=True, eq=False)
class ClassLabels:
    """Checked labels of rows: one of each, or a matrix of 0 and 1 with names of its columns."""

    values: np.ndarray  # (n_rows,), or (n_rows, n_labels) of 0 and 1
    names: np.ndarray | None  # of the labels of a 0/1 matrix

    def take(self, index: np.ndarray) -> "ClassLabels":
        return ClassLabels(self.values[index], self.names)

    def join(self, other: "ClassLabels") -> "ClassLabels":
        return ClassLabels(np.concatenate([self.values, other.values]), self.names)


@dataclass(frozen=True, eq=False)
class TeacherLabels:
    """The labels and probabilities that a fitted estimator predicts, with its classes."""

    classes: Sequence[Label]
    predicted: Any  # as read_y of the task returns it
    p: Any  # (n_rows, n_classes), or (n_words, n_classes) for each sentence


@dataclass(frozen=True)
class Rows:
    """Checked rows of X with their labels."""

    X: Sequence[Any]
    y: Any  # a list, or an object with ``take`` and ``join``
    weight: np.ndarray | None  # of each row
    groups: Sequence[Any] | None  # rows of one group are in the same part of a split
    number: np.ndarray  # the place of each row among those that the user gave

    def __len__(self) -> int:
        return len(self.X)

    @property
    def strata(self) -> np.ndarray | None:
        """The class of each row as a number, if each has one class."""
        if not isinstance(self.y, ClassLabels) or self.y.names is not None:
            return None
        return np.asarray(np.unique(self.y.values, return_inverse=True)[1])

    @property
    def group_numbers(self) -> np.ndarray | None:
        """The group of each row as a number, if there are groups."""
        return None if self.groups is None else number_distinct(self.groups)[0]

    def take(self, index: np.ndarray) -> "Rows":
        return Rows(
            take(self.X, index),
            self.y.take(index) if hasattr(self.y, "take") else take(self.y, index),
            None if self.weight is None else self.weight[index],
            None if self.groups is None else take(self.groups, index),
            self.number[index],
        )

    def join(self, other: "Rows") -> "Rows":
        """Return these rows and others, which are in no group."""
        weights = [np.ones(len(x)) if x.weight is None else x.weight for x in (self, other)]
        return Rows(
            [*self.X, *other.X],
            self.y.join(other.y) if hasattr(self.y, "join") else [*self.y, *other.y],
            np.concatenate(weights).astype(np.float32),
            None,
            np.concatenate([self.number, other.number]),
        )

    def distinct(self) -> "Rows":
        """Return each distinct row of a classifier once; its weight is the sum of its copies'."""
        groups = [None] * len(self) if self.groups is None else self.groups
        keys = zip(self.X, map(repr, self.y.values.tolist()), map(repr, groups))
        number, distinct = number_distinct(keys)
        if len(distinct) == len(self):
            return self
        _, first = np.unique(number, return_index=True)
        total = np.bincount(number, self.weight).astype(np.float32)
        return replace(self.take(first), weight=total)

    def used(self, kept: np.ndarray | None = None) -> "Rows":
        """Return the rows that were kept and have a weight above 0."""
        if kept is None and self.weight is None:
            return self
        kept = np.arange(len(self)) if kept is None else kept
        return self.take(kept if self.weight is None else kept[self.weight[kept] > 0])


def take(rows: Sequence[T], index: np.ndarray) -> list[T]:
    return [rows[i] for i in index]


def split_rows(
    n_rows: int,
    fraction: float,
    rng: np.random.Generator,
    classes: np.ndarray | None = None,
    groups: Sequence[Any] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and those to validate on.

    ``classes``, ints of shape (n_rows,), have equal shares in both parts, and the training part has
    all of them. If there are several groups, the rows of a group are in the same part, and classes
    do not matter. It is a ValueError if no row is left to train on, or no class has two rows.
    """
    if groups is not None and len(set(groups)) > 1:
        group, _ = number_distinct(groups)
        train, valid = split_rows(group.max() + 1, fraction, rng)
        return np.flatnonzero(np.isin(group, train)), np.flatnonzero(np.isin(group, valid))
    n_valid = max(1, round(fraction * n_rows))
    if n_valid >= n_rows:
        raise ValueError(
            f"validation_fraction={fraction!r} leaves no row to train on; got {n_rows} rows."
        )
    order = rng.permutation(n_rows)
    if classes is None:
        valid = order[:n_valid]
    else:
        order = order[np.argsort(classes[order], kind="stable")]
        free = order[np.diff(classes[order], prepend=-1) == 0]
        n_valid = min(n_valid, len(free))
        if not n_valid:
            raise ValueError(
                f"validation_fraction={fraction!r} needs a class with two rows or more; got one "
                f"row of each class."
            )
        # Equal steps through the rows, which are sorted by class.
        valid = free[((np.arange(n_valid) + rng.random()) * len(free) / n_valid).astype(int)]
    return np.setdiff1d(np.arange(n_rows), valid), np.sort(valid)


def split_folds(rows: Rows, n_folds: int, seed: int) -> Splits:
    """Return the training and test rows of each fold, split by groups or else by classes."""
    kinds: Iterable[Any] = range(len(rows))
    kind, needed = KFold, "two rows"
    if rows.groups is not None:
        kind, needed, kinds = GroupKFold, "rows of two groups", rows.groups
    elif (strata := rows.strata) is not None:
        kind, needed, kinds = StratifiedKFold, "two rows of each class", strata
    number, distinct = number_distinct(kinds)
    most = len(distinct)
    if kind is StratifiedKFold:
        sizes = np.bincount(number)
        most = int(sizes.min())
        if len(sizes) > 2:  # A class may be missing in a fold.
            most, needed = int(sizes.max()), "two rows of a class"
    if most < 2:
        raise ValueError(f"Out-of-fold predictions need {needed}; got {len(rows)} rows.")
    cv = kind(min(n_folds, most), shuffle=True, random_state=seed)
    # A class may have fewer rows than there are folds.
    with hidden(UserWarning):
        return list(cv.split(number, number, number))


def in_columns(
    row: np.ndarray, known: Sequence[Label], classes: Sequence[Label], fill: float
) -> np.ndarray:
    """Return scores of some classes as scores of all classes, with ``fill`` for the others."""
    whole = np.full((*row.shape[:-1], len(classes)), fill, dtype=row.dtype)
    whole[..., [classes.index(name) for name in known]] = row
    return whole


def read_fit_rows(
    X: Any, groups: Any, validation: Any
) -> tuple[list[Any] | None, tuple[Any, Any, np.ndarray | None] | None]:
    """Return checked groups of the rows to train on, and X, y and weights to validate on."""
    groups = None if groups is None else check_groups(groups, _num_samples(X))
    if validation is None:
        return groups, None
    if not isinstance(validation, tuple) or len(validation) not in (2, 3):
        raise ValueError(
            f"validation must be a tuple (X, y) or (X, y, sample_weight); got "
            f"{describe(validation)}."
        )
    X_valid, y_valid, weight = (*validation, None)[:3]
    if not _num_samples(X_valid):
        raise ValueError("validation must have a row to validate on; got none.")
    try:
        weight = check_sample_weight(weight, _num_samples(X_valid))
    except ValueError as error:
        raise ValueError(f"For the rows to validate on: {error}") from error
    return groups, (X_valid, y_valid, weight)
