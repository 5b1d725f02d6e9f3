"""A directory that takes the place of another one as a whole, or not at all."""

import glob
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def as_path(directory: str | os.PathLike[str]) -> Path:
    """Return an absolute path without symbolic links."""
    if not isinstance(directory, str | os.PathLike) or not os.fspath(directory):
        raise TypeError(f"directory must be a path (str or PathLike); got {directory!r}.")
    return Path(os.path.realpath(os.fspath(directory)))


@contextmanager
def replacing(directory: Path) -> Iterator[Path]:
    """Yield an empty directory that takes the place of another one at the end of the block.

    It lies beside it, is flushed to the disk, and comes in by renaming. If the block raises,
    or the process is killed in it, everything is as before.

    Parameters
    ----------
    directory : Path
        Absolute; it need not exist. :func:`finish_interrupted` has been called for it.

    Raises
    ------
    OSError
        If the file system does not let us.
    """
    new = directory.with_name(f".{directory.name}.skdice-new-{uuid.uuid4().hex[:12]}")
    new.mkdir()
    lock = _lock(new)
    try:
        yield new
        for path in new.iterdir():
            _flush(path)
        _flush(new)
        _swap(new, directory)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def finish_interrupted(directory: Path) -> None:
    """Clear up after processes that were killed while they replaced a directory."""
    old = _aside(directory)
    if old.exists():
        if directory.exists():
            shutil.rmtree(old)
        else:
            old.rename(directory)
    for new in directory.parent.glob(f".{glob.escape(directory.name)}.skdice-new-*"):
        lock = _lock(new)
        if lock is not None:  # Nobody is writing into it.
            shutil.rmtree(new, ignore_errors=True)
            os.close(lock)


def current(directory: Path) -> Path:
    """Return where the content of a directory is: aside, if its replacement was interrupted."""
    old = _aside(directory)
    return old if old.exists() and not directory.exists() else directory


def _aside(directory: Path) -> Path:
    return directory.with_name(f".{directory.name}.skdice-old")


def _swap(new: Path, directory: Path) -> None:
    old = _aside(directory)
    if directory.exists():
        directory.rename(old)
    try:
        new.rename(directory)
    except BaseException:
        if old.exists() and not directory.exists():
            old.rename(directory)
        raise
    with suppress(OSError):  # The new one is in, and complete.
        _flush(directory.parent)
    shutil.rmtree(old, ignore_errors=True)


def _flush(path: Path) -> None:
    if path.is_dir() and os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lock(directory: Path) -> int | None:
    """Return a descriptor that holds the lock of a directory; None if it cannot be had.

    The system releases it when the process dies.
    """
    if fcntl is None:
        return None
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:  # Another process has just cleared it up.
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
