"""Optuna's TPE with draws that no other trial of the study repeats."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, TPESampler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optuna.distributions import BaseDistribution
    from optuna.study import Study
    from optuna.trial import FrozenTrial, TrialState


class NumberedSampler(BaseSampler):
    """TPE with a generator for each trial, seeded by the study's seed and the trial's number.

    So a resumed study and other processes with the same seed never repeat the draws of a trial
    that is there, and a study goes on after a restart as it would have without one.

    Parameters
    ----------
    seed : int
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._tpe = _make_tpe(seed)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        entropy = np.random.SeedSequence([self.seed, trial.number])
        self._tpe = _make_tpe(int(entropy.generate_state(1)[0]))

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        return self._tpe.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self._tpe.sample_relative(study, trial, search_space)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        return self._tpe.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        self._tpe.after_trial(study, trial, state, values)


def _make_tpe(seed: int) -> TPESampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        # Groups: each loss has parameters of its own. Liar: not what another process is running.
        return TPESampler(seed=seed, multivariate=True, group=True, constant_liar=True)
