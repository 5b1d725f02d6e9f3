"""What a study tries next, and which trials it stops."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.exceptions import ExperimentalWarning
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import TrialState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optuna.distributions import BaseDistribution
    from optuna.study import Study
    from optuna.trial import FrozenTrial


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


class MeanPruner(BasePruner):
    """Compares the mean score so far with the median of the complete trials at the same fold.

    Optuna's ``MedianPruner`` takes the best value that a trial has reported: that suits losses
    along epochs, but here one easy fold at the start would keep every trial.

    Parameters
    ----------
    n_complete : int
        So many trials must be complete before one is stopped.
    """

    def __init__(self, n_complete: int) -> None:
        self.n_complete = n_complete

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        fold = trial.last_step
        if fold is None:
            return False
        complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        others = [
            other.intermediate_values[fold]
            for other in complete
            if fold in other.intermediate_values
        ]
        if len(others) < self.n_complete:
            return False
        return trial.intermediate_values[fold] < float(np.median(others))


def _make_tpe(seed: int) -> TPESampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        # Groups: each loss has parameters of its own. Liar: not what another process is running.
        return TPESampler(seed=seed, multivariate=True, group=True, constant_liar=True)
