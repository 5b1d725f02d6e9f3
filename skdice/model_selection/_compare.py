"""Fair comparison of losses: the same rows, parameters and seeds for all of them."""

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from joblib import Memory
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from .._digest import digest
from .._inputs import check_tags, indexable_rows
from .._parameters import check_number, check_option
from .._pipeline import final_step, silenced, with_parameters
from .._version import __version__
from ..estimators import TextEstimator
from ..exceptions import silent, told_once, warn
from ..losses import Loss
from ..metrics import RowCounts
from ..tasks import Rows, split_rows
from ._decision import tune_decision
from ._loss_comparison import LossComparison, ScoredRun
from ._space import SWITCHED

# A training loss that fell by more in the last epoch was not near its floor. With 200 sentences of
# CoNLL03, cross-entropy fell by 72, 27 and 12 % in the last of 2, 4 and 8 epochs; its F1 on other
# sentences was 56, 67 and 69.
_LARGEST_LAST_FALL = 0.25
# Where entities are rare, the loss may rest for epochs before they are learned at all: on made
# sentences with 20 words outside for each one inside it had rested after 4 epochs, with F1 23 on
# training sentences and 17 on others.
_LEAST_TRAIN_F1 = 0.5
# The keys of an entry of ``losses`` that is a dict.
_ENTRY_KEYS = ("loss", *SWITCHED, "class_weight")
# The name of a row with a tuned decision is that of its loss with this ending.
_TUNED = "+threshold"
_HELD_OUT_FRACTION = 0.15
# Training rows that a run predicts, to see whether it has learned them.
_N_TRAINING_ROWS = 100
_Key: TypeAlias = tuple[str, int]  # a loss of the table and a seed


class LossRun(NamedTuple):
    """The results of a fit with its own decision (key "") and, if asked for, a `_TUNED` one."""

    decisions: dict[str, tuple[float, RowCounts]]  # seconds, and what was right on the test rows
    n_held_out: int
    # By network, the share by which its training loss fell in the last epoch; 0 with one epoch.
    last_falls: list[float]
    train_f1: float  # on some of the rows that it was trained on


@dataclass(frozen=True)
class Protocol:
    """What all runs of a comparison share; `task` says which metrics it has."""

    task: str
    X: Any
    y: Any
    X_test: Any
    y_test: Any
    tune_threshold: bool


