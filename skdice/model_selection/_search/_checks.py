"""Checks of what a search is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._parameters import check_bool, check_number
from ...nn._ranks import count_processes

if TYPE_CHECKING:
    from optuna.pruners import BasePruner


def check_parameters(search: Any) -> None:
    """Raise a TypeError or a ValueError if a parameter of a search is not allowed."""
    owner = type(search).__name__
    if (n_processes := count_processes()) > 1:
        raise RuntimeError(
            f"{owner} was started in {n_processes} processes that train one model together, as "
            f"accelerate launch and torchrun start them, but they would search for themselves. "
            f"Start each worker as a program of its own, with the same storage and study_name."
        )
    if not hasattr(search.estimator, "fit") or isinstance(search.estimator, type):
        raise TypeError(
            f"The 'estimator' parameter of {owner} must be an estimator with a method 'fit'. "
            f"Got {search.estimator!r} instead."
        )
    if search.space is not None and not callable(search.space):
        raise TypeError(
            f"The 'space' parameter of {owner} must be None or a callable that takes an Optuna "
            f"trial and returns a dict of parameters. Got {search.space!r} instead."
        )
    check_number(owner, "n_trials", search.n_trials, low=1, integer=True)
    check_number(owner, "timeout", search.timeout, low=0, closed="neither", optional=True)
    check_number(owner, "n_jobs", search.n_jobs, integer=True, optional=True)
    check_bool(owner, "refit", search.refit)
    if search.n_jobs == 0:
        raise ValueError(
            f"The 'n_jobs' parameter of {owner} must be None or an int other than 0. Got 0 instead."
        )
    if isinstance(search.scoring, list | tuple | set | dict):
        raise ValueError(
            f"The 'scoring' parameter of {owner} must be one score: None, a str or a callable. Got "
            f"{search.scoring!r} instead."
        )
    is_number = isinstance(search.error_score, int | float | np.number)
    if not (is_number or (isinstance(search.error_score, str) and search.error_score == "raise")):
        raise ValueError(
            f"The 'error_score' parameter of {owner} must be 'raise' or a float. Got "
            f"{search.error_score!r} instead."
        )
    name = search.study_name
    if name is not None and (not isinstance(name, str) or not name):
        raise ValueError(
            f"The 'study_name' parameter of {owner} must be None or a str that is not empty. "
            f"Got {name!r} instead."
        )


def make_pruner(pruner: Any) -> BasePruner:
    """Return the pruner of Optuna that the parameter stands for."""
    # Optuna is imported only by those who search.
    from optuna.pruners import BasePruner, NopPruner

    from ._strategy import MeanPruner

    if isinstance(pruner, BasePruner):
        return pruner
    if pruner is None:
        return NopPruner()
    if isinstance(pruner, str) and pruner == "auto":
        return MeanPruner(n_complete=4)
    raise ValueError(
        f"The 'pruner' parameter of DiceSearchCV must be 'auto', None or a pruner of Optuna. Got "
        f"{pruner!r} instead."
    )
