"""One run of a comparison: fitted with one loss and seed, counted on the test rows, and kept."""

import json
import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from .._digest import base_model_digests, digest
from .._files import replacing_file
from .._pipeline import final_step, silenced, with_parameters
from .._version import __version__
from ..estimators import TextEstimator
from ..metrics import RowCounts
from ..tasks import check_labels, is_indicator, split_rows
from ._decision import tune_decision
from ._space import switch_loss

HELD_OUT_FRACTION = 0.15


# The seconds of the fit and the counts: with its "own" decision and, if asked for, a "tuned" one.
LossRun = dict[str, tuple[float, RowCounts]]


@dataclass(frozen=True)
class Protocol:
    """What all runs of a comparison share; `task` is a key of ``METRICS``."""

    task: str
    X: Any
    y: Any
    X_test: Any
    y_test: Any
    tune_threshold: bool


def text_estimator(estimator: BaseEstimator) -> TextEstimator:
    """Return the estimator at the end of a Pipeline; raise a TypeError if it is not of skdice."""
    _, final = final_step(estimator)
    if not isinstance(final, TextEstimator):
        raise TypeError(
            f"estimator must be an estimator of skdice, such as DiceTokenTagger(), or a Pipeline "
            f"that ends in one; got {estimator!r}."
        )
    return final


def with_loss(estimator: BaseEstimator, parameters: dict[str, Any], seed: int) -> Any:
    """Return a quiet copy with a seed and a loss; loss parameters not given become None."""
    prefix, _ = final_step(estimator)
    settings = switch_loss(parameters) | {"random_state": seed}
    named = {f"{prefix}{name}": value for name, value in settings.items()}
    return with_parameters(silenced(estimator), named)


def run_loss(estimator: BaseEstimator, protocol: Protocol) -> LossRun:
    """Fit a copy of an estimator and count on the test rows."""
    estimator = clone(estimator)
    X, y = protocol.X, protocol.y
    if protocol.tune_threshold:
        train, held_out = hold_out(estimator, protocol)
        X_part, y_part = _safe_indexing(X, held_out), _safe_indexing(y, held_out)
        X, y = _safe_indexing(X, train), _safe_indexing(y, train)
    start = time.perf_counter()
    estimator.fit(X, y)
    fit_seconds = time.perf_counter() - start

    final = text_estimator(estimator)
    X_test = _transform(estimator, protocol.X_test)

    def count(decided: Any) -> RowCounts:
        predicted = decided.predict(X_test)
        return decided.task.count_rows(protocol.task, protocol.y_test, predicted)

    run = {"own": (fit_seconds, count(final))}
    if protocol.tune_threshold:
        start = time.perf_counter()
        metric = None
        if protocol.task == "texts":  # Their score is accuracy; the F1 of the table is tuned.

            def metric(y_true: Any, y_pred: Any) -> float:
                return final.task.count_rows("texts", y_true, y_pred).of_all_rows()["f1"]

        tuned = tune_decision(final, _transform(estimator, X_part), y_part, metric=metric)
        fit_seconds += time.perf_counter() - start
        run["tuned"] = fit_seconds, count(tuned)
    return run


def hold_out(estimator: BaseEstimator, protocol: Protocol) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and those to tune the decision on, by the seed.

    Classes have equal shares in both parts, and questions about one context stay together.
    """
    final = text_estimator(estimator)
    task, rng = final.task, np.random.default_rng(final.random_state)
    classes = groups = None
    if not isinstance(estimator, Pipeline):
        groups = task.groups(task.read_X(protocol.X))
    if groups is None and task.info.is_classifier and not is_indicator(protocol.y):
        labels = check_labels(protocol.y, _num_samples(protocol.y))
        classes = np.unique(labels, return_inverse=True)[1]
    return split_rows(_num_samples(protocol.y), HELD_OUT_FRACTION, rng, classes, groups)


def _transform(estimator: BaseEstimator, X: Any) -> Any:
    """Return rows as the last step of a Pipeline gets them when it predicts."""
    while isinstance(estimator, Pipeline):
        *steps, (_, last) = estimator.steps
        for _, step in steps:
            is_for_training = hasattr(step, "fit_resample")
            if step is not None and step != "passthrough" and not is_for_training:
                X = step.transform(X)
        estimator = last
    return X


class RunCache:
    """A directory with a file for each finished run, under a name that says what was run."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        estimators: Mapping[tuple[str, int], Any],
        protocol: Protocol,
    ) -> None:
        try:
            self.directory = Path(directory)
            self.directory.mkdir(parents=True, exist_ok=True)
        except (OSError, TypeError) as error:
            raise ValueError(
                f"cache_dir must be a directory to write to, or None; got {directory!r} ({error})."
            ) from error
        common = [__version__, digest(protocol)]
        self.n_rows = _num_samples(protocol.y_test)
        self.paths = {
            key: self.directory
            / f"{digest([*common, each, base_model_digests(each.get_params())])}.npz"
            for key, each in estimators.items()
        }

    def load(self) -> dict[tuple[str, int], LossRun]:
        """Return the runs that are finished; damaged files are left out with a warning."""
        found = {}
        for key, path in self.paths.items():
            try:
                if path.exists():
                    found[key] = self._read(path)
            except Exception as error:  # A damaged file fails in many ways.
                warnings.warn(
                    f"{path} is damaged, so that its run is done again ({error}).",
                    stacklevel=4,
                )
        return found

    def _read(self, path: Path) -> LossRun:
        with np.load(path, allow_pickle=False) as file:
            known = json.loads(str(file["known"]))
            run = {
                part: (float(seconds), RowCounts(known["task"], file[part]))
                for part, seconds in known["fit_seconds"].items()
            }
        for _, counts in run.values():
            counts.of_all_rows()
            if len(counts.counts) != self.n_rows:
                raise ValueError(f"expected the counts of {self.n_rows} rows")
        return run

    def save(self, key: tuple[str, int], run: LossRun) -> None:
        """Write a finished run; nobody ever sees half of it."""
        seconds = {part: fit_seconds for part, (fit_seconds, _) in run.items()}
        known = {"task": run["own"][1].task, "fit_seconds": seconds}
        arrays: dict[str, Any] = {part: counts.counts for part, (_, counts) in run.items()}
        with replacing_file(self.paths[key]) as new, open(new, "wb") as file:
            np.savez_compressed(file, known=np.array(json.dumps(known)), **arrays)