@told_once()
def compare_losses(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    X_test: Any,
    y_test: Any,
    *,
    losses: Sequence[str] | Mapping[str, Any] = ("ce", "focal", "dice", "tversky", "dsc"),
    seeds: Iterable[int] = (0, 1, 2),
    baseline: str = "ce",
    tune_threshold: bool = False,
    n_jobs: int | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    verbose: int = 1,
) -> LossComparison:
    """Fit an estimator with several losses and seeds and compare what they reach on test rows.

    Every loss gets the same rows, parameters and seeds. That is a fair budget, not the best that
    each loss can reach: a learning rate that was found with one loss favours it.

    Parameters
    ----------
    estimator : estimator of this package, or a Pipeline that ends in one
        Its loss and the parameters of the loss do not count, as the losses bring their own;
        ``class_weight`` stays for all.
    X, y, X_test, y_test : rows and their labels
        The rows to train on, and those to compare on.
    losses : sequence of names, or dict
        Names as the ``loss`` parameter takes them. A dict maps what the table calls a loss to a
        name, a loss object, or a dict of ``loss`` with its parameters
        (``{"loss": "tversky", "alpha": 0.3, "beta": 0.7}``; ``K`` and ``class_weight``, too).
    seeds : sequence of int, default=(0, 1, 2)
        Each loss is fitted once with each of them as ``random_state``.
    baseline : str, default="ce"
        What the others are compared with: a loss of the table, with ``tune_threshold`` also a row
        such as ``"ce+threshold"``.
    tune_threshold : bool, default=False
        Add a row ``"<loss>+threshold"`` for each loss: the same network, its decision tuned by
        :func:`tune_decision` for the F1 of the table, on 15 % of the training rows, drawn for each
        seed. No row of the table is trained on them.
    n_jobs : int, optional
        Processes; None is one, unless in a ``joblib.parallel_config`` context. With
        ``backend="dask"`` the fits run on a cluster, whose workers should have one thread each.
    cache_dir : str or PathLike, optional
        Directory of a ``joblib.Memory`` of finished runs (loss and seed). What was run there with
        the same class, parameters, rows, version and base model is not run again.
    verbose : int, default=1
        0 shows no progress bar.

    Returns
    -------
    LossComparison
        Its ``frame`` has a row per loss and seed; ``table()`` sums it up.

    Raises
    ------
    TypeError, ValueError
        Before anything is trained: if an argument is not allowed, if losses or seeds are empty or
        repeated, if a loss cannot be used with the estimator, or if there is no decision to tune
        because the tags are no entities. Errors in a fit have a note of loss and seed.

    Warns
    -----
    UserWarning
        If the baseline looks undertrained, as a mean over seeds: its F1 on training rows is below
        0.5, or the training loss of a network fell by more than a quarter in the last epoch.

    Examples
    --------
    >>> from skdice import DicePairClassifier
    >>> from skdice.model_selection import compare_losses
    >>> comparison = compare_losses(DicePairClassifier(), X, y, X_test, y_test)  # doctest: +SKIP
    >>> print(comparison.to_markdown())  # doctest: +SKIP
    """
    suffixes = ["", _TUNED] if tune_threshold else [""]
    entries, seeds = _check_losses(losses, suffixes, baseline), list(seeds)
    for seed in seeds:
        check_number("compare_losses", "seeds", seed, low=0, integer=True)
    _check_unique("seeds", seeds)
    seeds = [int(seed) for seed in seeds]
    final = _text_estimator(estimator)
    X, y, X_test, y_test = map(indexable_rows, (X, y, X_test, y_test))
    estimators = {
        (label, seed): _prepare(estimator, label, parameters, seed)
        for label, parameters in entries.items()
        for seed in seeds
    }
    _check_rows(estimator, X, y, "X and y")
    _check_rows(estimator, X_test, y_test, "X_test and y_test")
    protocol = Protocol(final.internals.task.measure(y), X, y, X_test, y_test, bool(tune_threshold))
    if tune_threshold and protocol.task == "tagging":
        raise ValueError("tune_threshold=True has no decision to tune: the tags are no entities.")
    # A run is found in the cache by a digest of all that it depends on.
    memory = Memory(None if cache_dir is None else os.fspath(cache_dir), verbose=0)
    run = memory.cache(_run_loss, ignore=["estimator", "protocol"])
    common = [] if cache_dir is None else [__version__, digest(protocol)]
    tasks = [
        delayed(_run)(run, key, each, protocol, digest([*common, each]) if common else "")
        for key, each in estimators.items()
    ]
    results = _run_all(tasks, n_jobs, verbose)
    base = next(label for label in entries if baseline in [f"{label}{end}" for end in suffixes])
    _warn_if_undertrained(base, [results[base, seed] for seed in seeds], final.max_epochs)
    n_held_out = results[base, seeds[0]].n_held_out
    return LossComparison(
        [
            ScoredRun(f"{label}{suffix}", seed, *results[label, seed].decisions[suffix])
            for label in entries
            for suffix in suffixes
            for seed in seeds
        ],
        baseline=baseline,
        n_train=_num_samples(y) - n_held_out,
        n_held_out=n_held_out,
        n_epochs=final.max_epochs,
    )


def _text_estimator(estimator: BaseEstimator) -> TextEstimator:
    """Return the estimator at the end of a Pipeline; raise a TypeError if it is not of skdice."""
    _, final = final_step(estimator)
    if not isinstance(final, TextEstimator):
        raise TypeError(
            f"estimator must be an estimator of skdice, such as DiceTokenTagger(), or a Pipeline "
            f"that ends in one; got {estimator!r}."
        )
    return final


