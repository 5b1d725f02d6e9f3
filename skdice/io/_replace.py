"""A directory that takes the place of another one as a whole, or not at all."""

import glob
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")
_READ_ATTEMPTS = 3
_COPY_ATTEMPTS = 30
_LOCK_SECONDS = 60.0


def as_path(directory: str | os.PathLike[str]) -> Path:
    """Return an absolute path without symbolic links."""
    if not isinstance(directory, str | os.PathLike) or not os.fspath(directory):
        raise TypeError(f"directory must be a path (str or PathLike); got {directory!r}.")
    return Path(os.path.realpath(os.fspath(directory)))


@contextmanager
def replacing(directory: Path) -> Iterator[Path]:
    """Yield an empty directory that takes the place of another one at the end of the block.

    It lies beside it, is flushed to the disk, and comes in by renaming. If the block raises,
    or the process is killed in it, everything is as before. Of two that replace the same
    directory, the one that ends last wins.

    Parameters
    ----------
    directory : Path
        Absolute; it need not exist, but its parent does.

    Raises
    ------
    OSError
        If the file system does not let us.
    """
    new = directory.with_name(f".{directory.name}.skdice-new-{uuid.uuid4().hex[:12]}")
    with alone_beside(directory):  # Nobody takes it for abandoned before it is locked.
        _finish_interrupted(directory)
        new.mkdir()
        lock = _lock(new)
    try:
        yield new
        for path in new.iterdir():
            _flush(path)
        _flush(new)
        with alone_beside(directory):
            _finish_interrupted(directory)
            _swap(new, directory)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        if lock is not None:
            os.close(lock)


@contextmanager
def alone_beside(directory: Path) -> Iterator[None]:
    """Keep other processes and threads from renaming directories beside this one in the block.

    Where the file system has no locks, those that come at the same time get an error of it.
    """
    lock = _wait_for_lock(directory.parent)
    try:
        yield
    finally:
        if lock is not None:
            fcntl.flock(lock, fcntl.LOCK_UN)  # A fork may have the descriptor as well.
            os.close(lock)


def read_one_version(directory: Path, read: Callable[[Path], T]) -> T:
    """Return what ``read`` makes of a directory, all of it from one version.

    If the directory was replaced or written to meanwhile, it is read again, in the end from a copy.

    Parameters
    ----------
    directory : Path
        Absolute.
    read : callable
        Gets the path where the content is. Its errors count if nothing changed meanwhile.

    Raises
    ------
    ValueError
        If another process writes there faster than the directory can be copied.
    """
    try:
        return _read_unchanged(directory, read, _READ_ATTEMPTS)
    except _ChangedError:
        with TemporaryDirectory(ignore_cleanup_errors=True) as copies:

            def copy(place: Path) -> Path:
                return shutil.copytree(place, Path(copies, uuid.uuid4().hex))

            return read(_read_unchanged(directory, copy, _COPY_ATTEMPTS))


class _ChangedError(ValueError):
    """A directory changed whenever it was read."""


def _read_unchanged(directory: Path, read: Callable[[Path], T], n_attempts: int) -> T:
    for _ in range(n_attempts):
        before = _version(directory)
        try:
            result = read(current(directory))
        except Exception:
            if _version(directory) == before:
                raise
        else:
            if before and _version(directory) == before:
                return result
    raise _ChangedError(
        f"The directory {str(directory)!r} changed whenever it was read: another process writes "
        f"there. Load it when that one has ended, or load a copy."
    )


def _version(directory: Path) -> list[tuple[object, ...]]:
    """Return what tells a directory and its files from any that take their place."""
    place = current(directory)
    try:
        of_itself = place.stat()
        of_files = [(path.name, _stat(path)) for path in sorted(place.iterdir())]
    except OSError:  # It is not there, or being replaced.
        return []
    return [(place.name, of_itself.st_dev, of_itself.st_ino)] + [
        (name, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
        for name, state in of_files
    ]


def _stat(path: Path) -> os.stat_result:
    return path.stat() if path.exists() else path.lstat()


def _finish_interrupted(directory: Path) -> None:
    """Clear up after processes that were killed while they replaced a directory."""
    old = _aside(directory)
    if old.exists():
        if directory.exists():
            shutil.rmtree(old)
        else:
            old.rename(directory)
    for new in directory.parent.glob(f".{glob.escape(directory.name)}.skdice-new-*"):
        with suppress(BlockingIOError):  # Somebody is writing into it.
            lock = _lock(new)
            if lock is not None:
                shutil.rmtree(new, ignore_errors=True)
                os.close(lock)


def current(directory: Path) -> Path:
    """Return where the content of a directory is: aside, if its replacement was interrupted."""
    old = _aside(directory)
    # It may come in between the two looks.
    return old if not directory.exists() and old.exists() else directory


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
    """Return a descriptor that holds the lock of a directory; None if the system has none.

    The system releases it when the process dies.

    Raises
    ------
    BlockingIOError
        If another process or thread has it.
    """
    if fcntl is None:
        return None
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:  # Another process has just cleared it up.
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise
        return None  # Some network file systems have no locks.
    return descriptor


def _wait_for_lock(directory: Path) -> int | None:
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            return _lock(directory)
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise BlockingIOError(
                    error.errno, "Another process keeps the directory locked", str(directory)
                ) from error
            time.sleep(0.01)
