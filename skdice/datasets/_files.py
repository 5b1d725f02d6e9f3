"""Plain, gzip and xz text files, with errors that name the file and the line."""

import gzip
import lzma
import os
import zlib
from pathlib import Path
from typing import Any

# What reading a compressed file may raise.
_READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)


def read_text(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> str:
    """Read a whole text file, decompressed by its suffix (``.gz``, ``.xz``).

    The text has no leading byte order mark. Line ends are left as they are.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, if the file is not in the format its suffix says, cannot be
        decoded, or if the encoding is unknown.
    """
    return decode_bytes(path, read_bytes(path), encoding).removeprefix("\ufeff")


def read_lines(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> list[str]:
    r"""Read the lines of a text file, split at ``"\n"`` only, with errors as :func:`read_text`.

    One ``"\r"`` at the end of a line goes with the line end. All other line separators of Unicode
    are data: ``str.splitlines`` would break a token such as U+2028 in two. A final line end makes
    no empty last line.
    """
    lines = read_text(path, encoding=encoding).split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def decode_bytes(path: str | os.PathLike[str], data: bytes, encoding: str = "utf-8") -> str:
    """Decode what is in a file, with a byte order mark if it has one; errors as in `read_text`."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        intact = data[: error.start].decode(encoding, errors="replace")
        got = error.object[error.start : error.end]
        raise ValueError(
            f"{os.fspath(path)}, line {intact.count(chr(10)) + 1}: cannot decode the bytes {got!r} "
            f"as {encoding!r} ({error.reason}). Pass the encoding of the file, such as "
            "encoding='latin-1'."
        ) from error
    except LookupError as error:
        raise ValueError(
            f"The 'encoding' parameter must be the name of a text encoding. Got {encoding!r} "
            "instead."
        ) from error


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Read a file or a pipe once, decompressed by its suffix; errors as in `read_text`."""
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
    except _READ_ERRORS as error:
        if open_file is open:
            raise
        raise ValueError(
            f"{path}: the suffix says {suffix[1:]}, but the file cannot be decompressed ({error})."
        ) from error


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
