"""Finished runs on disk, under names that say what was run."""

import json
import os
import uuid
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._base_model import base_model_digests
from .._digest import digest
from ..metrics._row_counts import RowCounts
from ._runs import LossRun, Scored


class RunCache:
    """A directory with a file for each finished run.

    Parameters
    ----------
    directory : str or PathLike
        Made if it is not there.

    Raises
    ------
    ValueError
        If it cannot be made.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        try:
            self.directory = Path(directory)
            self.directory.mkdir(parents=True, exist_ok=True)
        except (OSError, TypeError) as error:
            raise ValueError(
                f"cache_dir must be a directory that can be written to, or None; got "
                f"{directory!r} ({error})."
            ) from error

    def load(self, name: str, n_rows: int) -> LossRun | None:
        """Return a finished run, or None if it has to be run (again, with a warning)."""
        path = self.directory / f"{name}.npz"
        if not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as file:
                known = json.loads(str(file["known"]))
                parts = {
                    part: Scored(float(seconds), RowCounts(known["task"], file[part]))
                    for part, seconds in known["fit_seconds"].items()
                }
            for scored in parts.values():
                scored.counts.of_all_rows()
                if len(scored.counts.counts) != n_rows:
                    raise ValueError(f"expected the counts of {n_rows} rows")
            return LossRun(parts["own"], parts.get("tuned"))
        except Exception as error:  # A damaged file fails in many ways.
            warnings.warn(
                f"{path} is damaged, so that its run is done again ({error}).",
                UserWarning,
                stacklevel=3,
            )
            return None

    def save(self, name: str, run: LossRun) -> None:
        """Write a finished run; nobody ever sees half of it."""
        parts = {"own": run.own} if run.tuned is None else {"own": run.own, "tuned": run.tuned}
        known = {
            "task": run.own.counts.task,
            "fit_seconds": {part: scored.fit_seconds for part, scored in parts.items()},
        }
        arrays: dict[str, Any] = {part: scored.counts.counts for part, scored in parts.items()}
        unfinished = self.directory / f".{uuid.uuid4().hex}.tmp"
        try:
            with open(unfinished, "wb") as file:
                np.savez_compressed(file, known=np.array(json.dumps(known)), **arrays)
            os.replace(unfinished, self.directory / f"{name}.npz")
        finally:
            unfinished.unlink(missing_ok=True)


def run_digests(
    estimators: Sequence[Any], version: str, rows: Sequence[Any], tune_threshold: bool
) -> list[str]:
    """Return the names under which runs are kept.

    Parameters
    ----------
    estimators : sequence of n_runs estimators
        Not fitted; with the loss and the seed of the run.
    version : str
    rows : X, y, X_test, y_test
    tune_threshold : bool

    Raises
    ------
    ValueError
        If a parameter is a lambda or a local function, which have no names to know them by.
    """
    for name, value in estimators[0].get_params().items():
        if "<" in getattr(value, "__qualname__", ""):
            raise ValueError(
                f"With cache_dir the parameter {name!r} must be a function of a module, so that a "
                f"finished run is found again; got {value!r}."
            )
    common = [version, digest(rows), bool(tune_threshold)]
    return [
        digest([*common, estimator, base_model_digests(estimator.get_params())])
        for estimator in estimators
    ]
