"""Files of JSON, with errors that name the file, the line and the row or place."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ._text_files import LINE_END, FilePath, read_text, shorten, write_text

_KINDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "an integer",
    bool: "true or false",
}
_SPACE = re.compile(r"[ \t\n]*")
_DECODER = json.JSONDecoder()


def read_objects(path: FilePath) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield row, place (for errors) and value of the objects of a JSON list, or of JSON lines.

    Objects may also stand in several lines each without a list around them.
    """
    # Strings of JSON have no line ends in them, and between values all kinds are the same.
    text = LINE_END.sub("\n", read_text(path))
    position = _skip_space(text, 0)
    is_list = text.startswith("[", position)
    position = _skip_space(text, position + is_list)
    row, line, counted = 0, 1, 0
    while not text.startswith("]", position) if is_list else position < len(text):
        if is_list and row > 0:
            if not text.startswith(",", position):
                problem = "',' or ']' is expected after an object of the list"
                raise _make_error(path, text, position, problem)
            position = _skip_space(text, position + 1)
        line += text.count("\n", counted, position)
        counted = position
        place = f"{os.fspath(path)}, line {line}, row {row}"
        value, position = _decode(path, text, position, f"row {row}, which begins in line {line},")
        if type(value) is not dict:
            raise make_kind_error(place, value, dict)
        yield row, place, value
        row += 1
    if position + is_list < len(text.rstrip(" \t\n")):
        position = _skip_space(text, position + 1)
        raise _make_error(path, text, position, "nothing is expected after the list")


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


def get_items(place: str, value: dict[str, Any], key: str, kind: type) -> Any:
    """Get a list or object that is a field of an object; an empty one if there is none or null."""
    return get_field(place, value, key, kind) if value.get(key) else kind()


def make_kind_error(place: str, value: Any, *kinds: type) -> ValueError:
    """Make the error that a value of a JSON file is not of an allowed kind."""
    allowed = " or ".join(_KINDS[kind] for kind in kinds)
    return ValueError(f"{place}: {allowed} is expected. Got {show(value)} instead.")


def show(value: Any) -> str:
    """Return a value of a JSON file as JSON, shortened."""
    try:
        got = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "a value nested too deeply to be shown"
    return got if len(got) <= 80 else got[:77] + "..."


def write_objects(path: FilePath, objects: Iterable[dict[str, Any]], *, as_list: bool) -> None:
    """Write objects as a JSON list with one object a line, or as JSON lines."""
    lines = [json.dumps(value, ensure_ascii=False) for value in objects]
    content = "[\n" + ",\n".join(lines) + "\n]\n" if as_list else "".join(f"{s}\n" for s in lines)
    write_text(path, content)


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _decode(path: FilePath, text: str, position: int, what: str) -> tuple[Any, int]:
    """Return the value that begins at a position of the text, and where the next one may begin."""
    try:
        value, end = _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as error:
        raise _make_error(path, text, error.pos, f"{what} is not JSON ({error.msg})") from error
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits, or brackets nested thousands of times.
        problem = f"the JSON that begins here cannot be read ({error})"
        raise _make_error(path, text, position, problem) from error
    return value, _skip_space(text, end)


def _make_error(path: FilePath, text: str, position: int, problem: str) -> ValueError:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    got = shorten(text[position : position + 80].split("\n")[0])
    return ValueError(f"{os.fspath(path)}, line {line}, column {column}: {problem}. Got {got}.")
