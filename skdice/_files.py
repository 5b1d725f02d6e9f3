"""Replace directories and files as a whole, or not at all.

The new files of a directory are written into a hidden directory inside it. When all of them are
there, they are its content, and take the places of the old ones. The directory itself stays: it may
be a mount point, the working directory, or lie where nobody may write.
"""

import fcntl
import hashlib
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from .exceptions import warn

T = TypeVar("T")
# The end of the name of a file that is not complete yet.
UNFINISHED = ".unfinished"
# The file that makes a directory a saved estimator.
MANIFEST = "skdice.json"
# The name of the hidden directory; savers take turns by a lock on it.
WORK = ".skdice-save"
_SECONDS = 5.0  # that a saver waits for another one before it says so
_TRIES = 200  # of loading a directory that is replaced meanwhile


def sha256(path: Path) -> str:
    """Return the SHA-256 of the bytes of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def as_path(directory: str | os.PathLike[str], name: str = "directory") -> Path:
    """Return an absolute path without symbolic links."""
    if not isinstance(directory, str | os.PathLike) or not os.fspath(directory):
        raise TypeError(f"{name} must be a path (str or PathLike); got {directory!r}.")
    if "\0" in os.fspath(directory):
        raise ValueError(f"{name} must be a path, which has no NUL; got {directory!r:.80}.")
    return Path(os.path.realpath(os.fspath(directory)))


@contextmanager
def replacing(directory: Path) -> Iterator[Path]:
    """Yield an empty directory whose files replace those of another one at the end of the block.

    If the block raises, or the process is killed in it, everything is as before. Savers of the same
    directory take turns. The path is absolute, and its parent exists.
    """
    with working_on(directory) as work:
        new = work / "new"
        new.mkdir()
        yield new
        gone = {path.name for path in directory.iterdir()} - {path.name for path in new.iterdir()}
        new.rename(work / "ready")  # From here on these files are the content of the directory.
        _move_in(directory)
        for name in gone - {WORK}:
            (directory / name).unlink()


@contextmanager
def working_on(directory: Path) -> Iterator[Path]:
    """Yield an empty hidden directory inside another one, which nobody else changes meanwhile.

    The other one is made if it is missing; if it is still empty at the end, it goes again.
    """
    is_new, work = not directory.exists(), directory / WORK
    with _lock(directory):
        try:
            _move_in(directory)  # A process may have been killed here.
            for left in work.iterdir():
                shutil.rmtree(left)
            yield work
        finally:
            _move_in(directory)
            shutil.rmtree(work, ignore_errors=True)
            if is_new:
                with suppress(OSError):  # It has files now.
                    directory.rmdir()


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
    """Return where the content of a directory is; an interrupted replacement left it elsewhere."""
    ready = directory / WORK / "ready"
    return ready if os.path.exists(ready) else directory


def read_one_version(directory: Path, read: Callable[[Path], T]) -> T:
    """Return what ``read`` makes of a saved directory, all of it from one version.

    It gets the path where the content is, and reads again if the directory was replaced meanwhile:
    what it raised then does not count. It is a ValueError if that happens every time.
    """
    for _ in range(_TRIES):
        before = _version(directory)
        try:
            result = read(current(directory))
        except Exception:
            if _version(directory) == before:
                raise
        else:
            if _version(directory) == before:
                return result
    what = f"The directory {str(directory)!r} was replaced during each of {_TRIES} attempts to load"
    raise ValueError(f"{what} it. Load it when nobody saves to it.")


def check_not_inside_saved(place: Path) -> None:
    """Raise a ValueError if a path lies in the directory of a saved estimator."""
    for parent in place.parents:
        if os.path.isfile(parent / MANIFEST):
            what = f"{str(place)!r} lies in {str(parent)!r}, the directory of a saved estimator"
            raise ValueError(f"{what}, which a save replaces as a whole. Pass one outside of it.")


@contextmanager
def explained(directory: Path, what: str) -> Iterator[None]:
    """Add to an error of the file system what could not be saved, and that nothing was lost."""
    handled = sys.exception()  # What the caller handles has nothing to do with the save.
    try:
        yield
    except ValueError:  # It says itself what is wrong.
        raise
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
        kept = "What was there before is as it was, and nothing is left of what was written"
        what = f"{what} could not be saved ({os.strerror(number)}). {kept}"
        advice = "Make room or pass another directory"
        raise OSError(number, f"{what}. {advice}", str(directory)) from error


def _version(directory: Path) -> tuple[Path, int, int] | None:
    """Return a value that changes when a saved directory is replaced."""
    place = current(directory)
    try:
        found = (place / MANIFEST).stat()
    except OSError:  # It is not there, or being replaced.
        return None
    return place, found.st_ino, found.st_mtime_ns


def _lock(directory: Path) -> ExitStack:
    """Make the hidden directory inside another one; its lock ends with the value returned."""
    work = directory / WORK
    while True:
        # Other savers may make and delete both directories at any time.
        with suppress(FileExistsError):
            if not directory.exists():
                directory.mkdir()
        with suppress(FileNotFoundError), ExitStack() as opened:
            with suppress(FileExistsError):
                work.mkdir()
            lock = os.open(work, os.O_RDONLY)
            opened.callback(os.close, lock)
            _wait_for(lock, directory)
            if os.path.samestat(os.fstat(lock), work.stat()):
                return opened.pop_all()


def _wait_for(lock: int, directory: Path) -> None:
    """Take a lock, and say so if that takes long."""
    began = time.monotonic()
    with suppress(OSError):  # Some file systems have no locks.
        while time.monotonic() < began + _SECONDS:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                time.sleep(0.02)
        warn(f"Another process or thread is saving to {str(directory)!r}; this one waits for it.")
        fcntl.flock(lock, fcntl.LOCK_EX)


def _move_in(directory: Path) -> None:
    """If all new files are there, put them in their places."""
    work = directory / WORK
    if not (work / "ready").exists():
        return
    copy = work / "copy"
    for path in (work / "ready").iterdir():
        copy.unlink(missing_ok=True)
        try:
            os.link(path, copy)
        except OSError:  # Some file systems have no hard links.
            shutil.copy(path, copy)
        copy.replace(directory / path.name)
    copy.unlink(missing_ok=True)  # It stays if it is a link to the file that it replaces.
    (work / "ready").rename(work / "done")
