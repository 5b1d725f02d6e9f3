"""Reader and writer of brat's standoff format: a text, and its annotations in a file beside it."""

import itertools
import os
import re
from pathlib import Path

from .._inputs import Span
from .._typing import Spans, Texts
from ._files import decode_bytes, read_bytes, read_lines, shorten, write_text
from ._left_out import LeftOut
from ._spans import Mention, check_texts_and_spans, find_spans

_ENTITY = re.compile(r"T[^\t ]*\t([^\t ]+) ([0-9]+ [0-9]+(?:;[0-9]+ [0-9]+)*)(?:\t(.*))?")
_OTHERS = {
    "R": "relations",
    "*": "equivalences",
    "E": "events",
    "A": "attributes",
    "M": "attributes",
    "N": "normalizations",
    "#": "notes",
}


def read_brat(path: str | os.PathLike[str]) -> tuple[list[str], list[list[Span]]]:
    """Read texts and entities from brat's standoff files.

    Parameters
    ----------
    path : str or path-like
        An ``.ann`` file with its ``.txt`` file beside it, or a directory of them, also in folders
        of it. Files are in UTF-8; those of a directory are read in the order of their names.

    Returns
    -------
    X : list of str
        The texts as they stand, with their line ends.
    y : list of list of tuple of (int, int, str)
        The entities of each text, ``(start, end, label)`` sorted by start, triggers of events
        among them. Offsets count characters, the end is exclusive. Parts of an entity with only
        white space between them, which brat makes of one over a line end, are one span.

    Warns
    -----
    UserWarning
        With counts and rows (files, from 0), of what is left out: other discontinuous entities,
        relations, equivalences, events, attributes, normalizations, notes, and texts without an
        ``.ann`` file.

    Raises
    ------
    FileNotFoundError
        If there is nothing at `path`, or an ``.ann`` file has no text.
    ValueError
        If a line is not in the format, a span does not lie in its text or the file says another
        text of it, or there is no ``.ann`` file. Errors name the file and the line.

    See Also
    --------
    write_brat : The other direction.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skdice.datasets import read_brat
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text, annotations = (Path(folder) / name for name in ("a.txt", "a.ann"))
    ...     _ = text.write_text("Anna smiles.", encoding="utf-8")
    ...     _ = annotations.write_text("T1\\tPER 0 4\\tAnna", encoding="utf-8")
    ...     read_brat(folder)
    (['Anna smiles.'], [[(0, 4, 'PER')]])
    """
    X: list[str] = []
    y: list[list[Span]] = []
    left_out = LeftOut()
    for row, file in enumerate(_list_files(path, left_out)):
        text_file = file.with_suffix(".txt")
        if not text_file.is_file():
            raise FileNotFoundError(f"{file}: there is no file {text_file.name} beside it.")
        # A byte order mark is a character of the text to brat.
        text = decode_bytes(text_file, read_bytes(text_file))
        X.append(text)
        y.append(_read_annotations(file, text, row, left_out))
    left_out.warn(path)
    return X, y


def write_brat(path: str | os.PathLike[str], X: Texts, y: Spans) -> None:
    """Write texts and entities as brat's standoff files.

    Predictions are annotations to brat, to be corrected. Their scores are not written: brat has no
    place for them. The labels must also stand in the ``annotation.conf`` of the collection.

    Parameters
    ----------
    path : str or path-like
        A directory, new or empty. The files are named by row: ``0.txt``, ``0.ann``, with as many
        zeros in front as it takes to sort them.
    X : list, Series or array of str
        The texts.
    y : list of list of tuple of (int, int, str)
        The entities of each text as ``(start, end, label)`` with offsets in characters, such as
        ``predict_entities`` gives them. Labels must have no white space.

    Raises
    ------
    FileExistsError
        If there is something in the directory.
    ValueError
        If a span does not lie in its text, a label has white space, or a text cannot be encoded.
        The error names the row.

    See Also
    --------
    read_brat : The other direction.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skdice.datasets import write_brat
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_brat(folder, ["Anna smiles."], [[(0, 4, "PER")]])
    ...     print((Path(folder) / "0.ann").read_text(encoding="utf-8").expandtabs())
    T1      PER 0 4 Anna
    """
    texts, spans = check_texts_and_spans(X, y)
    for i, row in enumerate(spans):
        for _, _, label, *_ in row:
            if label.split() != [label]:
                raise ValueError(
                    f"Labels for brat must have no white space; row {i} of y has {label!r}."
                )
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty. Pass a new or empty directory.")
    width = len(str(len(texts) - 1))
    for i, (text, row) in enumerate(zip(texts, spans)):
        lines = []
        for number, (start, end, label, *_) in enumerate(row, start=1):
            # White space of any kind could end the line in some program.
            shown = re.sub(r"\s", " ", text[start:end])
            lines.append(f"T{number}\t{label} {start} {end}\t{shown}\n")
        write_text(folder / f"{i:0{width}}.txt", text)
        write_text(folder / f"{i:0{width}}.ann", "".join(lines))


def _list_files(path: str | os.PathLike[str], left_out: LeftOut) -> list[Path]:
    if not Path(path).is_dir():
        if Path(path).suffix != ".ann":
            raise ValueError(f"An .ann file or a directory is expected. Got {os.fspath(path)!r}.")
        return [Path(path)]
    files = sorted(Path(path).rglob("*.ann"))
    if not files:
        raise ValueError(f"{os.fspath(path)}: the directory has no .ann file.")
    texts = set(Path(path).rglob("*.txt"))
    without = len(texts.difference(file.with_suffix(".txt") for file in files))
    if without:
        left_out.add("texts without an .ann file", None, without)
    return files


def _read_annotations(file: Path, text: str, row: int, left_out: LeftOut) -> list[Span]:
    mentions = []
    for number, line in enumerate(read_lines(file), start=1):
        place = f"{file}, line {number}"
        if not line.strip():
            continue
        if line[0] in _OTHERS:
            left_out.add(_OTHERS[line[0]], row)
            continue
        match = _ENTITY.fullmatch(line)
        if match is None:
            raise ValueError(
                f"{place}: got {shorten(line)}, expected an ID, a TAB, the label and the offsets, "
                "such as 'T1<TAB>PER 0 4<TAB>Anna'."
            )
        label, offsets, shown = match.groups()
        parts = [tuple(map(int, part.split(" "))) for part in offsets.split(";")]
        gaps = [text[end:start] for (_, end), (start, _) in itertools.pairwise(parts)]
        if any(gap.strip() for gap in gaps):
            find_spans(text, [Mention(place, start, end, label) for start, end in parts])
            left_out.add("discontinuous entities", row)
            continue
        mentions.append(Mention(place, parts[0][0], parts[-1][1], label, shown))
    return find_spans(text, mentions)
