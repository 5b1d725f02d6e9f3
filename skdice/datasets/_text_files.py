"""Plain, gzip and xz text files and their lines, with errors that name the file and the line."""

import gzip
import lzma
import os
import re
import zlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from .._files import write_file
from .._inputs import count_of

FilePath: TypeAlias = str | os.PathLike[str]
LINE_END = re.compile(r"\r\n?|\n")
_SEPARATOR_NAMES = {"\t": "a TAB", " ": "one space", ",": "a comma"}


def file_error(path: FilePath, line: int, problem: str) -> ValueError:
    """Make the error that a line of a file is wrong."""
    return ValueError(f"{os.fspath(path)}, line {line}: {problem}")


def count_columns(fields: Sequence[str], separator: str, expected: str) -> str:
    """Say how many columns a line has, and what is expected."""
    got = f"got {count_of(len(fields), 'column')} in {shorten(separator.join(fields))}"
    between = _SEPARATOR_NAMES.get(separator, repr(separator))
    return f"{got}, expected {expected}, separated by {between}."


def read_text(path: FilePath, *, encoding: str = "utf-8", errors: str = "strict") -> str:
    """Read a text file or, once, a pipe: decompressed by its suffix, without byte order mark."""
    path = Path(path)
    if path.is_dir():
        raise FileNotFoundError(f"{path} is a directory. A file is expected.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path} (working directory: {Path.cwd()}).")
    data, suffix = path.read_bytes(), path.suffix.lower()
    decompressors: Any = {".gz": gzip.decompress, ".xz": lzma.decompress}
    try:
        data = decompressors.get(suffix, bytes)(data)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        problem = f"the suffix says {suffix[1:]}, but the file cannot be decompressed ({error})."
        raise ValueError(f"{path}: {problem}") from error
    return _decode(path, data, encoding, errors).removeprefix("\ufeff")


def read_lines(path: FilePath, *, encoding: str = "utf-8", errors: str = "strict") -> list[str]:
    """Read the lines of a text file, as :func:`read_text` reads it."""
    return split_lines(read_text(path, encoding=encoding, errors=errors))


def split_lines(text: str) -> list[str]:
    """Return the lines of a file, which end in LF, CRLF or CR only: U+2028 may be a token."""
    lines = LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def words_and_tags(
    path: FilePath, rows: Sequence[Sequence[tuple[str, str]]], n_lines: int, expected: str
) -> tuple[list[list[str]], list[list[str]]]:
    """Return the words and the tags of the sentences with a word; without any it is an error."""
    rows = [row for row in rows if row]
    if not rows:
        problem = f"the file ends without any sentence. Expected {expected}."
        raise file_error(path, max(n_lines, 1), problem)
    return [[word for word, _ in row] for row in rows], [[tag for _, tag in row] for row in rows]


def _decode(path: FilePath, data: bytes, encoding: str, errors: str) -> str:
    try:
        return data.decode(encoding, errors)
    except UnicodeDecodeError as error:
        line = 1 + len(LINE_END.findall(data[: error.start].decode(encoding, errors="replace")))
        got = f"the bytes {data[error.start : error.end]!r} as {encoding!r} ({error.reason})"
        advice = "Convert it to UTF-8, or pass encoding='latin-1' or another if a reader takes one"
        raise file_error(path, line, f"cannot decode {got}. {advice}.") from error
    except (LookupError, TypeError) as error:
        allowed = "must be the name of a text encoding"
        raise ValueError(f"The 'encoding' parameter {allowed}. Got {encoding!r}.") from error


def suffix_of(path: FilePath) -> str:
    """Return the suffix of a file in lower case, without that of the compression."""
    return Path(Path(path).name.lower().removesuffix(".gz").removesuffix(".xz")).suffix


def write_text(path: FilePath, text: str) -> None:
    """Replace a text file in UTF-8 as a whole, compressed if its suffix is ``.gz`` or ``.xz``."""
    compressors: Any = {".gz": partial(gzip.compress, mtime=0), ".xz": lzma.compress}
    compress = compressors.get(Path(path).suffix.lower(), bytes)
    write_file(path, compress(text.encode("utf-8")))


def check_encodable(text: str, where: str) -> None:
    """Raise a ValueError if UTF-8 cannot hold a text."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        got = f"{where} has half of a surrogate pair, {text[error.start]!r}"
        raise ValueError(f"UTF-8 cannot hold all texts: {got}.") from error


def shorten(text: str) -> str:
    """Return a text as Python writes it, at most 80 characters of it."""
    shown = repr(text)
    return shown if len(shown) <= 80 else shown[:76] + "...'"
