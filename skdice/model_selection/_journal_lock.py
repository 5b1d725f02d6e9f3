"""The lock of a journal file that the system releases when its process dies."""

from __future__ import annotations

import os
from typing import Any

from optuna.storages.journal import JournalFileOpenLock, JournalFileSymlinkLock

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class FlockLock:
    """Lock of a file by ``flock``.

    The locks of Optuna are files: that of a killed process stays, and others wait half a minute
    before they break it.

    Parameters
    ----------
    path : str
        File to lock; it must exist.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Wait for the lock."""
        descriptor = os.open(self._path, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Give the lock back."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_path": self._path, "_descriptor": None}


def journal_lock(path: str) -> Any:
    """Return the lock that fits the system and the file system of a file, which must exist."""
    if fcntl is None:
        return JournalFileOpenLock(path)
    lock = FlockLock(path)
    try:
        lock.acquire()
    except OSError:  # Some network file systems have no flock.
        return JournalFileSymlinkLock(path)
    lock.release()
    return lock
