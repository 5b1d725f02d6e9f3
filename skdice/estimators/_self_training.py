"""Self-training: rows without labels are labelled by networks that learned from the others.

An estimator that can do so has ``_label``: from checked rows to labels, as ``Rows`` has them, and
the probability of the least sure label of each.
"""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from ._out_of_fold import without_folds
from ._rows import Rows

# Networks that label together (benchmarks/RESULTS.md, "Self-training").
_N_TEACHERS = 3


def read_unlabeled(estimator: Any, unlabeled: Any, n_labelled: int) -> Rows:
    """Return checked rows without labels, numbered after those with labels.

    It is a TypeError if the estimator has no use for them.
    """
    owner = type(estimator).__name__
    if not hasattr(estimator, "_label"):
        raise TypeError(f"{owner} does not learn from rows without labels: unlabeled must be None.")
    try:
        rows = estimator._task.read_X(unlabeled)
    except (TypeError, ValueError) as error:
        raise type(error)(f"unlabeled is read as X is. {error}") from error
    if not len(rows):
        raise ValueError("unlabeled must have a row; got none.")
    return Rows(rows, None, None, None, n_labelled + np.arange(len(rows)))


def with_taught(estimator: Any, rows: Rows, unlabeled: Rows, valid: Rows, seed: int) -> Rows:
    """Return training rows twice, and then those without labels, as three networks label them.

    Each of these has the weight of its least sure label. What is told of the fit of the teachers is
    their progress alone: the fit that follows warns of the same.
    """
    teacher = clone(estimator).set_params(
        n_members=max(_N_TEACHERS, estimator.n_members),
        random_state=seed,
        validation_fraction=None,
        checkpoint_dir=None,
        callbacks=None,
        runtime="torch",
        **without_folds(estimator),
    )
    teacher._member_name = "teacher"
    given = {"validation": estimator._as_given(valid)} if len(valid) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        teacher.fit(*estimator._as_given(rows), rows.weight, **given)
        labels, sureness = teacher._label(unlabeled.X)
    taught = replace(unlabeled, y=labels, weight=sureness.astype(np.float32)).used()
    return rows.join(rows).join(taught)
