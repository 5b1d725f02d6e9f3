"""Where a study is kept: in memory, in a journal file or in a database."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import (
    BaseStorage,
    InMemoryStorage,
    JournalStorage,
    RDBStorage,
    RetryHeartbeatStaleTrialCallback,
)
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from sqlalchemy.exc import SQLAlchemyError

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler
    from optuna.study import Study

# A worker gives a database a sign of life this often ...
_HEARTBEAT_SECONDS = 60
# ... and without one for so long its trial is run once more.
_STALE_SECONDS = 180
# How long a process waits for others that write to the same SQLite file.
_SQLITE_SECONDS = 120
# Two processes that make the tables at the same moment get in each other's way.
_ATTEMPTS = 5
_STORAGE_ERRORS = (OSError, SQLAlchemyError, StorageInternalError, json.JSONDecodeError)
_DISTRIBUTIONS = {
    "psycopg2": "psycopg2-binary",
    "psycopg": "'psycopg[binary]'",
    "MySQLdb": "mysqlclient",
}


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Hold back Optuna's messages below errors; a search tells of failed trials itself."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, optuna.logging.ERROR))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def open_storage(storage: Any) -> BaseStorage:
    """Return an Optuna storage.

    Parameters
    ----------
    storage : None, str, PathLike or optuna.storages.BaseStorage
        None keeps the study in memory, a path in a journal file, a URL (with "://") in a database.

    Raises
    ------
    TypeError
        If it is of another kind.
    ValueError
        If it cannot be reached, a driver is missing, or a file is no journal.
    """
    if storage is None:
        return InMemoryStorage()
    if isinstance(storage, BaseStorage):
        return storage
    with _refused(storage):
        if isinstance(storage, str) and "://" in storage:
            return _open_database(storage)
        if isinstance(storage, str | os.PathLike) and os.fspath(storage):
            return _open_journal(Path(os.fspath(storage)).absolute())
    raise TypeError(
        f"The 'storage' parameter of DiceSearchCV must be None, the path of a journal file (str or "
        f"PathLike), the URL of a database or an Optuna storage. Got {storage!r} instead."
    )


def open_study(
    storage: Any, name: str, sampler: BaseSampler | None = None, pruner: BasePruner | None = None
) -> Study:
    """Open the study of that name, or create it.

    Raises
    ------
    ValueError
        If the storage cannot be reached, or the study minimises.
    """
    opened = open_storage(storage)
    with _refused(storage):
        study = optuna.create_study(
            storage=opened,
            study_name=name,
            direction="maximize",
            sampler=sampler,
            pruner=pruner,
            load_if_exists=True,
        )
    if study.directions != [optuna.study.StudyDirection.MAXIMIZE]:
        raise ValueError(
            f"The study {name!r} in {show_storage(storage)} does not maximise one score, so it is "
            f"no study of DiceSearchCV. Give another study_name."
        )
    return study


@contextmanager
def lost_storage(storage: Any) -> Iterator[None]:
    """Turn what a storage raises in mid-search into a ConnectionError that says how to go on."""
    try:
        yield
    except Exception as error:
        shown = show_storage(storage)
        # This one Optuna raises while it handles that of the storage.
        cause = error.__context__ if isinstance(error, UnboundLocalError) else error
        if isinstance(cause, _STORAGE_ERRORS):
            problem = (
                f"The storage {show_storage(storage)} was lost in mid-search: {_reason(cause)}"
            )
        elif str(error).startswith("Cannot tell a"):
            problem = (
                f"A trial was given up by another process, since it had no sign of life of it in "
                f"the storage {shown}"
            )
        else:
            raise
        raise ConnectionError(
            f"{problem.rstrip('.')}. The trials that were finished are in it, the one in progress "
            f"is not. The same search with the same storage and study_name goes on with those that "
            f"are missing."
        ) from error


def is_shared(storage: Any) -> bool:
    """Return whether other processes can open the same storage."""
    if isinstance(storage, str) and storage.startswith("sqlite") and "://" in storage:
        database = storage.partition("://")[2].partition("?")[0]
        return database not in ("", "/", "/:memory:")
    return storage is not None and not isinstance(storage, InMemoryStorage)


def show_storage(storage: Any) -> str:
    """Return a storage as an error shows it: without the password of a URL."""
    if isinstance(storage, str) and "://" in storage:
        scheme, _, rest = storage.partition("://")
        login, at, place = rest.rpartition("@")
        user, colon, _ = login.partition(":")
        return repr(f"{scheme}://{user}{':***' if colon else ''}{at}{place}")
    if isinstance(storage, os.PathLike):
        return repr(os.fspath(storage))
    return "memory" if storage is None else repr(storage)


def _open_journal(path: Path) -> BaseStorage:
    # Unlike Optuna's default lock, a symbolic link, this one works on Windows too.
    lock = JournalFileOpenLock(str(path))
    backend = JournalFileBackend(str(path), lock_obj=lock)
    lock.acquire()  # Nobody is in the middle of a line.
    try:
        _check_journal(path)
    finally:
        lock.release()
    return JournalStorage(backend)


def _check_journal(path: Path) -> None:
    """Raise a ValueError if a line is no whole record; Optuna would write behind it."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            if not _is_record(line):
                raise ValueError(
                    f"line {number} is no record of a study: {line[:40]!r}. Give the path of a "
                    f"journal file, or of a new file. If a crash or a full disk damaged it, delete "
                    f"that line and all after it: the trials before it are kept."
                )


