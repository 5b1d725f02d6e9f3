"""Where predictions are written: what belongs there, and what is finished."""

import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
_MOST_LISTED = 5


class Destination:
    """A directory of predictions.

    Its manifest says by what they were made. Each part says in its own metadata to which job it
    belongs and of which content it was made, so that a part is finished or not there.

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
            If the directory has other files or predictions of another job, or if the source has
            changed since.
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
        except (OSError, pa.ArrowException) as error:
            raise ValueError(
                f"{shown} is damaged ({error}). Delete it, and it is predicted again."
            ) from error
        if metadata.get(_JOB) != self.job_digest.encode():
            raise ValueError(
                f"{shown} was not written by this run. Give a destination that is new or empty."
            )
        if metadata.get(_SOURCE) != content_digest(part.path).encode():
            raise ValueError(
                f"Part {part.name!r} of the source has changed since {shown} was made of it. "
                f"Delete that file, and the part is predicted again, or give another destination."
            )


def unfinished(place: Path) -> Path:
    """Return a path beside another one for what is not complete yet."""
    return place.with_name(f".{place.name}.{uuid.uuid4().hex[:12]}{_UNFINISHED}")


def stamped(schema: pa.Schema, job: str, source: str) -> pa.Schema:
    """Return a schema that says to which job a part belongs, and of what it was made."""
    return schema.with_metadata({_JOB: job.encode(), _SOURCE: source.encode()})


def is_finished(place: Path, job: str, source: str) -> bool:
    """Return whether another process has finished a part in the meantime."""
    if not place.exists():
        return False
    metadata = _metadata(place)
    return metadata.get(_JOB) == job.encode() and metadata.get(_SOURCE) == source.encode()


def _metadata(path: Path) -> dict[bytes, bytes]:
    return dict(pq.read_schema(path).metadata or {})


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
