"""Which trials of a study count, and who may run the next one."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import Trial, TrialState, create_trial

from ._liveness import Watch, worker_attribute

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

_WITHDRAWN = "withdrawn"
_SHORTEST_WAIT = 0.05
_LONGEST_WAIT = 2.0


def counts(trial: FrozenTrial) -> bool:
    """Return whether a trial is finished and one of those that were asked for."""
    if trial.state == TrialState.FAIL:
        return _WITHDRAWN not in trial.user_attrs
    return trial.state.is_finished()


def counted_trials(study: Study) -> list[FrozenTrial]:
    """Return the complete, pruned and failed trials, without those withdrawn."""
    return [trial for trial in study.get_trials(deepcopy=False) if counts(trial)]


def withdraw(study: Study, number: int, reason: str) -> None:
    """Mark a running trial as failed and not counted, unless it is finished already."""
    storage = study._storage
    trial_id = storage.get_trial_id_from_study_id_trial_number(study._study_id, number)
    with suppress(UpdateFinishedTrialError):
        storage.set_trial_user_attr(trial_id, _WITHDRAWN, reason)
        storage.set_trial_state_values(trial_id, TrialState.FAIL)


class TrialBudget:
    """Hands out trials until the study has as many as were asked for, over all processes.

    Parameters
    ----------
    study : optuna.study.Study
    n_trials : int
        Complete, pruned and failed trials that the study is to end with.
    seconds : float, optional
        After that long, no more are handed out.
    """

    def __init__(self, study: Study, n_trials: int, seconds: float | None = None) -> None:
        self._study = study
        self._n_trials = n_trials
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._watch = Watch()

    def claim(self) -> Trial | None:
        """Return a new trial to run, or None when there are enough or time is up.

        While other processes run the last ones it waits for them: one that dies has to be replaced.
        """
        wait = _SHORTEST_WAIT
        while self._deadline is None or time.monotonic() < self._deadline:
            n_finished, running = self.progress()
            if n_finished >= self._n_trials:
                return None
            if n_finished + len(running) < self._n_trials:
                trial = self._ask()
                if trial is not None:
                    return trial
            else:
                time.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
        return None

    def progress(self) -> tuple[int, list[int]]:
        """Return how many trials are finished and count, and the numbers of those that run.

        Trials of dead processes are withdrawn.
        """
        n_finished, running = 0, []
        for trial in self._study.get_trials(deepcopy=False):
            if counts(trial):
                n_finished += 1
            elif trial.state == TrialState.RUNNING:
                if self._watch.is_stale(trial):
                    withdraw(self._study, trial.number, "stale")
                else:
                    running.append(trial.number)
        return n_finished, running

    def _ask(self) -> Trial | None:
        """Return a new trial, or None if other processes were faster.

        Of those that ask at the same time, the ones with the smaller numbers stay. Whoever has the
        largest number of all that stay has seen all others, so there are never too many.
        """
        trial = self._make_trial()
        try:
            n_finished, running = self.progress()
            before = sum(number < trial.number for number in running)
            if n_finished + before < self._n_trials:
                return trial
        except BaseException:
            withdraw(self._study, trial.number, "interrupted")
            raise
        withdraw(self._study, trial.number, "surplus")
        return None

    def _make_trial(self) -> Trial:
        """Return a new trial with its process in it from the first moment on.

        ``Study.ask`` writes that later, and nobody could tell whose trial it is if the process dies
        in between.
        """
        template = create_trial(state=TrialState.RUNNING, user_attrs=worker_attribute())
        study = self._study
        return Trial(study, study._storage.create_new_trial(study._study_id, template))
