"""A progress bar over the trials of a search."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from optuna.trial import TrialState

from ._budget import counted_trials

if TYPE_CHECKING:
    from optuna.study import Study

_POLL_SECONDS = 0.5


class TrialProgress:
    """One tqdm bar over the trials of a study, with the best score so far.

    Trials of other processes are in it. Without ``verbose`` it does nothing.
    """

    def __init__(self, study: Study, n_trials: int, verbose: Any) -> None:
        self._study = study
        self._n_trials = n_trials
        self._verbose = bool(verbose)

    def __enter__(self) -> TrialProgress:
        from tqdm.auto import tqdm

        self._bar = tqdm(
            total=self._n_trials, desc="search", unit="trial", disable=not self._verbose
        )
        self.show()
        return self

    def __exit__(self, *error: Any) -> None:
        self.show()
        self._bar.close()

    def show(self) -> None:
        """Show what the study has now."""
        if not self._verbose:
            return
        trials = counted_trials(self._study)
        scores = [trial.values[0] for trial in trials if trial.state == TrialState.COMPLETE]
        if len(trials) == self._bar.n:
            return
        self._bar.n = len(trials)
        if scores:
            self._bar.set_postfix(best=f"{max(scores):.4f}", refresh=False)
        self._bar.refresh()

    @contextmanager
    def polled(self) -> Iterator[None]:
        """Show it now and then, while other processes work."""
        stop = threading.Event()

        def poll() -> None:
            while not stop.wait(_POLL_SECONDS):
                # The bar is no reason to stop a search.
                with suppress(Exception):
                    self.show()

        thread = threading.Thread(target=poll, daemon=True)
        if self._verbose:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            if self._verbose:
                thread.join()
