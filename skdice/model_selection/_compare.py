"""Fair comparison of losses: the same rows, budget and seeds for all of them."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.pipeline import Pipeline
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from .._inputs import indexable_rows
from .._version import __version__
from ._compare_checks import (
    check_both_parts,
    check_labels,
    check_losses,
    check_seeds,
    check_tunable,
)
from ._loss_comparison import LossComparison, ScoredRun
from ._run_cache import RunCache, run_digests
from ._runs import LossRun, Protocol, hold_out, run_loss, text_estimator, with_loss

_TUNED = "+threshold"


@dataclass(frozen=True)
class _Job:
    """One loss with one seed; ``name`` is that of its file."""

    label: str
    seed: int
    estimator: Any
    name: str = ""


def compare_losses(
    estimator: Any,
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

    Every loss gets the same budget: the same rows, parameters, epochs and seeds.

    Parameters
    ----------
    estimator : estimator of this package, or a Pipeline that ends in one
        It is left as it is. Its ``loss``, ``alpha``, ``beta``, ``gamma``, ``memory``, ``ce_weight``
        and ``K`` do not count, as the losses bring their own; ``class_weight`` stays for all.
    X, y : rows and their labels
        To train on.
    X_test, y_test : rows and their labels
        To compare on.
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
        :func:`tune_decision` (the thresholds of a classifier, the bias of "O" of a tagger, the null
        threshold of an extractor) on 15 % of the training rows, drawn for each seed. No row of the
        table is trained on this part, so that all have the same network.
    n_jobs : int, optional
        Processes; None is one, unless in a ``joblib.parallel_config`` context. With
        ``backend="dask"`` the fits run on a cluster, whose workers should have one thread each.
    cache_dir : str or PathLike, optional
        Directory for a file per finished run (loss and seed). What was run there with the same
        class, parameters, rows, version and files of the base model is not run again. (Of a hub id
        those in the cache of this machine, once they are there.)
    verbose : int, default=1
        0 shows no progress bar.

    Returns
    -------
    LossComparison
        Its ``frame`` has a row per loss and seed; ``table()`` sums it up.

    Raises
    ------
    TypeError
        If the estimator is none of this package, or an argument is of another kind.
    ValueError
        If losses or seeds are empty or twice there, the baseline is not among the losses, the rows
        are not allowed, a loss cannot be used with the estimator, or there is no decision to tune;
        all of this before anything is trained. What goes wrong in a fit is raised with a note that
        has the loss and the seed; the finished runs stay in ``cache_dir``.

    See Also
    --------
    tune_decision : Tunes the decision of one fitted estimator.

    Notes
    -----
    The same parameters are a fair budget, not the best that each loss can reach: a learning rate
    that was found with one loss favours it.

    With another number of threads than before (as in several processes) fits agree up to rounding.

    Examples
    --------
    >>> from skdice import DicePairClassifier
    >>> from skdice.model_selection import compare_losses
    >>> classifier = DicePairClassifier("bert-base-cased")
    >>> comparison = compare_losses(
    ...     classifier, X, y, X_test, y_test, losses=("ce", "dice"), tune_threshold=True
    ... )  # doctest: +SKIP
    >>> print(comparison.to_markdown())  # doctest: +SKIP
    """

    entries, seeds = check_losses(losses), check_seeds(seeds)
    check_labels(
        [name for label in entries for name in _row_labels(label, tune_threshold)], baseline
    )
    final = text_estimator(estimator)
    X, y, X_test, y_test = map(indexable_rows, (X, y, X_test, y_test))
    jobs = [
        _Job(label, seed, _prepare(estimator, label, parameters, seed))
        for label, parameters in entries.items()
        for seed in seeds
    ]
    check_both_parts(final, (X, y), (X_test, y_test), isinstance(estimator, Pipeline))
    protocol = Protocol(final._task.find_measure(y), X, y, X_test, y_test, bool(tune_threshold))
    if tune_threshold:
        check_tunable(final, protocol)

    cache = None
    if cache_dir is not None:
        cache = RunCache(cache_dir)
        names = run_digests(
            [job.estimator for job in jobs], __version__, (X, y, X_test, y_test), tune_threshold
        )
        jobs = [replace(job, name=name) for job, name in zip(jobs, names)]
    results = _run_all(jobs, protocol, n_jobs, cache, verbose)

    n_train = _num_samples(y)
    n_held_out = len(hold_out(jobs[0].estimator, protocol)[1]) if tune_threshold else 0
    return LossComparison(
        _in_order(entries, seeds, results),
        baseline=baseline,
        n_train=n_train - n_held_out,
        n_held_out=n_held_out,
        n_epochs=final.max_epochs,
    )


