"""Plain, gzip and xz text files, with errors that name the file and the line."""

import gzip
import lzma
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_SEPARATOR_NAMES = {"\t": "a TAB", " ": "one space", ",": "a comma"}


def file_error(path: str | os.PathLike[str], line: int, problem: str) -> ValueError:
    """Make the error that a line of a file is wrong."""
    return ValueError(f"{os.fspath(path)}, line {line}: {problem}")


def count_columns(fields: Sequence[str], line: str, separator: str, expected: str) -> str:
    """Say how many columns a line has, and what is expected."""
    s = "" if len(fields) == 1 else "s"
    between = _SEPARATOR_NAMES.get(separator, repr(separator))
    return (
        f"got {len(fields)} column{s} in {shorten(line)}, expected {expected}, separated by "
        f"{between}."
    )


def read_text(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> str:
    """Read a text file, decompressed by its suffix, without a byte order mark at its start."""
    return decode_bytes(path, read_bytes(path), encoding).removeprefix("\ufeff")


def read_lines(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> list[str]:
    r"""Read the lines of a text file, split at ``"\n"`` only, with one ``"\r"`` before it.

    All other line separators of Unicode are data: U+2028 may be a token.
    """
    lines = read_text(path, encoding=encoding).split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def decode_bytes(path: str | os.PathLike[str], data: bytes, encoding: str = "utf-8") -> str:
    """Decode what is in a file, with a byte order mark if it has one."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        intact = data[: error.start].decode(encoding, errors="replace")
        got = error.object[error.start : error.end]
        problem = f"cannot decode the bytes {got!r} as {encoding!r} ({error.reason})"
        hint = "Pass the encoding of the file, such as encoding='latin-1'."
        raise file_error(path, intact.count("\n") + 1, f"{problem}. {hint}") from error
    except LookupError as error:
        raise ValueError(
            f"The 'encoding' parameter must be the name of a text encoding. Got {encoding!r}."
        ) from error


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Read a file or a pipe once, decompressed by its suffix (``.gz``, ``.xz``)."""
    path = Path(path)
    if path.is_dir():
        raise FileNotFoundError(f"{path} is a directory. A file is expected.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path} (working directory: {Path.cwd()}).")
    suffix = path.suffix.lower()
    open_file: Any = {".gz": gzip.open, ".xz": lzma.open}.get(suffix, open)
    try:
        with open_file(path, "rb") as file:
            return file.read()
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        if open_file is open:
            raise
        raise ValueError(
            f"{path}: the suffix says {suffix[1:]}, but the file cannot be decompressed ({error})."
        ) from error


def is_csv(path: str | os.PathLike[str]) -> bool:
    """Whether a name ends in ``.csv``, also before the suffix of a compressed file."""
    return Path(path).name.lower().removesuffix(".gz").removesuffix(".xz").endswith(".csv")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8, compressed if its suffix is ``.gz`` or ``.xz``."""
    data = text.encode("utf-8")
    suffix = Path(path).suffix.lower()
    if suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    elif suffix == ".xz":
        data = lzma.compress(data)
    Path(path).write_bytes(data)


def shorten(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 80 else shown[:76] + "...'"
