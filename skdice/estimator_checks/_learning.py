"""Checks of what an estimator learns and gives back: predictions, weights, bad and small data."""

import re
from collections.abc import Callable
from numbers import Number
from typing import Any
from unittest import SkipTest

import numpy as np
import pandas as pd
from sklearn.utils.validation import has_fit_parameter

from ._case import (
    Case,
    find_difference,
    outputs,
    raises,
    require,
    require_parameter,
    require_same_outputs,
    take,
)

# Rows that are predicted one by one.
_N_SINGLE_ROWS = 12


def check_outputs(case: Case) -> None:
    """Outputs are arrays with a row per row of X; probabilities are probabilities."""
    estimator = case.fitted()
    for name, output in case.outputs(estimator).items():
        require(isinstance(output, np.ndarray), f"{name} must return an array.")
        require(
            len(output) == len(case.X),
            f"{name} must return a row for each of the {len(case.X)} rows of X; got {len(output)}.",
        )
    if not hasattr(estimator, "predict_proba"):
        return
    for i, row in enumerate(estimator.predict_proba(case.X)):
        p = np.asarray(row)
        require(
            np.isfinite(p).all() and (p >= 0).all() and (p <= 1).all(),
            f"probabilities must lie in [0, 1]; row {i} has {p.ravel()[:5]}.",
        )
        require(
            p.shape[-1] == len(estimator.classes_),
            f"predict_proba must have a column for each of the {len(estimator.classes_)} classes; "
            f"row {i} has {p.shape[-1]}.",
        )


def check_rows_of_one_length(case: Case) -> None:
    """Outputs keep their number of dimensions where numpy could stack equally long rows."""
    estimator = case.fitted()
    expected = case.outputs(estimator)
    X = take(case.X, [0] * 4)
    for name, output in outputs(estimator, X).items():
        require(
            len(output) == 4 and output.ndim == expected[name].ndim,
            f"{name} of 4 equal rows must have the shape (4, ...) with {expected[name].ndim} "
            f"dimensions; got the shape {output.shape}.",
        )


def check_score(case: Case) -> None:
    """``score`` is a float in [0, 1]."""
    score = case.fitted().score(case.X, case.y)
    require(
        isinstance(score, float) and 0 <= score <= 1,
        f"score must be a float in [0, 1]; got {score!r}.",
    )


def check_classes(case: Case) -> None:
    """``classes_`` is sorted and unique, and only its labels are predicted."""
    estimator = case.fitted()
    if not hasattr(estimator, "classes_"):
        raise SkipTest(f"{type(estimator).__name__} has no classes_.")
    classes = estimator.classes_
    require(
        isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) >= 2,
        f"classes_ must be an array of two labels or more; got {classes!r}.",
    )
    require(
        classes.tolist() == sorted(set(classes.tolist())),
        f"classes_ must be sorted and unique; got {classes.tolist()}.",
    )
    predicted = estimator.predict(case.X)
    if predicted.ndim > 1:
        return  # An indicator matrix: its columns are the classes.
    known = set(classes.tolist())
    for i, row in enumerate(predicted.tolist()):
        unknown = set(row if isinstance(row, list) else [row]) - known
        require(not unknown, f"row {i} is predicted as {unknown}, which classes_ does not have.")


def check_fit_idempotent(case: Case) -> None:
    """Fitting again, and fitting a clone, gives the same estimator."""
    estimator = case.fitted()
    expected = case.outputs(estimator)
    estimator.fit(case.X, case.y)
    require_same_outputs(case.outputs(estimator), expected, "after a second fit", atol=1e-5)
    require_same_outputs(case.outputs(case.fitted()), expected, "from a clone's fit", atol=1e-5)


def check_methods_subset_invariance(case: Case) -> None:
    """A row's outputs do not depend on the rows beside it."""
    estimator = case.fitted()
    rows = range(min(_N_SINGLE_ROWS, len(case.X)))
    together = case.outputs(estimator)
    alone = [outputs(estimator, take(case.X, [i])) for i in rows]
    for name, expected in together.items():
        parts = [part[name] for part in alone]
        require(all(len(part) == 1 for part in parts), f"{name} of one row must return one row.")
        difference = find_difference(
            [part[0] for part in parts], expected[rows], None if name == "predict" else 1e-5
        )
        require(difference is None, f"{name} of single rows differs: {difference}.")


def check_methods_sample_order_invariance(case: Case) -> None:
    """Outputs follow the order of the rows."""
    estimator = case.fitted()
    order = np.random.default_rng(0).permutation(len(case.X))
    expected = {name: output[order] for name, output in case.outputs(estimator).items()}
    got = outputs(estimator, take(case.X, order))
    require_same_outputs(got, expected, "in another order of the rows", atol=1e-5)


def check_input_containers(case: Case) -> None:
    """Lists, Series with any index and object arrays of the same rows are the same data."""
    if getattr(case.X, "ndim", 1) != 1:
        raise SkipTest("The rows of X lie in a table.")
    X, y = _containers(case.X), _containers(case.y)
    estimators = {kind: case.new() for kind in X}
    for kind, estimator in estimators.items():
        estimator.fit(X[kind], y[kind])
    expected = case.outputs(estimators["list"])
    for kind, estimator in estimators.items():
        situation = f"fitted on and given {_KINDS[kind]}"
        require_same_outputs(outputs(estimator, X[kind]), expected, situation, atol=1e-5)
    scores = {kind: estimators["list"].score(X[kind], y[kind]) for kind in X}
    require(len(set(scores.values())) == 1, f"scores depend on the container: {scores}.")


