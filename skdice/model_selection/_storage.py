"""Where a study is kept: in memory, in a journal file or in a database."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import optuna
from filelock import FileLock
from optuna.exceptions import ExperimentalWarning
from optuna.storages import (
    BaseStorage,
    InMemoryStorage,
    JournalStorage,
    RDBStorage,
    RetryHeartbeatStaleTrialCallback,
)
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.study import Study
from optuna.trial import FrozenTrial

from .._parameters import not_allowed

# A worker gives a database a sign of life this often ...
_HEARTBEAT_SECONDS = 60
# ... and without one for so long its trial is run again.
_STALE_SECONDS = 180
# How long a process waits for others that write to the same SQLite file.
_SQLITE_SECONDS = 120
# The parameters of a trial may be what kills its process, for lack of memory.
_MOST_RETRIES = 3
# How every record of a journal begins.
_RECORD = b'{"op_code":'


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Hold back Optuna's messages below errors; a search itself reports the trials that failed."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, optuna.logging.ERROR))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def open_storage(storage: Any) -> BaseStorage:
    """Return an Optuna storage: None in memory, a path a journal file, a URL a database."""
    if storage is None:
        return InMemoryStorage()
    if isinstance(storage, BaseStorage):
        return storage
    if _is_url(storage):
        return _open_database(storage)
    if isinstance(storage, str | os.PathLike) and os.fspath(storage):
        return _open_journal(os.path.abspath(os.fspath(storage)))
    allowed = (
        "None, the path of a journal file (str or PathLike), the URL of a database or an "
        "Optuna storage"
    )
    raise not_allowed("DiceSearchCV", "storage", allowed, storage, TypeError)


@contextmanager
def only_search(storage: Any) -> Iterator[bool]:
    """Yield whether no other search works on the file of a storage; False if it has no known file.

    A lock beside the file tells it, which the system releases when a process ends in any way.
    """
    path = os.fspath(storage) if isinstance(storage, str | os.PathLike) else ""
    if _is_url(path):
        path = path.partition("///")[2] if path.startswith("sqlite") else ""
    lock = FileLock(f"{path}.search", timeout=0)
    if path:
        with suppress(OSError, NotImplementedError):  # Another search; file systems without locks.
            lock.acquire()
    is_alone = lock.is_locked
    try:
        yield is_alone
    finally:
        if is_alone:
            with suppress(OSError):
                os.unlink(lock.lock_file)
            lock.release()


def try_again(study: Study, trial: FrozenTrial) -> None:
    """Queue an unfinished trial again with its parameters, unless that was done already."""
    known = [other.system_attrs.get("retry_history", []) for other in study.get_trials(False)]
    if not any(trial.number in numbers for numbers in known):
        with warnings.catch_warnings(action="ignore", category=ExperimentalWarning):
            RetryHeartbeatStaleTrialCallback(max_retry=_MOST_RETRIES)(study, trial)


def _is_url(storage: Any) -> bool:
    return isinstance(storage, str) and "://" in storage


def _open_database(url: str) -> BaseStorage:
    engine: dict[str, Any] = {"pool_pre_ping": True}
    if url.startswith("sqlite"):
        engine["connect_args"] = {"timeout": _SQLITE_SECONDS}
    with warnings.catch_warnings(action="ignore", category=ExperimentalWarning):
        return RDBStorage(
            url,
            engine_kwargs=engine,
            heartbeat_interval=_HEARTBEAT_SECONDS,
            grace_period=_STALE_SECONDS,
            heartbeat_stale_trial_callback=try_again,
        )


def _open_journal(path: str) -> BaseStorage:
    lock = JournalFileOpenLock(path)
    backend = JournalFileBackend(path, lock_obj=lock)
    lock.acquire()
    try:
        _drop_torn_line(path)
    finally:
        lock.release()
    return JournalStorage(backend)


def _drop_torn_line(path: str) -> None:
    """Cut off what a killed process wrote of a last line, as nobody could read what follows it."""
    with open(path, "rb+") as file:
        content = file.read()
        if not _RECORD.startswith(content[: len(_RECORD)]):
            raise ValueError(
                f"The storage {path!r} is no journal of a study: it begins with "
                f"{content[: len(_RECORD)]!r}. Give the path of a journal file, or of a new one."
            )
        if content.endswith(b"\n") or not content:
            return
        file.truncate(content.rfind(b"\n") + 1)
    warnings.warn(
        f"The last line of the journal {path!r} was not written to its end, as when a process is "
        f"killed. It was dropped; all records before it are kept.",
        stacklevel=2,
    )
