"""Where a study is kept: in memory, in a journal file or in a database."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.storages import (
    BaseStorage,
    InMemoryStorage,
    JournalStorage,
    RDBStorage,
    RetryHeartbeatStaleTrialCallback,
)
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from .._parameters import not_allowed

# A worker gives a database a sign of life this often ...
_HEARTBEAT_SECONDS = 60
# ... and without one for so long its trial is run once more.
_STALE_SECONDS = 180
# How long a process waits for others that write to the same SQLite file.
_SQLITE_SECONDS = 120
# How every record of a journal begins.
_RECORD = b'{"op_code":'


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
    """Return an Optuna storage: None in memory, a path a journal file, a URL a database."""
    if storage is None:
        return InMemoryStorage()
    if isinstance(storage, BaseStorage):
        return storage
    if isinstance(storage, str) and "://" in storage:
        return _open_database(storage)
    if isinstance(storage, str | os.PathLike) and os.fspath(storage):
        return _open_journal(os.path.abspath(os.fspath(storage)))
    allowed = (
        "None, the path of a journal file (str or PathLike), the URL of a database or an "
        "Optuna storage"
    )
    raise not_allowed("DiceSearchCV", "storage", allowed, storage, TypeError)


def _open_database(url: str) -> BaseStorage:
    engine: dict[str, Any] = {"pool_pre_ping": True}
    if url.startswith("sqlite"):
        engine["connect_args"] = {"timeout": _SQLITE_SECONDS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return RDBStorage(
            url,
            engine_kwargs=engine,
            heartbeat_interval=_HEARTBEAT_SECONDS,
            grace_period=_STALE_SECONDS,
            # Not again and again what may have killed its worker, for lack of memory.
            heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(max_retry=1),
        )


def _open_journal(path: str) -> BaseStorage:
    lock = _JournalLock(path)
    backend = JournalFileBackend(path, lock_obj=lock)
    lock.acquire()  # Not only before the first record is written.
    lock.release()
    return JournalStorage(backend)


class _JournalLock(JournalFileOpenLock):
    """Optuna's lock of a journal; whoever gets it drops what a killed process left of a line.

    Otherwise the next record would be written behind it, and nobody could read the line.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._path = path

    def acquire(self) -> bool:
        super().acquire()
        try:
            _drop_torn_line(self._path)
        except BaseException:
            self.release()
            raise
        return True


def _drop_torn_line(path: str) -> None:
    """Cut a journal off after its last line end, which every whole record has."""
    with open(path, "rb+") as file:
        start = file.read(len(_RECORD))
        if not _RECORD.startswith(start):
            raise ValueError(
                f"The storage {path!r} is no journal of a study: it begins with {start!r}. Give "
                f"the path of a journal file, or of a new one."
            )
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 1, 0))
        if file.read(1) in (b"", b"\n"):
            return
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
    warnings.warn(
        f"The last line of the journal {path!r} was not written to its end, as when a process is "
        f"killed. It was dropped; all records before it are kept.",
        stacklevel=2,
    )
