"""Checks of what a comparison of losses is asked to do."""

import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sklearn.utils.validation import _num_samples

from ..estimators._base import TextEstimator
from ..estimators._labels import check_known_columns
from ..losses import Loss
from ..metrics._squad import read_answers
from ._runs import Protocol
from ._space import LOSS_PARAMETERS

_ENTRY_KEYS = ("loss", *LOSS_PARAMETERS, "class_weight")


def check_losses(losses: Any, suffixes: Sequence[str], baseline: str) -> dict[str, dict[str, Any]]:
    """Return the parameters of each loss by its label, which has a row for each of the suffixes."""
    expected = (
        "losses must be a sequence of names such as ('ce', 'dice'), or a dict that maps labels to "
        "names, loss objects or dicts of parameters"
    )
    if isinstance(losses, str) or not isinstance(losses, Iterable):
        raise TypeError(f"{expected}; got {losses!r}.")
    pairs = losses.items() if isinstance(losses, Mapping) else ((name, name) for name in losses)
    entries = list(pairs)
    if not entries:
        raise ValueError(f"{expected}; got none.")
    for label, entry in entries:
        if not isinstance(label, str) or not label:
            hint = " Give loss objects labels: {'my loss': ...}." if label is entry else ""
            raise TypeError(f"{expected}; got {label!r} among them.{hint}")
    labels = [f"{label}{suffix}" for label, _ in entries for suffix in suffixes]
    _check_unique("losses", labels)
    if baseline not in labels:
        raise ValueError(
            f"baseline must be one of {{{', '.join(map(repr, labels))}}}; got {baseline!r}."
        )
    return {label: _check_entry(label, entry) for label, entry in entries}


def _check_entry(label: str, entry: Any) -> dict[str, Any]:
    if isinstance(entry, str | Loss):
        return {"loss": entry}
    if not isinstance(entry, Mapping):
        raise TypeError(
            f"losses[{label!r}] must be a name, a loss object or a dict of parameters; got "
            f"{entry!r}."
        )
    unknown = [name for name in entry if name not in _ENTRY_KEYS]
    if "loss" not in entry or unknown:
        problem = "'loss' is not there" if "loss" not in entry else f"got {unknown[0]!r}"
        raise ValueError(
            f"losses[{label!r}] must have 'loss' and may have {', '.join(_ENTRY_KEYS[1:])}; "
            f"{problem}. Other parameters are the same for all losses: set them on the estimator."
        )
    return dict(entry)


def check_seeds(seeds: Any) -> list[int]:
    if isinstance(seeds, str) or not isinstance(seeds, Iterable):
        raise TypeError(f"seeds must be a sequence of int; got {seeds!r}.")
    seeds = list(seeds)
    if not seeds:
        raise ValueError("seeds must have at least one int; got none.")
    for seed in seeds:
        if not isinstance(seed, numbers.Integral) or isinstance(seed, bool) or seed < 0:
            raise ValueError(f"seeds must be ints of at least 0; got {seed!r}.")
    _check_unique("seeds", seeds)
    return [int(seed) for seed in seeds]


def _check_unique(name: str, values: list[Any]) -> None:
    twice = [value for i, value in enumerate(values) if value in values[:i]]
    if twice:
        raise ValueError(f"{name} must be different from each other; got {twice[0]!r} twice.")


def check_both_parts(
    final: TextEstimator, training: tuple[Any, Any], test: tuple[Any, Any], is_pipeline: bool
) -> None:
    """Check rows and labels to train and to test on, and that a classifier can tell them alike."""
    labels = _check_part(final, *training, ("X", "y"), is_pipeline)
    test_labels = _check_part(final, *test, ("X_test", "y_test"), is_pipeline)
    if labels is None:
        return
    kind, test_kind = (
        "str" if part.dtype == object else f"{part.shape[1]} columns" if part.ndim == 2 else "int"
        for part in (labels, test_labels)
    )
    if kind != test_kind:
        raise ValueError(f"y and y_test must have labels of one kind; got {kind} and {test_kind}.")
    if labels.ndim == 2:
        _, names = final._task.read_y(training[1], labels)
        _, test_names = final._task.read_y(test[1], test_labels)
        check_known_columns(test_names.tolist(), names.tolist())


def _check_part(
    final: TextEstimator, X: Any, y: Any, names: tuple[str, str], is_pipeline: bool
) -> Any:
    """Check rows and labels, and return those of a classifier.

    The rows of a Pipeline are known to its first step only.
    """
    n_rows, n_labels = _num_samples(X), _num_samples(y)
    if n_rows != n_labels or not n_rows:
        raise ValueError(
            f"{names[0]} and {names[1]} must have the same number of rows, at least one; got "
            f"{n_rows} and {n_labels}."
        )
    try:
        task = final._task
        rows = range(n_rows) if task.is_classifier else y
        labels = task.read_y(y, rows if is_pipeline else task.read_X(X))
    except (TypeError, ValueError) as error:
        error.add_note(f"This is about {names[0]} and {names[1]}.")
        raise
    return labels[0] if task.is_classifier else None


def check_tunable(final: TextEstimator, protocol: Protocol) -> None:
    problem = None
    if protocol.task == "tags" or (
        protocol.task == "entities" and not any("O" in row for row in protocol.y)
    ):
        problem = "a tagger has one among chunk tags with 'O' only, the bias of 'O'"
    elif protocol.task == "questions" and all(
        any(read_answers(row, "a row of y")) for row in protocol.y
    ):
        problem = "an extractor has one only if some training question has no answer"
    elif not hasattr(final, "_tune_decision"):
        problem = f"{type(final).__name__} has none"
    if problem:
        raise ValueError(f"tune_threshold=True needs a decision to tune: {problem}.")
