"""Reading of plain, gzip and xz text files, with errors that name the file and the line."""

import gzip
import lzma
import os
import zlib
from pathlib import Path


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
    data = _read_bytes(Path(path))
    try:
        text = data.decode(encoding)
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
    return text.removeprefix("\ufeff")


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
    lines = read_text(path, encoding=encoding).split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _read_bytes(path: Path) -> bytes:
    if path.is_dir():
        raise FileNotFoundError(f"{path} is a directory. A file is expected.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path} (working directory: {Path.cwd()}).")
    data = path.read_bytes()
    suffix = path.suffix.lower()
    try:
        if suffix == ".gz":
            return gzip.decompress(data)
        if suffix == ".xz":
            return lzma.decompress(data)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise ValueError(
            f"{path}: the suffix says {suffix[1:]}, but the file cannot be decompressed ({error})."
        ) from error
    return data


def shorten(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 80 else shown[:76] + "...'"