def _prepare(
    estimator: BaseEstimator, label: str, parameters: dict[str, Any], seed: int
) -> BaseEstimator:
    """Return a checked estimator to fit; loss parameters that are not given become None."""
    prefix, _ = final_step(estimator)
    settings = {**dict.fromkeys(SWITCHED), **parameters, "random_state": seed}
    named = {f"{prefix}{name}": value for name, value in settings.items()}
    with _noted(f"This is about losses[{label!r}]."):
        prepared = with_parameters(silenced(estimator), named)
        _text_estimator(prepared).internals.check_parameters()
    return prepared


def _warn_if_undertrained(label: str, runs: Sequence[LossRun], max_epochs: int | str) -> None:
    """Warn if a loss has not learned its training rows, or was still learning at the end."""
    # The losses of several networks are not alike, so each network is looked at by itself.
    fall = max(float(np.mean(falls)) for falls in zip(*(run.last_falls for run in runs)))
    train_f1 = sum(run.train_f1 for run in runs) / len(runs)
    problem = None
    if train_f1 < _LEAST_TRAIN_F1:
        problem = f"its F1 on rows that it was trained on is {train_f1:.2f}"
    elif fall > _LARGEST_LAST_FALL:
        problem = f"its training loss fell by {fall:.0%} in the last epoch"
    if problem:
        warn(
            f"The baseline {label!r} looks undertrained: {problem}. Raise max_epochs (now "
            f"{max_epochs!r}), or the other losses are compared with an unfinished fit."
        )


def _run_all(tasks: Sequence[object], n_jobs: int | None, verbose: int) -> dict[_Key, LossRun]:
    """Return the run of each loss and seed, and show the progress."""
    from tqdm.auto import tqdm

    results = {}
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    with tqdm(total=len(tasks), unit="run", disable=not verbose) as bar:
        for key, run in parallel(tasks):
            results[key] = run
            bar.set_description(f"{key[0]}, seed {key[1]}")
            f1 = (counts.of_all_rows()["f1"] for _, counts in run.decisions.values())
            bar.set_postfix_str("F1 " + ", ".join(f"{value:.3f}" for value in f1))
            bar.update()
    return results


def _run(run: Callable[..., LossRun], key: _Key, *arguments: object) -> tuple[_Key, LossRun]:
    with _noted(f"This happened with loss {key[0]!r} and seed {key[1]}."):
        return key, run(*arguments)


def _run_loss(estimator: BaseEstimator, protocol: Protocol, name: str) -> LossRun:
    """Fit a copy of an estimator and count on the test rows; `name` says what is run to caches."""
    estimator = clone(estimator)
    X, y, held_out = protocol.X, protocol.y, np.empty(0, int)
    if protocol.tune_threshold:
        train, held_out = _hold_out(estimator, protocol)
        X, y = _safe_indexing(X, train), _safe_indexing(y, train)
    start = time.perf_counter()
    estimator.fit(X, y)
    seconds = time.perf_counter() - start
    final = _text_estimator(estimator)

    def count(y_true: object, y_pred: object) -> RowCounts:
        return final.internals.task.count_rows(protocol.task, y_true, y_pred)

    def f1(y_true: object, y_pred: object) -> float:
        return count(y_true, y_pred).of_all_rows()["f1"]

    decisions = {"": (seconds, count(protocol.y_test, estimator.predict(protocol.X_test)))}
    if protocol.tune_threshold:
        start = time.perf_counter()
        X_part, y_part = (_safe_indexing(part, held_out) for part in (protocol.X, protocol.y))
        # The score of texts is accuracy, but the table has their F1.
        metric = f1 if protocol.task == "texts" else None
        with silent():  # That few rows moved the decision is seen on the test rows.
            tuned = tune_decision(estimator, X_part, y_part, metric=metric)
        seconds += time.perf_counter() - start
        decisions[_TUNED] = seconds, count(protocol.y_test, tuned.predict(protocol.X_test))
    some = np.arange(0, _num_samples(y), math.ceil(_num_samples(y) / _N_TRAINING_ROWS))
    losses = [list(run["train_loss"].dropna()) for _, run in final.history_.groupby("run")]
    return LossRun(
        decisions,
        n_held_out=len(held_out),
        # A set loss below 1e-6 has learned all rows; float32 rounds the rest.
        last_falls=[1 - b / a if a > 1e-6 else 0.0 for *_, a, b in ([0.0, *x] for x in losses)],
        train_f1=f1(_safe_indexing(y, some), estimator.predict(_safe_indexing(X, some))),
    )


