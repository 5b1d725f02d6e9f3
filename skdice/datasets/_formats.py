"""What a file holds, told by its name and its first lines."""

import json
from collections import Counter
from collections.abc import Sequence
from itertools import compress
from operator import not_, or_

from ._conll import find_separator, is_gap
from ._labeled_text import find_known
from ._pairs import find_layout
from ._text_files import LINE_END, FilePath, first_line, read_text, suffix_of

# Of files whose suffix says nothing (.tsv, .txt), the content does.
_SUFFIXES = {
    ".json": "squad",
    ".conllu": "conllu",
    ".conll": "conll",
    ".bio": "conll",
    ".iob": "conll",
    ".csv": "labeled text",
}
_N_LINES, _N_BYTES = 1000, 1 << 20


def find_format(path: FilePath, *, encoding: str = "utf-8", is_labeled: bool = True) -> str | None:
    """Return the name of a reader without "read_", or None if it cannot be told.

    Where a file may have no labels, the first word of a line is not taken for one. The file may
    still be badly formed: its reader says so. One that cannot be read or decoded is a
    FileNotFoundError or ValueError.
    """
    text = read_text(path, encoding=encoding, n_bytes=_N_BYTES)
    if json_format := _find_json_lines(text):
        return json_format
    by_name = _SUFFIXES.get(suffix_of(path))
    if by_name == "labeled text" and find_layout(first_line(text), ","):
        return "pairs"
    if by_name is not None:
        return by_name
    lines = LINE_END.split(text.rstrip())
    if lines[0].lstrip().startswith("{"):
        return "squad"
    first = next((line for line in lines if line and not line.startswith("#")), "").split("\t")
    if len(first) == 10 and (first[0] in ("1", "0.1") or first[0].startswith("1-")):
        return "conllu"
    # Words and tags in three columns may look like two texts and a label; texts have spaces.
    if find_layout(lines[0]) and any(" " in line for line in lines[1:_N_LINES]):
        return "pairs"
    if _is_conll(lines):
        return "conll"
    has_labels = is_labeled or "\t" in lines[0]
    return "labeled text" if has_labels and _are_labeled_texts(lines) else None


def _find_json_lines(text: str) -> str | None:
    line = first_line(text.lstrip())
    try:
        row = json.loads(line) if line.startswith("{") else {}
    except (ValueError, RecursionError):  # An object of several lines.
        return None
    if "tokens" in row:
        return "tagged json"
    return "labeled json" if "text" in row else None


def _is_conll(lines: Sequence[str]) -> bool:
    """Whether most lines have as many columns, the last without a space, and there are gaps.

    They are not between all lines, as they may be where each line is a text.
    """
    separator = find_separator(lines)
    gaps = [is_gap(line, separator) for line in lines]
    columns = [line.split(separator) for line in compress(lines[:_N_LINES], map(not_, gaps))]
    if not any(gaps) or all(map(or_, gaps, gaps[1:])) or any(" " in row[-1] for row in columns):
        return False
    ((n_columns, n_lines),) = Counter(map(len, columns)).most_common(1)
    return n_columns > 1 and 4 * n_lines >= 3 * len(columns)


def _are_labeled_texts(lines: Sequence[str]) -> bool:
    separator = "\t" if "\t" in lines[0] else " "
    n_cuts = 1 if separator == " " else -1
    first = lines[0].split(separator, n_cuts)
    if find_known("text", first) and find_known("label", first):
        return True
    fields = [line.split(separator, n_cuts) for line in lines[:_N_LINES]]
    return len(first) == 2 and any(" " in text for row in fields for text in row)
