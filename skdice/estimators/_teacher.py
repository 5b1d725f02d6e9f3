"""What a teacher says of rows without labels, checked like any other input."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from .._inputs import describe, is_table, list_items, list_some, table_cells
from ..tasks import Rows, Task, TeacherLabels, check_known_columns

# How far half precision may take the sum of a row from 1.
_ROUNDING = 1e-2


def ask_teacher(
    teacher: Any, task: Task, unlabeled: Any, rows: Sequence[Any], labelled: Rows
) -> TeacherLabels:
    """Return what a fitted estimator with the classes of y says of rows without labels."""
    for name in ("classes_", "predict", "predict_proba"):
        if not hasattr(teacher, name):
            raise TypeError(
                f"teacher must be a fitted estimator with classes_, predict and predict_proba; got "
                f"{describe(teacher)}, which has no {name}."
            )
    is_multilabel = getattr(labelled.y, "names", None) is not None
    is_tagger = task.info.is_tagger
    classes = list_items(teacher.classes_) or []
    wanted = np.asarray(task.facts(labelled).classes).tolist()
    if is_multilabel and all(np.array_equal(part, (0, 1)) for part in classes):
        classes = list(range(len(classes)))  # MultiOutputClassifier has 0 and 1 for each column.
    classes = [name if isinstance(name, Hashable) else repr(name) for name in classes]
    if len(classes) != len(wanted) or set(classes) != set(wanted):
        raise ValueError(
            f"teacher must have the classes of y, {list_some(wanted)}; it has {list_some(classes)}."
        )
    if hasattr(teacher, "internals"):  # An estimator of skdice reads each row once for both.
        labels, p = teacher.internals.predict_scored(unlabeled)
    else:
        labels, p = teacher.predict(unlabeled), teacher.predict_proba(unlabeled)
    try:
        predicted = task.read_y(labels, rows)
        if is_multilabel and predicted.names is not None:
            check_known_columns(predicted.names.tolist(), classes)
    except (TypeError, ValueError) as error:
        raise type(error)(f"What teacher predicts is read as y is. {error}") from error
    if (getattr(predicted, "names", None) is not None) != is_multilabel:
        raise ValueError("teacher must predict a matrix of labels if, and only if, y is one.")
    if not is_multilabel:
        for i, row in enumerate(predicted if is_tagger else predicted.values[:, None]):
            if unknown := set(row) - set(classes):
                raise ValueError(
                    f"teacher must predict its classes, {list_some(classes)}; for row {i} of "
                    f"unlabeled it predicts {list_some(sorted(unknown))}."
                )
    parts = [getattr(part, "shape", None) for part in p] if isinstance(p, list) else []
    if is_multilabel and parts == [(len(rows), 2)] * len(classes):
        p = np.stack([part[:, 1] for part in p], axis=1)  # As MultiOutputClassifier has them.
    shapes = [(len(row), len(classes)) if is_tagger else (len(classes),) for row in rows]
    return TeacherLabels(classes, predicted, _read_probabilities(p, shapes, not is_multilabel))


def _read_probabilities(p: Any, shapes: Sequence[tuple[int, ...]], adds_up: bool) -> Any:
    """Return the probabilities of each row as arrays of these shapes, one if all are alike."""
    given = list(table_cells(p)) if is_table(p) else list_items(p)
    if given is None or len(given) != len(shapes):
        got = describe(p) if given is None else f"{len(given)} rows"
        raise ValueError(
            f"predict_proba of teacher must have {len(shapes)} rows, as unlabeled has; got {got}."
        )
    rows = []
    for i, (row, shape) in enumerate(zip(given, shapes)):
        try:
            values = np.asarray(row, dtype=np.float64)
            # A sentence without words may have any array without numbers.
            is_good = values.shape == shape or not values.size + math.prod(shape)
            p_row = values.reshape(shape).clip(0, 1)
            is_good &= bool((np.abs(p_row - values.reshape(shape)) < 1e-6).all())
            is_good &= not adds_up or bool((np.abs(p_row.sum(-1) - 1) < _ROUNDING).all())
        except (TypeError, ValueError):
            is_good = False
        if not is_good:
            raise ValueError(
                f"predict_proba of teacher must have numbers in [0, 1] of the shape {shape} in row "
                f"{i}{', which add up to 1' if adds_up else ''}; got {describe(row)}."
            )
        rows.append(p_row)
    return np.stack(rows) if len(shapes[0]) == 1 else rows
