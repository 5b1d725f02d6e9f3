"""Files of JSON objects, read one object after the other."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ._files import decode_in_pieces, shorten, write_text

_KINDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "an integer",
    bool: "true or false",
}
_WHITE_SPACE = re.compile(r"[ \t\n\r]*")


def read_objects(path: str | os.PathLike[str]) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Iterate over the objects of a JSON list, or of JSON lines.

    Objects may also stand in several lines each without a list around them. Only the object at hand
    is parsed, so that the file may be large.

    Parameters
    ----------
    path : str or path-like
        The file in UTF-8, plain or compressed (``.gz``, ``.xz``).

    Yields
    ------
    row : int
        The number of the object in the file, from 0.
    place : str
        File, line and row, for errors.
    value : dict
        The object.
    """
    scanner = _Scanner(path)
    row = 0
    is_list = scanner.take("[")
    is_over = scanner.take("]") if is_list else not scanner.peek()
    while not is_over:
        yield row, *scanner.read_object(row)
        row += 1
        if not is_list:
            is_over = not scanner.peek()
            continue
        is_over = scanner.take("]")
        if not is_over and not scanner.take(","):
            raise scanner.make_error("',' or ']' is expected after an object of the list")
    if scanner.peek():
        raise scanner.make_error("nothing is expected after the list")


def get_field(place: str, value: Any, key: str, *kinds: type) -> Any:
    """Get a field of an object, which must be of one of the kinds of JSON given by Python types."""
    if type(value) is not dict:
        raise make_kind_error(place, value, dict)
    if key not in value:
        keys = ", ".join(map(repr, value)) or "none"
        raise ValueError(f"{place}: {key!r} is missing. Got the keys {keys}.")
    # The types of JSON have no subtypes, and True is no integer.
    if type(value[key]) not in kinds:
        raise make_kind_error(f"{place}, {key!r}", value[key], *kinds)
    return value[key]


def make_kind_error(place: str, value: Any, *kinds: type) -> ValueError:
    """Make the error that a value of a JSON file is not of an allowed kind."""
    allowed = " or ".join(_KINDS[kind] for kind in kinds)
    got = json.dumps(value, ensure_ascii=False)
    got = got if len(got) <= 80 else got[:77] + "..."
    return ValueError(f"{place}: {allowed} is expected. Got {got} instead.")


def write_objects(
    path: str | os.PathLike[str], objects: Iterable[dict[str, Any]], *, as_list: bool
) -> None:
    """Write objects as a JSON list with one object a line, or as JSON lines."""
    lines = [json.dumps(value, ensure_ascii=False) for value in objects]
    content = "[\n" + ",\n".join(lines) + "\n]\n" if as_list else "".join(f"{s}\n" for s in lines)
    write_text(path, content)


class _Scanner:
    """The text of a JSON file, of which only the part being read is decoded."""

    def __init__(self, path: str | os.PathLike[str]):
        self._path = path
        self._pieces = decode_in_pieces(path)
        self._text = ""
        self._position = 0
        self._line = 1
        # Characters of the file before the text, and those before the current line.
        self._n_dropped = 0
        self._line_start = 0

    def peek(self) -> str:
        """Skip white space and return the next character, empty at the end of the file."""
        while True:
            match = _WHITE_SPACE.match(self._text, self._position)
            assert match is not None
            self._advance(match.end())
            if self._position < len(self._text):
                return self._text[self._position]
            if not self._grow():
                return ""

    def take(self, char: str) -> bool:
        """Skip the next character if it is this one."""
        is_next = self.peek() == char
        if is_next:
            self._position += 1
        return is_next

    def read_object(self, row: int) -> tuple[str, dict[str, Any]]:
        self.peek()
        line = self._line
        place = f"{os.fspath(self._path)}, line {line}, row {row}"
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._position)
                break
            except json.JSONDecodeError as error:
                if self._grow():
                    continue
                self._advance(error.pos)
                problem = f"row {row}, which begins in line {line}, is not JSON ({error.msg})"
                raise self.make_error(problem) from error
            except (ValueError, RecursionError) as error:
                # A number of thousands of digits, or brackets nested thousands of times.
                raise ValueError(f"{place}: the JSON cannot be read ({error}).") from error
        self._advance(end)
        if type(value) is not dict:
            raise make_kind_error(place, value, dict)
        return place, value

    def make_error(self, problem: str) -> ValueError:
        column = self._n_dropped + self._position - self._line_start + 1
        got = shorten(self._text[self._position : self._position + 80].split("\n")[0])
        return ValueError(
            f"{os.fspath(self._path)}, line {self._line}, column {column}: {problem}. Got {got}."
        )

    def _advance(self, position: int) -> None:
        n_lines = self._text.count("\n", self._position, position)
        if n_lines:
            self._line += n_lines
            last = self._text.rfind("\n", self._position, position)
            self._line_start = self._n_dropped + last + 1
        self._position = position

    def _grow(self) -> bool:
        """Read on, whether there is more; by as much as there is, so that parsing again pays."""
        rest = self._text[self._position :]
        new: list[str] = []
        n_new = 0
        while n_new <= len(rest):
            piece = next(self._pieces, None)
            if piece is None:
                break
            new.append(piece)
            n_new += len(piece)
        if not n_new:
            return False
        self._n_dropped += self._position
        self._position = 0
        self._text = "".join([rest, *new])
        return True


_DECODER = json.JSONDecoder()
