"""Estimators that may be the last step of a pipeline."""

from collections.abc import Mapping
from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline


def final_step(estimator: BaseEstimator) -> tuple[str, Any]:
    """Return the prefix of the parameters of the last step of a pipeline, if it is one, and it."""
    prefix = ""
    while isinstance(estimator, Pipeline):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return prefix, estimator


def take_apart(estimator: Any) -> tuple[list[Any], Any]:
    """Return the steps of pipelines before the last one, and it; of a search, those of its best."""
    steps: list[Any] = []
    while isinstance(estimator, Pipeline) or hasattr(estimator, "best_estimator_"):
        if isinstance(estimator, Pipeline):
            steps += [step for _, step in estimator.steps[:-1]]
            estimator = estimator.steps[-1][1]
        else:
            estimator = estimator.best_estimator_
    return steps, estimator


def with_parameters(estimator: BaseEstimator, parameters: Mapping[str, Any]) -> Any:
    """Return an unfitted copy with other parameters."""
    # Parameters that are estimators themselves, such as losses, must not be shared by fits.
    return clone(estimator).set_params(**clone(dict(parameters), safe=False))


def silenced(estimator: BaseEstimator) -> Any:
    """Return an unfitted copy whose steps show no progress."""
    quiet = {
        name: type(value)(0)  # Some take a bool only, others an int.
        for name, value in estimator.get_params().items()
        if name.rpartition("__")[2] == "verbose" and isinstance(value, int)
    }
    return with_parameters(estimator, quiet)