def _row_labels(label: str, tune_threshold: bool) -> list[str]:
    return [label, label + _TUNED] if tune_threshold else [label]


def _prepare(estimator: Any, label: str, parameters: dict[str, Any], seed: int) -> Any:
    """Return an estimator to fit, checked."""
    try:
        prepared = with_loss(estimator, parameters, seed)
        text_estimator(prepared)._check_parameters()
        text_estimator(prepared)._check_validation(None)
    except (TypeError, ValueError) as error:
        error.add_note(f"This is about losses[{label!r}].")
        raise
    return prepared


def _run_all(
    jobs: list[_Job],
    protocol: Protocol,
    n_jobs: int | None,
    cache: RunCache | None,
    verbose: int,
) -> dict[tuple[str, int], LossRun]:
    """Return the run of each loss and seed, those in the cache without running them."""
    from tqdm.auto import tqdm

    results: dict[tuple[str, int], LossRun] = {}
    if cache is not None:
        for job in jobs:
            found = cache.load(job.name, _num_samples(protocol.y_test))
            if found is not None:
                results[job.label, job.seed] = found
    left = [job for job in jobs if (job.label, job.seed) not in results]
    with tqdm(total=len(jobs), initial=len(results), unit="run", disable=not verbose) as bar:

        def announce(job: _Job) -> None:
            bar.set_description(f"{job.label}, seed {job.seed}")
            bar.set_postfix_str(_f1_so_far(results))

        for job, run in _execute(left, protocol, n_jobs, announce):
            if cache is not None:  # Here, since a worker may be on a machine without it.
                cache.save(job.name, run)
            results[job.label, job.seed] = run
            announce(job)
            bar.update()
    return results


def _execute(
    jobs: list[_Job],
    protocol: Protocol,
    n_jobs: int | None,
    announce: Callable[[_Job], None],
) -> Iterator[tuple[_Job, LossRun]]:
    """Yield the runs as they finish."""
    if effective_n_jobs(n_jobs) == 1:
        for job in jobs:
            announce(job)
            yield job, _run(0, job, protocol)[1]
        return
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    finished = parallel(delayed(_run)(i, job, protocol) for i, job in enumerate(jobs))
    for i, run in finished:
        yield jobs[i], run


def _run(i: int, job: _Job, protocol: Protocol) -> tuple[int, LossRun]:
    try:
        run = run_loss(job.estimator, protocol)
    except Exception as error:
        error.add_note(f"This happened with loss {job.label!r} and seed {job.seed}.")
        raise
    return i, run


def _in_order(
    labels: Iterable[str], seeds: Iterable[int], results: Mapping[tuple[str, int], LossRun]
) -> list[ScoredRun]:
    """Return the scored runs loss by loss, each tuned one after its own decision."""
    runs = []
    for label in labels:
        for suffix, part in (("", "own"), (_TUNED, "tuned")):
            for seed in seeds:
                scored = getattr(results[label, seed], part)
                if scored is not None:
                    runs.append(ScoredRun(label + suffix, seed, *scored))
    return runs


def _f1_so_far(results: Mapping[tuple[str, int], LossRun]) -> str:
    """Return the mean F1 of each loss over its finished seeds."""
    f1: dict[str, list[float]] = {}
    for (label, _), run in results.items():
        for suffix, scored in (("", run.own), (_TUNED, run.tuned)):
            if scored is not None:
                f1.setdefault(label + suffix, []).append(scored.counts.of_all_rows()["f1"])
    means = [f"{label} {np.mean(values):.3f}" for label, values in f1.items()]
    return f"F1 {', '.join(means)}" if means else ""
