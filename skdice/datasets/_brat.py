"""Reader and writer of brat's standoff format: a text, and its annotations in a file beside it."""

import re
from itertools import pairwise
from pathlib import Path

from .._files import as_path, explained, replacing
from .._inputs import Span
from .._typing import Spans, Texts
from ._spans import Annotated, Mention, check_annotated, find_spans
from ._text_files import FilePath, decode_bytes, read_bytes, read_text, shorten, split_lines

_PAIR = "[0-9]{1,15} [0-9]{1,15}"
_ENTITY = re.compile(rf"T[^\t ]*\t([^\t ]+) ({_PAIR}(?:;{_PAIR})*)(?:\t(.*))?")
_OTHERS = {
    "R": "relations",
    "*": "equivalences",
    "E": "events",
    "A": "attributes",
    "M": "attributes",
    "N": "normalizations",
    "#": "notes",
}


def read_brat(path: FilePath) -> tuple[list[str], list[list[Span]]]:
    """Read texts and entities from brat's standoff files.

    Other discontinuous entities than those below, relations, events, attributes, notes and texts
    without an ``.ann`` file are left out; a warning counts them.

    Parameters
    ----------
    path : str or path-like
        An ``.ann`` file with its ``.txt`` file beside it, or a directory of them, also in folders
        of it. Files are in UTF-8; those of a directory are read in the order of their names.

    Returns
    -------
    X : list of str
        The texts as they stand, with their line ends.
    y : list of list of (start, end, label)
        The entities of each text, sorted, triggers of events among them. Offsets count characters,
        the end is exclusive. Parts of an entity with only white space between them, which brat
        makes of one over a line end, are one span.

    Raises
    ------
    FileNotFoundError
        If there is nothing at `path`, or an ``.ann`` file has no text.
    ValueError
        If a line is not in the format, a span does not lie in its text or the file says another
        text of it, or there is no ``.ann`` file. Errors name the file and the line.
    """
    rows = Annotated("read_brat", path)
    for row, file in enumerate(_list_files(Path(path), rows)):
        text_file = file.with_suffix(".txt")
        if not text_file.is_file():
            raise FileNotFoundError(f"{file}: there is no file {text_file.name} beside it.")
        # A byte order mark is a character of the text to brat.
        text = decode_bytes(text_file, read_bytes(text_file))
        # brat writes the CR of a CRLF in an entity before a space, where no line can begin.
        lines = split_lines(file, read_text(file).replace("\r ", "  "))
        mentions = []
        for number, line in enumerate(lines, start=1):
            mention = _read_entity(f"{file}, line {number}", text, line)
            if isinstance(mention, Mention):
                mentions.append(mention)
            elif mention:
                rows.leave_out(mention, row)
        rows.add(text, find_spans(text, mentions))
    return rows.finish("text")


def write_brat(path: FilePath, X: Texts, y: Spans) -> None:
    """Write texts and entities as brat's standoff files.

    Predictions are annotations to brat, to be corrected; it has no place for scores. The labels
    must also stand in the ``annotation.conf`` of the collection.

    Parameters
    ----------
    path : str or path-like
        A directory, new or empty. The files are named by row: ``0.txt``, ``0.ann``, with as many
        zeros in front as it takes to sort them.
    X : list, Series or array of str
    y : list of list of (start, end, label)
        The entities of each text, such as ``predict_entities`` gives them. Labels must have no
        white space.

    Raises
    ------
    FileExistsError
        If there is something in the directory.
    ValueError
        If a span does not lie in its text, a label has white space, or a text cannot be encoded.
        The error names the row.
    """
    texts, spans = check_annotated(X, y)
    for i, row in enumerate(spans):
        for _, _, label, *_ in row:
            if label.split() != [label]:
                raise ValueError(
                    f"Labels for brat must have no white space; row {i} of y has {label!r}."
                )
    folder = as_path(path, "path")
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty. Pass a new or empty directory.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    width = len(str(len(texts) - 1))
    with explained(folder, "The texts"), replacing(folder, is_flushed=False) as new:
        for i, (text, row) in enumerate(zip(texts, spans)):
            lines = ""
            for number, (start, end, label, *_) in enumerate(row, start=1):
                # White space of any kind could end the line in some program.
                shown = re.sub(r"\s", " ", text[start:end])
                lines += f"T{number}\t{label} {start} {end}\t{shown}\n"
            (new / f"{i:0{width}}.txt").write_bytes(text.encode("utf-8"))
            (new / f"{i:0{width}}.ann").write_bytes(lines.encode("utf-8"))


def _list_files(path: Path, rows: Annotated) -> list[Path]:
    if not path.is_dir():
        if path.suffix != ".ann":
            raise ValueError(f"An .ann file or a directory is expected. Got {str(path)!r}.")
        return [path]
    files = sorted(path.rglob("*.ann"))
    if not files:
        raise ValueError(f"{path}: the directory has no .ann file.")
    texts = set(path.rglob("*.txt")).difference(file.with_suffix(".txt") for file in files)
    rows.leave_out("texts without an .ann file", None, len(texts))
    return files


def _read_entity(place: str, text: str, line: str) -> Mention | str:
    """Return the entity of a line, else what the line has that is left out, if anything."""
    if line[:1] in _OTHERS or not line.strip():
        return _OTHERS.get(line[:1], "")
    match = _ENTITY.fullmatch(line)
    if match is None:
        example = "an ID, a TAB, the label and the offsets, such as 'T1<TAB>PER 0 4<TAB>Anna'"
        raise ValueError(f"{place}: got {shorten(line)}, expected {example}.")
    label, offsets, shown = match.groups()
    parts = [tuple(map(int, part.split(" "))) for part in offsets.split(";")]
    if any(text[end:start].strip() for (_, end), (start, _) in pairwise(parts)):
        find_spans(text, [Mention(place, start, end, label) for start, end in parts])
        return "discontinuous entities"
    return Mention(place, parts[0][0], parts[-1][1], label, shown)
