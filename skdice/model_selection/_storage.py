"""Where a study is kept: in memory, in a journal file or in a database."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna
from optuna.exceptions import StorageInternalError
from optuna.storages import (
    BaseStorage,
    InMemoryStorage,
    JournalStorage,
    RDBStorage,
    get_storage,
)

from ._journal_file import JournalFile
from ._journal_lock import journal_lock
from ._retrying_storage import RetryingStorage, first_line

if TYPE_CHECKING:
    from optuna.study import Study

# How long a process waits for others that write to the same SQLite file.
_SQLITE_SECONDS = 120
# Two processes that make the tables at the same moment get in each other's way.
_ATTEMPTS = 5
_DISTRIBUTIONS = {
    "psycopg2": "psycopg2-binary",
    "psycopg": "'psycopg[binary]'",
    "MySQLdb": "mysqlclient",
}


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Hold back Optuna's messages below warnings."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, optuna.logging.WARNING))
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
        If it cannot be reached, or a driver is missing.
    """
    if storage is None:
        return InMemoryStorage()
    if isinstance(storage, BaseStorage):
        return storage
    if isinstance(storage, str) and "://" in storage:
        return _open_database(storage)
    if isinstance(storage, str | os.PathLike) and os.fspath(storage):
        return _open_journal(Path(os.fspath(storage)).absolute())
    raise TypeError(
        f"The 'storage' parameter of DiceSearchCV must be None, the path of a journal file (str or "
        f"PathLike), the URL of a database or an Optuna storage. Got {storage!r} instead."
    )


def open_study(storage: Any, name: str, pruner: Any = None) -> Study:
    """Open the study of that name, or create it.

    A storage that cannot be reached is an error at once; one that is lost later is asked again.

    Raises
    ------
    ValueError
        If the storage cannot be reached, or the study minimises.
    """
    opened = get_storage(open_storage(storage))
    with _reported(storage):
        study = optuna.create_study(
            storage=opened,
            study_name=name,
            direction="maximize",
            pruner=pruner,
            load_if_exists=True,
        )
    if study.directions != [optuna.study.StudyDirection.MAXIMIZE]:
        raise ValueError(
            f"The study {name!r} in {show_storage(storage)} does not maximise one score, so it is "
            f"no study of DiceSearchCV. Give another study_name."
        )
    if isinstance(opened, InMemoryStorage | RetryingStorage):
        return study
    retrying = RetryingStorage(opened, show_storage(storage))
    return optuna.load_study(study_name=name, storage=retrying, pruner=pruner)


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
    with _reported(str(path)):
        path.touch()
        journal = JournalFile(str(path), lock_obj=journal_lock(str(path)))
        journal.repair()
        return JournalStorage(journal)


def _open_database(url: str) -> BaseStorage:
    from sqlalchemy.exc import SQLAlchemyError

    engine_kwargs: dict[str, Any] = {}
    if url.startswith("sqlite"):
        engine_kwargs["connect_args"] = {"timeout": _SQLITE_SECONDS}
    with _reported(url):
        for attempt in range(_ATTEMPTS):
            try:
                return RDBStorage(url, engine_kwargs=engine_kwargs)
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
def _reported(storage: Any) -> Iterator[None]:
    """Turn what a storage that cannot be reached raises into a ValueError that names it."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except ImportError as error:
        raise ValueError(
            f"storage={show_storage(storage)} needs a database driver that is not installed. "
            f"{_install_line(error)}"
        ) from error
    # A file that is no journal fails in whatever its first line leads to.
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


def _reason(error: Exception) -> str:
    if "readonly database" in first_line(error):
        return (
            "it can be read, but not written to. Copy its file to a directory that can be written "
            "to, and give its URL there."
        )
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]
