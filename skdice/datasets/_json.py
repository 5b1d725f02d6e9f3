"""Files of JSON: objects with errors that name file, line and row, and rows as JSON lines."""

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

from ._text_files import LINE_END, FilePath, file_error, read_text, shorten, write_text

_KINDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "an integer",
    bool: "true or false",
}


def read_objects(path: FilePath) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield row, place (for errors) and value of the objects of a JSON list or of JSON lines."""
    # Strings of JSON have no line ends in them, and between values all line ends mean the same.
    text = LINE_END.sub("\n", read_text(path))
    if not text.strip():
        return
    try:
        content = json.loads(text)
        rows = content if isinstance(content, list) else [content]
        found = [(os.fspath(path), value) for value in rows]
    except (ValueError, RecursionError) as error:  # Also of numbers of thousands of digits.
        if getattr(error, "msg", "") != "Extra data":
            line = getattr(error, "lineno", 1)
            raise file_error(path, line, f"is not JSON ({error}).") from error
        lines = [(i, line) for i, line in enumerate(text.split("\n"), start=1) if line.strip()]
        found = [(f"{os.fspath(path)}, line {i}", _parse(path, i, line)) for i, line in lines]
    for row, (place, value) in enumerate(found):
        place = f"{place}, row {row}"
        if type(value) is not dict:
            raise make_kind_error(place, value, dict)
        yield row, place, value


def _parse(path: FilePath, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise file_error(path, number, f"is not JSON ({error}). Got {shorten(line)}.") from error


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
