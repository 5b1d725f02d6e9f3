"""Stops trials whose mean over the folds so far is below that of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from optuna.pruners import BasePruner
from optuna.trial import TrialState

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial


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
