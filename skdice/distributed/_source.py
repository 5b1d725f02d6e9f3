"""The parts of a corpus: the Parquet files of a directory."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ._columns import ColumnPlan

# Of a file, read at a time; without it whole columns of a row group are.
BUFFER_BYTES = 1 << 20


@dataclass(frozen=True)
class Part:
    """One Parquet file of a corpus.

    Attributes
    ----------
    name : str
        Path inside the corpus, with slashes.
    path : str
    n_rows : int
    """

    name: str
    path: str
    n_rows: int


def find_parts(source: Any, plan: ColumnPlan) -> list[Part]:
    """Return the parts of a corpus, sorted by name.

    Parameters
    ----------
    source : str or PathLike
        A directory, or one file. Names that start with "_" or "." are left out, as all readers of
        Parquet do.
    plan : ColumnPlan
        Columns that all parts must have.

    Raises
    ------
    TypeError
        If it is no path.
    ValueError
        If there is no part, or one cannot be read or lacks a column.
    """
    if not isinstance(source, str | os.PathLike) or not os.fspath(source):
        raise TypeError(f"source must be a path (str or PathLike); got {source!r}.")
    place = Path(os.path.abspath(source))
    if place.is_file():
        return [_check_part(place, place.name, plan)]
    if not place.is_dir():
        raise ValueError(
            f"There is no directory or Parquet file {str(source)!r}. Pass a path of a file system "
            f"that all machines see under this name."
        )
    paths = {path.relative_to(place).as_posix(): path for path in place.rglob("*.parquet")}
    names = sorted(name for name in paths if not is_hidden(name))
    if not names:
        raise ValueError(f"The directory {str(source)!r} has no file *.parquet.")
    return [_check_part(paths[name], name, plan) for name in names]


def is_hidden(name: str) -> bool:
    """Return whether readers of Parquet pass over a path inside a corpus."""
    return any(step.startswith(("_", ".")) for step in name.split("/"))


def content_digest(path: str | os.PathLike[str]) -> str:
    """Return a digest of what is in a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def open_part(part: Part) -> pq.ParquetFile:
    """Open the file of a part.

    Raises
    ------
    ValueError
        If it cannot be read.
    """
    try:
        return pq.ParquetFile(part.path, buffer_size=BUFFER_BYTES)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(part.name, error) from error


def unreadable(name: str, error: Exception) -> ValueError:
    """Return the error for a part that cannot be read."""
    return ValueError(
        f"Part {name!r} of the source cannot be read as Parquet: {str(error).rstrip('.')}. Write "
        f"it again or take it away."
    )


def _check_part(path: Path, name: str, plan: ColumnPlan) -> Part:
    with open_part(Part(name, str(path), 0)) as file:
        plan.check_schema(file.schema_arrow, name)
        return Part(name, str(path), file.metadata.num_rows)