def _is_record(line: bytes) -> bool:
    try:
        return line.endswith(b"\n") and "op_code" in json.loads(line)
    except (TypeError, ValueError):
        return False


def _open_database(url: str) -> BaseStorage:
    options: dict[str, Any] = {"engine_kwargs": {"pool_pre_ping": True}}
    if url.startswith("sqlite"):
        options["engine_kwargs"]["connect_args"] = {"timeout": _SQLITE_SECONDS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        if is_shared(url):  # SQLite in memory has a database for each thread.
            options |= {
                "heartbeat_interval": _HEARTBEAT_SECONDS,
                "grace_period": _STALE_SECONDS,
                # Not again and again what may have killed its worker, for lack of memory.
                "heartbeat_stale_trial_callback": RetryHeartbeatStaleTrialCallback(max_retry=1),
            }
        for attempt in range(_ATTEMPTS):
            try:
                return RDBStorage(url, **options)
            except SQLAlchemyError as error:
                if not _made_by_another(error) or attempt + 1 == _ATTEMPTS:
                    raise
                time.sleep(0.1 * 2**attempt)
    raise AssertionError("not reached")


def _made_by_another(error: Exception) -> bool:
    """Return whether another process has just made what this one was about to make."""
    text = str(error).lower()
    return any(phrase in text for phrase in ("already exists", "duplicate key", "unique"))


@contextmanager
def _refused(storage: Any) -> Iterator[None]:
    """Turn what a storage that cannot be opened raises into a ValueError that names it."""
    try:
        yield
    except ImportError as error:
        raise ValueError(
            f"storage={show_storage(storage)} needs a database driver that is not installed. "
            f"{_install_line(error)}"
        ) from error
    # A journal that is none of Optuna's fails in whatever its records lead to.
    except (
        AssertionError,
        LookupError,
        OSError,
        RuntimeError,
        SQLAlchemyError,
        StorageInternalError,
        TypeError,
        ValueError,
    ) as error:
        raise ValueError(
            f"The storage {show_storage(storage)} cannot be opened: {_reason(error)}"
        ) from error


def _install_line(error: ImportError) -> str:
    missing = getattr(error.__cause__ or error, "name", None)
    if not missing:
        return "Install the driver that the URL names."
    return f"Install it with: pip install {_DISTRIBUTIONS.get(missing, missing)}"


def _reason(error: BaseException) -> str:
    """Return the first line of what an error says, of the one that was its cause."""
    while error.__cause__ is not None:
        error = error.__cause__
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    if "readonly database" in line:
        return (
            "it can be read, but not written to. Copy its file to a directory that can be written "
            "to, and give its URL there."
        )
    return line
