"""A storage that is asked again while it is out of reach."""

from __future__ import annotations

import copy
import functools
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

# A restart or a failover of a database takes less; after STALE_SECONDS without a sign of life
# others would take over the trial.
PATIENCE_SECONDS = 120.0
_FIRST_WAIT = 0.1
_LONGEST_WAIT = 5.0
# What SQLite calls operational and no time heals: the file is another one, or may not be written.
_PERMANENT = ("no such table", "no such column", "readonly database")
# User attribute by which a trial is found that was made although its maker got an error.
_CLAIM = "claim"


class StorageLostError(ConnectionError):
    """A storage was out of reach for longer than one waits for it."""


def is_transient(error: BaseException) -> bool:
    """Return whether an operation of a storage that failed may work a little later.

    Lost connections, databases that restart or are locked, files that are out of reach.
    """
    return any(map(_is_transient, _causes(error)))


def _is_transient(error: BaseException) -> bool:
    from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
    from sqlalchemy.exc import TimeoutError as PoolTimeoutError

    if isinstance(error, OperationalError | InterfaceError):
        text = str(error).lower()
        return not any(phrase in text for phrase in _PERMANENT)
    if isinstance(error, DBAPIError):
        return error.connection_invalidated
    return isinstance(error, OSError | PoolTimeoutError)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _retried(name: str) -> Callable[..., Any]:
    """Return a method that asks the storage until it answers."""

    def method(self: RetryingStorage, *args: Any, **kwargs: Any) -> Any:
        return self._until_it_works(functools.partial(getattr(self.storage, name), *args, **kwargs))

    method.__name__ = name
    method.__doc__ = getattr(BaseStorage, name).__doc__
    return method


class RetryingStorage(BaseStorage):
    """Asks another storage again while it is out of reach, for a limited time.

    Each operation takes effect once: a trial that was made, or a state that was set, although the
    answer was lost on the way is not made or set again.

    Parameters
    ----------
    storage : optuna.storages.BaseStorage
    name : str
        What errors call it.
    """

    def __init__(self, storage: BaseStorage, name: str) -> None:
        self.storage = storage
        self._name = name
        self._down_since: float | None = None

    create_new_study = _retried("create_new_study")
    delete_study = _retried("delete_study")
    set_study_user_attr = _retried("set_study_user_attr")
    set_study_system_attr = _retried("set_study_system_attr")
    get_study_id_from_name = _retried("get_study_id_from_name")
    get_study_name_from_id = _retried("get_study_name_from_id")
    get_study_directions = _retried("get_study_directions")
    get_study_user_attrs = _retried("get_study_user_attrs")
    get_study_system_attrs = _retried("get_study_system_attrs")
    get_all_studies = _retried("get_all_studies")
    set_trial_param = _retried("set_trial_param")
    get_trial_id_from_study_id_trial_number = _retried("get_trial_id_from_study_id_trial_number")
    get_trial_number_from_id = _retried("get_trial_number_from_id")
    get_trial_param = _retried("get_trial_param")
    set_trial_intermediate_value = _retried("set_trial_intermediate_value")
    set_trial_user_attr = _retried("set_trial_user_attr")
    set_trial_system_attr = _retried("set_trial_system_attr")
    get_trial = _retried("get_trial")
    get_all_trials = _retried("get_all_trials")
    get_n_trials = _retried("get_n_trials")
    get_best_trial = _retried("get_best_trial")
    remove_session = _retried("remove_session")

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        """Create a trial; one that an attempt made without an answer is found again."""
        if template_trial is None:
            return self._until_it_works(lambda: self.storage.create_new_trial(study_id))
        claim = uuid.uuid4().hex
        template = copy.deepcopy(template_trial)
        template.user_attrs = {**template.user_attrs, _CLAIM: claim}
        is_first = True

        def create() -> int:
            nonlocal is_first
            if not is_first:
                for trial in self.storage.get_all_trials(study_id, deepcopy=False):
                    if trial.user_attrs.get(_CLAIM) == claim:
                        return trial._trial_id
            is_first = False
            return self.storage.create_new_trial(study_id, template)

        return self._until_it_works(create)

    def set_trial_state_values(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None = None
    ) -> bool:
        """Set state and values; if an attempt did so without an answer, that counts."""
        is_first = True

        def set_state() -> bool:
            nonlocal is_first
            try:
                was_first, is_first = is_first, False
                return self.storage.set_trial_state_values(trial_id, state, values)
            except UpdateFinishedTrialError:
                trial = self.storage.get_trial(trial_id)
                is_same = values is None or list(values) == trial.values
                if was_first or trial.state != state or not is_same:
                    raise
                return True

        return self._until_it_works(set_state)

    def _until_it_works(self, operation: Callable[[], Any]) -> Any:
        wait = _FIRST_WAIT
        while True:
            try:
                result = operation()
            except Exception as error:
                if isinstance(error, StorageInternalError) and not is_transient(error):
                    raise StorageLostError(
                        f"The storage {self._name} does not take what is written to it: "
                        f"{first_line(error)}."
                    ) from error
                if not is_transient(error):
                    raise
                self._wait(wait, error)
                wait = min(2 * wait, _LONGEST_WAIT)
            else:
                self._down_since = None
                return result

    def _wait(self, seconds: float, error: Exception) -> None:
        """Wait, or raise if that was done for long enough; then all others fail at once."""
        now = time.monotonic()
        if self._down_since is None:
            self._down_since = now
            warnings.warn(
                f"The storage {self._name} does not answer ({first_line(error)}). It is asked "
                f"again for {PATIENCE_SECONDS:g} seconds.",
                UserWarning,
                stacklevel=5,
            )
        if now - self._down_since >= PATIENCE_SECONDS:
            raise StorageLostError(
                f"The storage {self._name} was lost in mid-search: {first_line(error)}. It was "
                f"asked again for {PATIENCE_SECONDS:g} seconds. The trials that were finished are "
                f"in it, the one in progress is not. When it is back, the same search with the "
                f"same storage and study_name goes on with the trials that are missing."
            ) from error
        try:
            time.sleep(seconds)
        except BaseException:
            # Whoever stops it by hand does not want what is left to do to wait as well.
            self._down_since = -PATIENCE_SECONDS
            raise


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, of the one that was its cause."""
    *_, root = _causes(error)
    text = str(root).strip() or type(root).__name__
    return text.splitlines()[0].rstrip(".")
