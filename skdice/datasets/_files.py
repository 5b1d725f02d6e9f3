"""Plain, gzip and xz text files, with errors that name the file and the line."""

import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

# What reading a compressed file may raise.
_READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)
_PIECE = 1 << 16


def read_text(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> str:
    """Read a whole text file, decompressed by its suffix.

    Parameters
    ----------
    path : str or path-like
        The file. ``.gz`` and ``.xz`` files are decompressed.
    encoding : str, default="utf-8"
        Name of a text encoding.

    Returns
    -------
    text : str
        The text without a leading byte order mark. Line ends are left as they are.

    Raises
    ------
    FileNotFoundError
        If there is no file at `path`, or a directory.
    ValueError
        If the file is not in the format its suffix says, cannot be decoded, or if the encoding is
        unknown.
    """
    return decode_bytes(path, read_bytes(path), encoding).removeprefix("\ufeff")


def decode_bytes(path: str | os.PathLike[str], data: bytes, encoding: str = "utf-8") -> str:
    """Decode what is in a file, with a byte order mark if it has one; errors as in `read_text`."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        intact = data[: error.start].decode(encoding, errors="replace")
        line = intact.count("\n") + 1
        got = error.object[error.start : error.end]
        raise ValueError(
            f"{os.fspath(path)}, line {line}: cannot decode the bytes {got!r} as {encoding!r} "
            f"({error.reason}). Pass the encoding of the file, such as encoding='latin-1'."
        ) from error
    except LookupError as error:
        raise ValueError(
            f"The 'encoding' parameter must be the name of a text encoding. Got {encoding!r} "
            "instead."
        ) from error


def read_lines(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> list[str]:
    r"""Read the lines of a text file, split at ``"\n"`` only.

    One ``"\r"`` at the end of a line goes with the line end. All other line separators of Unicode
    are data: ``str.splitlines`` would break a token such as U+2028 in two.

    Parameters
    ----------
    path : str or path-like
        The file. ``.gz`` and ``.xz`` files are decompressed.
    encoding : str, default="utf-8"
        Name of a text encoding.

    Returns
    -------
    lines : list of str
        ``lines[i]`` is line ``i + 1`` of the file. A final line end makes no empty last line.

    Raises
    ------
    FileNotFoundError, ValueError
        As in :func:`read_text`.
    """
    return list(iterate_lines(path, encoding=encoding))


def iterate_lines(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> Iterator[str]:
    """Iterate over the lines that :func:`read_lines` returns, with only a part of them in memory.

    Errors are raised when their line is reached.
    """
    rest = ""
    for piece in decode_in_pieces(path, encoding=encoding):
        *lines, rest = (rest + piece).split("\n")
        for line in lines:
            yield line.removesuffix("\r")
    if rest:
        yield rest.removesuffix("\r")


def decode_in_pieces(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> Iterator[str]:
    """Iterate over pieces of the text that :func:`read_text` returns; errors as there."""
    with open_bytes(path) as file:
        try:
            text = io.TextIOWrapper(file, encoding=encoding, newline="\n")
            yield text.read(_PIECE).removeprefix("\ufeff")
            while piece := text.read(_PIECE):
                yield piece
        except (UnicodeDecodeError, LookupError, *_READ_ERRORS):
            read_text(path, encoding=encoding)  # Its error says what is wrong, and in which line.
            raise


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Read a file, decompressed by its suffix; errors as in `read_text`."""
    suffix = Path(path).suffix[1:].lower()
    with open_bytes(path) as file:
        try:
            return file.read()
        except _READ_ERRORS as error:
            if suffix not in ("gz", "xz"):
                raise
            raise ValueError(
                f"{os.fspath(path)}: the suffix says {suffix}, but the file cannot be decompressed "
                f"({error})."
            ) from error


def open_bytes(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading, decompressed by its suffix.

    Raises
    ------
    FileNotFoundError
        If there is no file at `path`, or a directory.
    """
    path = Path(path)
    if path.is_dir():
        raise FileNotFoundError(f"{path} is a directory. A file is expected.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path} (working directory: {Path.cwd()}).")
    open_file: Any = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix.lower(), open)
    return open_file(path, "rb")


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
