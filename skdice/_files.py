"""Directories and files that take the place of others as a whole, or not at all."""

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")
# How a file ends that is not complete yet.
UNFINISHED = ".unfinished"


def sha256(path: Path) -> str:
    """Return the SHA-256 of the bytes of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def as_path(directory: str | os.PathLike[str], name: str = "directory") -> Path:
    """Return an absolute path without symbolic links."""
    if not isinstance(directory, str | os.PathLike) or not os.fspath(directory):
        raise TypeError(f"{name} must be a path (str or PathLike); got {directory!r}.")
    return Path(os.path.realpath(os.fspath(directory)))


@contextmanager
def replacing(directory: Path) -> Iterator[Path]:
    """Yield an empty directory that takes the place of another one at the end of the block.

    It comes in by renaming. If the block raises, or the process is killed in it, everything is as
    before. Those that replace the same directory do it in turn. The path is absolute, and its
    parent exists.
    """
    place = _beside(directory)
    new = place / "new"
    with _alone_in(directory.parent):
        _clear(directory)  # A process may have been killed here.
        try:
            new.mkdir(parents=True)
            yield new
            if directory.exists():
                directory.rename(place / "old")
            new.rename(directory)
        finally:
            _clear(directory)


@contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """Yield where to write a file that takes the place of another one at the end of the block.

    It gets the permissions of the old file and comes in by renaming. If the block raises, the old
    file is as it was and nothing is left of the new one.
    """
    # The name may be as long as the file system allows: only a part of it is repeated.
    new = path.with_name(f".{path.name[:40]}.{uuid4().hex[:12]}{UNFINISHED}")
    try:
        yield new
        if path.exists():
            shutil.copymode(path, new)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Replace a file as a whole or leave it as it was; a pipe gets the bytes directly."""
    place = as_path(path, "path")
    if place.exists() and not place.is_file():
        place.write_bytes(data)
    else:
        with explained(place, "The file"), replacing_file(place) as new:
            new.write_bytes(data)


def current(directory: Path) -> Path:
    """Return where the content of a directory is; an interrupted replacement left it aside."""
    old = _beside(directory) / "old"
    # The new directory may come in between the two checks.
    return old if not directory.exists() and old.exists() else directory


def read_one_version(directory: Path, read: Callable[[Path], T]) -> T:
    """Return what ``read`` makes of a directory, all of it from one version.

    It gets the path where the content is, and reads again if the directory was replaced meanwhile:
    what it raised then does not count.
    """
    while True:
        before = _version(directory)
        try:
            result = read(current(directory))
        except Exception:
            if _version(directory) == before:
                raise
        else:
            if _version(directory) == before:
                return result


@contextmanager
def explained(directory: Path, what: str) -> Iterator[None]:
    """Add to an error of the file system what could not be saved, and that nothing was lost."""
    handled = sys.exception()  # By the caller, which is no part of what goes wrong here.
    try:
        yield
    except Exception as error:
        number: int | None = None
        cause: BaseException | None = error
        while number is None and cause not in (None, handled):
            # Libraries in Rust raise errors of their own, and torch another one after the system's.
            found = re.search(r"\(os error (\d+)\)", str(cause))
            number = cause.errno if isinstance(cause, OSError) else found and int(found[1])
            cause = cause.__context__
        if number is None:
            raise
        raise OSError(
            number,
            f"{what} could not be saved ({os.strerror(number)}). What was there before is as it "
            f"was, and nothing is left of what was written. Make room or pass another directory",
            str(directory),
        ) from error


def _version(directory: Path) -> tuple[Path, int, int] | None:
    """Return a value that changes when a directory is replaced or gets other files."""
    place = current(directory)
    try:
        found = place.stat()
    except OSError:  # It is not there, or being replaced.
        return None
    return place, found.st_ino, found.st_mtime_ns


def _beside(directory: Path) -> Path:
    return directory.with_name(f".{directory.name}.skdice-save")


@contextmanager
def _alone_in(parent: Path) -> Iterator[None]:
    """Hold a lock on a directory, where the file system has locks."""
    if fcntl is None:
        yield
        return
    lock = os.open(parent, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _clear(directory: Path) -> None:
    """Put the old directory back unless there is a new one; delete what else an attempt left."""
    place = _beside(directory)
    if (place / "old").exists() and not directory.exists():
        (place / "old").rename(directory)
    shutil.rmtree(place, ignore_errors=True)