def check_requires_y_none(case: Case) -> None:
    """A missing y is a ValueError that says so."""
    with raises(ValueError, "fit with y=None") as caught:
        case.new().fit(case.X, None)
    message = str(caught[0])
    require(
        re.search(r"requires? y\b|\by is required|\by\b.* None", message),
        f"fit with y=None must say that it requires y; it says {message!r}.",
    )


def check_estimators_empty_data_messages(case: Case) -> None:
    """Fitting on no rows is a ValueError; no rows are predicted as no rows."""
    X, y = take(case.X, []), take(case.y, [])
    with raises(ValueError, "fit on no rows"):
        case.new().fit(X, y)
    estimator = case.fitted()
    expected = case.outputs(estimator)
    for name, output in outputs(estimator, X).items():
        require(
            len(output) == 0 and output.ndim == expected[name].ndim,
            f"{name} of no rows must have no rows and {expected[name].ndim} dimensions; got the "
            f"shape {output.shape}.",
        )


def check_one_sample(case: Case) -> None:
    """Fitting on one row works or is a ValueError that says why not."""
    estimator = case.new()
    X, y = take(case.X, [0]), take(case.y, [0])
    try:
        estimator.fit(X, y)
    except ValueError as error:
        require(str(error), "the ValueError of fit on one row must say why.")
        return
    except Exception as error:
        raise AssertionError(
            f"fit on one row must work or raise ValueError; it raised {type(error).__name__}: "
            f"{error}"
        ) from error
    require(len(estimator.predict(X)) == 1, "predict of one row must return one row.")


def check_class_weight(case: Case) -> None:
    """``class_weight`` is accepted and changes what is learned."""
    require_parameter(case.estimator, "class_weight")
    # K implies a class weight of its own.
    others = {"K": None} if "K" in case.estimator.get_params(deep=False) else {}
    plain = case.fitted(class_weight=None, **others)
    weights: list[Any] = ["balanced"]
    if hasattr(plain, "classes_"):
        weights.append({plain.classes_.tolist()[0]: 20.0})
    expected = _trace(plain, case.X)
    for weight in weights:
        weighted = case.fitted(class_weight=weight, **others)
        case.outputs(weighted)
    if find_difference(_trace(weighted, case.X), expected, 1e-7) is None:
        raise AssertionError(f"class_weight={weight!r} must change what is learned; it does not.")


def check_sample_weight_equivalence(case: Case) -> None:
    """Weight 0 is absence, weights of one are no weights; lists and Series are weights too."""
    if not has_fit_parameter(case.estimator, "sample_weight"):
        raise SkipTest("fit takes no sample_weight.")
    n_rows = len(case.X)
    ones = case.new()
    ones.fit(case.X, case.y, sample_weight=pd.Series(np.ones(n_rows), index=range(n_rows, 0, -1)))
    require_same_outputs(
        case.outputs(ones), case.outputs(case.fitted()), "with weights of one", atol=1e-5
    )
    kept = np.arange(0, n_rows, 2)
    weight = np.zeros(n_rows)
    weight[kept] = 1.0
    zeros, removed = case.new(), case.new()
    zeros.fit(case.X, case.y, sample_weight=weight.tolist())
    removed.fit(take(case.X, kept), take(case.y, kept), sample_weight=weight[kept])
    require_same_outputs(
        case.outputs(zeros), case.outputs(removed), "with weight 0 than without the row", atol=1e-5
    )


_KINDS = {"list": "lists", "series": "Series", "array": "object arrays"}


def _containers(rows: Any) -> dict[str, Any]:
    """Return the rows in several containers; rows of a matrix stay in it."""
    if getattr(rows, "ndim", 1) != 1:
        return dict.fromkeys(_KINDS, rows)
    rows = list(rows)
    array = np.empty(len(rows), dtype=object)
    for i, row in enumerate(rows):
        array[i] = row
    if all(isinstance(row, Number) for row in rows):
        array = np.asarray(rows)  # Labels that are numbers do not come as objects.
    return {
        "list": rows,
        "series": pd.Series(rows, index=range(len(rows), 0, -1)),
        "array": array,
    }


def _trace(estimator: Any, X: Any) -> Any:
    """Return numbers that show what was learned, more finely than labels can."""
    for name in ("predict_proba", "decision_function"):
        if hasattr(estimator, name):
            return getattr(estimator, name)(X)
    if hasattr(estimator, "history_"):
        return estimator.history_["train_loss"].tolist()
    raise SkipTest(f"{type(estimator).__name__} shows no numbers of what it learned.")


LEARNING_CHECKS: tuple[Callable[[Case], None], ...] = (
    check_outputs,
    check_rows_of_one_length,
    check_score,
    check_classes,
    check_fit_idempotent,
    check_methods_subset_invariance,
    check_methods_sample_order_invariance,
    check_input_containers,
    check_requires_y_none,
    check_estimators_empty_data_messages,
    check_one_sample,
    check_class_weight,
    check_sample_weight_equivalence,
)
