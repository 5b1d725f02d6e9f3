"""What the files of a local model may ask for: no code and no files of elsewhere."""

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"

# All others are, or may fall back to, kernels that are fetched from a hub and run.
_ATTENTION = ("eager", "sdpa", "flex_attention")


def check_configuration(path: Path, refused: Collection[str] = ()) -> None:
    """Raise a ValueError if a configuration names a kernel of a hub, or has a refused entry.

    A file that is not there asks for nothing.
    """
    if not path.exists():
        return
    for key, value in _entries(read_json(path)):
        if key in refused:
            raise ValueError(f"{str(path)!r} has {key!r}, which names code or files to load.")
        if "attn_implementation" in key:
            # A dict has a name for each part of a model.
            for name in value.values() if isinstance(value, dict) else [value]:
                if not (name is None or isinstance(name, bool) or name in _ATTENTION):
                    raise ValueError(
                        f"{str(path)!r} has {key!r}: {name!r}, which may be code on a hub. Allowed "
                        f"are {', '.join(_ATTENTION)}; or delete the entry."
                    )


def read_json(path: Path) -> dict[str, Any]:
    """Return the object that a JSON file has."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{str(path)!r} is no JSON ({error}).") from error
    if not isinstance(content, dict):
        raise ValueError(f"{str(path)!r} is no JSON object; got {content!r:.50}.")
    return content


def _entries(content: Any) -> Iterator[tuple[str, Any]]:
    """Yield the entries of JSON objects, at every depth."""
    if isinstance(content, dict):
        yield from content.items()
        content = list(content.values())
    for part in content if isinstance(content, list) else ():
        yield from _entries(part)