def _hold_out(estimator: BaseEstimator, protocol: Protocol) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and those to tune the decision on, by the seed.

    Classes have equal shares in both parts, and questions about one context stay together.
    """
    final, n_rows = _text_estimator(estimator), _num_samples(protocol.y)
    task, rng = final.internals.task, np.random.default_rng(final.random_state)
    classes = groups = None
    if task.info.is_classifier:
        labels = task.read_y(protocol.y, range(n_rows))
        classes = Rows(range(n_rows), labels, None, None, np.arange(n_rows)).strata
    if not isinstance(estimator, Pipeline):
        groups = task.groups(task.read_X(protocol.X))
    return split_rows(n_rows, _HELD_OUT_FRACTION, rng, classes, groups)


@contextmanager
def _noted(note: str) -> Iterator[None]:
    """Add a note to errors."""
    try:
        yield
    except Exception as error:
        error.add_note(note)
        raise


def _check_losses(losses: object, suffixes: list[str], baseline: str) -> dict[str, dict[str, Any]]:
    """Return the parameters of each loss by its label; a label has one row for each suffix."""
    names = [] if isinstance(losses, str) or not isinstance(losses, Iterable) else list(losses)
    if not names or not all(isinstance(label, str) for label in names):
        raise TypeError(
            f"losses must be a sequence of names such as ('ce', 'dice'), or a dict that maps "
            f"labels to names, loss objects or dicts of parameters; got {losses!r}."
        )
    labels = [f"{label}{suffix}" for label in names for suffix in suffixes]
    _check_unique("losses", labels)
    check_option("compare_losses", "baseline", baseline, labels)
    entries = {}
    for label in names:
        given = losses[label] if isinstance(losses, Mapping) else label
        entry = {"loss": given} if isinstance(given, str | Loss) else given
        if not isinstance(entry, Mapping) or not {"loss"} <= set(entry) <= set(_ENTRY_KEYS):
            raise ValueError(
                f"losses[{label!r}] must be a name, a loss object, or a dict with 'loss' and "
                f"perhaps {', '.join(_ENTRY_KEYS[1:])}; got {given!r}. Other parameters are the "
                f"same for all losses: set them on the estimator."
            )
        entries[label] = dict(entry)
    return entries


def _check_unique(name: str, values: Sequence[object]) -> None:
    if not values or len(set(values)) < len(values):
        raise ValueError(f"{name} must be one or more, different from each other; got {values}.")


def _check_rows(estimator: BaseEstimator, X: Any, y: Any, names: str) -> None:
    """Check rows and labels; only the first step of a Pipeline knows what its rows may be."""
    n_rows, n_labels = _num_samples(X), _num_samples(y)
    if n_rows != n_labels or not n_rows:
        raise ValueError(
            f"{names} must have the same number of rows, at least one; got {n_rows} and {n_labels}."
        )
    if isinstance(estimator, TextEstimator):
        with _noted(f"This is about {names}."):
            task = estimator.internals.task
            task.read_y(y, rows := task.read_X(X))
            if task.info.is_tagger:  # Query taggers learn from spans, too, but tags are compared.
                check_tags(y, rows)
