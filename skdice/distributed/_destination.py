"""Where predictions are written: what belongs there, and what is finished."""

import hashlib
import json
import os
import struct
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from .._digest import digest
from ..io._manifest import installed_versions
from ._source import Part, content_digest

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_MANIFEST = "_skdice.json"
_UNFINISHED = ".unfinished"
_JOB = b"skdice.job"
_SOURCE = b"skdice.source"
_CONTENT = b"skdice.content"
_NO_DIGEST = b"0" * 32
# A Parquet file ends with the length of its footer and four letters.
_TAIL = struct.Struct("<I4x")
_CHUNK_BYTES = 1 << 20
_MOST_LISTED = 5


class Destination:
    """A directory of predictions.

    Its manifest says by what they were made. Each part says in its own metadata to which job it
    belongs and of which content it was made, so that a part is finished or not there, and has a
    digest of itself, so that one that was changed is found.

    Parameters
    ----------
    directory : str or PathLike
    job : dict of str
        What the predictions depend on besides the source, with a digest of each.
    """

    def __init__(self, directory: str | os.PathLike[str], job: Mapping[str, str]) -> None:
        self._directory = Path(os.path.abspath(directory))
        self._job = dict(job)

    @property
    def job_digest(self) -> str:
        """What the metadata of the parts say."""
        return digest(self._job)

    def path(self, part: Part) -> Path:
        """Return where the predictions of a part are."""
        return self._directory / part.name

    def new_file(self, name: str) -> Path:
        """Return a path for a file that is deleted at the next start."""
        return unfinished(self._directory / name)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Make the directory if it is not there, and keep other runs out of it.

        Raises
        ------
        ValueError
            If another run writes into it, or it cannot be made.
        """
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(
                f"The destination {str(self._directory)!r} cannot be made: {error}."
            ) from error
        lock = _lock(self._directory)
        try:
            yield
        finally:
            if lock is not None:
                os.close(lock)

    def prepare(self, parts: Sequence[Part]) -> list[Part]:
        """Return the parts that are not finished; write the manifest if there is none.

        Raises
        ------
        ValueError
            If the directory has other files or predictions of another job, or if a part or its
            source has changed since.
        """
        found = {
            path.relative_to(self._directory).as_posix()
            for path in self._directory.rglob("*")
            if path.is_file() and not _is_unfinished(path.name)
        }
        is_new = _MANIFEST not in found
        foreign = found - {_MANIFEST} - (set() if is_new else {part.name for part in parts})
        if foreign:
            self._raise_foreign(sorted(foreign), is_new)
        if is_new:
            self._write_manifest()
        else:
            self._check_manifest()
        self.clear()
        finished = [part for part in parts if part.name in found]
        for part in finished:
            self._check_finished(part)
        return [part for part in parts if part.name not in found]

    def clear(self) -> None:
        """Delete what is not complete and never will be."""
        for path in self._directory.rglob(f".*{_UNFINISHED}"):
            path.unlink(missing_ok=True)

    def _raise_foreign(self, names: list[str], is_new: bool) -> None:
        shown = ", ".join(map(repr, names[:_MOST_LISTED]))
        more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
        if is_new or any(not name.endswith(".parquet") for name in names):
            what = "files that are no predictions of skdice"
            fix = "Give a directory that is new or empty"
        else:
            what = "parts that the source does not have"
            fix = "Give another destination, or the source that it was made of"
        raise ValueError(
            f"The destination {str(self._directory)!r} has {what}: {shown}{more}. {fix}."
        )

    def _write_manifest(self) -> None:
        content = {"versions": installed_versions(), "job": self._job}
        place = self._directory / _MANIFEST
        new = unfinished(place)
        new.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        os.replace(new, place)

    def _check_manifest(self) -> None:
        place = self._directory / _MANIFEST
        try:
            known = dict(json.loads(place.read_text(encoding="utf-8"))["job"])
        except (KeyError, OSError, TypeError, ValueError) as error:
            raise ValueError(
                f"{str(place)!r} is damaged ({error}). Delete the directory."
            ) from error
        different = [name for name in self._job if known.get(name) != self._job[name]]
        if different:
            raise ValueError(
                f"The destination {str(self._directory)!r} has predictions of another run, which "
                f"differs in {', '.join(different)}. Give another destination, or delete this one."
            )

    def _check_finished(self, part: Part) -> None:
        path = self.path(part)
        shown = repr(str(path))
        try:
            metadata = _metadata(path)
            is_whole = _is_whole(path, metadata)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise _damaged(shown, error) from error
        if metadata.get(_JOB) != self.job_digest.encode():
            raise ValueError(
                f"{shown} was not written by this run. Give a destination that is new or empty."
            )
        if not is_whole:
            raise _damaged(shown, "it was changed after it was written")
        if metadata.get(_SOURCE) != content_digest(part.path).encode():
            raise ValueError(
                f"Part {part.name!r} of the source has changed since {shown} was made of it. "
                f"Delete that file, and the part is predicted again, or give another destination."
            )


def unfinished(place: Path) -> Path:
    """Return a path beside another one for what is not complete yet."""
    return place.with_name(f".{place.name}.{uuid.uuid4().hex[:12]}{_UNFINISHED}")


def stamped(schema: pa.Schema, job: str, source: str) -> pa.Schema:
    """Return a schema that says to which job a part belongs, and of what it was made.

    It has room for a digest of the file, which :func:`seal` writes.
    """
    return schema.with_metadata(
        {_JOB: job.encode(), _SOURCE: source.encode(), _CONTENT: _NO_DIGEST}
    )


def seal(file: BinaryIO) -> None:
    """Write into a Parquet file the digest of all that is in it."""
    digest, place = _digest_without(file, _NO_DIGEST)
    file.seek(place)
    file.write(digest)


def is_finished(place: Path, job: str, source: str) -> bool:
    """Return whether another process has finished a part in the meantime."""
    if not place.exists():
        return False
    try:
        metadata = _metadata(place)
        is_whole = _is_whole(place, metadata)
    except (OSError, ValueError, pa.ArrowException):
        return False
    stamp = (metadata.get(_JOB), metadata.get(_SOURCE))
    return is_whole and stamp == (job.encode(), source.encode())


def _metadata(path: Path) -> dict[bytes, bytes]:
    """Return what the file itself says, not its copy of the schema, which has no digest."""
    return dict(pq.read_metadata(path).metadata or {})


def _is_whole(path: Path, metadata: Mapping[bytes, bytes]) -> bool:
    """Return whether a part is, byte for byte, as it was written."""
    known = metadata.get(_CONTENT, b"")
    if len(known) != len(_NO_DIGEST):
        return False
    with open(path, "rb") as file:
        return _digest_without(file, known)[0] == known


def _digest_without(file: BinaryIO, known: bytes) -> tuple[bytes, int]:
    """Return the digest of a Parquet file without its own digest, and where that is."""
    file.seek(-_TAIL.size, os.SEEK_END)
    (n_bytes,) = _TAIL.unpack(file.read())
    start = file.seek(-_TAIL.size - n_bytes, os.SEEK_END)
    footer = file.read()
    place = footer.index(known, footer.rindex(_CONTENT))
    blake = hashlib.blake2b(digest_size=len(known) // 2)
    file.seek(0)
    while chunk := file.read(min(_CHUNK_BYTES, start - file.tell())):
        blake.update(chunk)
    blake.update(footer[:place] + _NO_DIGEST + footer[place + len(known) :])
    return blake.hexdigest().encode(), start + place


def _damaged(shown: str, reason: object) -> ValueError:
    return ValueError(f"{shown} is damaged ({reason}). Delete it, and it is predicted again.")


def _is_unfinished(name: str) -> bool:
    return name.startswith(".") and name.endswith(_UNFINISHED)


def _lock(directory: Path) -> Any:
    """Return a descriptor that holds the lock of a directory; None if the system has none.

    The system releases it when the process dies.
    """
    if fcntl is None:
        return None
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise ValueError(
            f"Another run is writing into the destination {str(directory)!r}. Wait for it, or give "
            f"another destination."
        ) from error
    except OSError:  # Some network file systems have no locks.
        os.close(descriptor)
        return None
    return descriptor
