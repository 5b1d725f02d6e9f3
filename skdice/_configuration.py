"""What the files of a local model may ask for: no code of a hub, and no endless network."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

CONFIG = "config.json"
# Beside adapters: by a config.json transformers would take the directory for a whole model.
MODEL_CONFIG = "model_config.json"
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"

_MOST_LAYERS = 1000
# Python gives up on a thousand functions in one another.
_MOST_LEVELS = 100
# Of all the world's characters, Unicode has 1.1 million; transformers make room up to the last id.
_HIGHEST_PIECE = 4_000_000
# All others are, or may fall back to, kernels that are fetched from a hub and run.
_ATTENTION = ("eager", "sdpa", "flex_attention")


def check_configuration(directory: Path, name: str = CONFIG) -> None:
    """Raise a ValueError if a file of a model has transformers fetch code, or build without end.

    What the directory lacks is not checked.
    """
    content = read_json(directory / name)
    if not isinstance(content, dict):
        raise ValueError(f"{name} in {str(directory)!r} is no JSON object; got {content!r:.50}.")
    for key, value in entries(content):
        if "attn_implementation" in key:
            _check_attention(directory / name, key, value)
        elif "layer" in key and type(value) is int and value > _MOST_LAYERS:
            raise ValueError(
                f"{name} in {str(directory)!r} has {key!r}: {value}; at most {_MOST_LAYERS} are "
                f"allowed."
            )


def check_vocabulary(directory: Path) -> None:
    """Raise a ValueError if a tokenizer has a piece with an id that no vocabulary reaches."""
    content = read_json(directory / TOKENIZER)
    try:
        vocabulary = content.get("model", {}).get("vocab", {})
        ids = [token["id"] for token in content.get("added_tokens", [])]
        ids += vocabulary.values() if isinstance(vocabulary, dict) else []
        highest = max(ids, default=0)
        is_allowed = highest <= _HIGHEST_PIECE
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(
            f"{TOKENIZER} in {str(directory)!r} is no tokenizer ({error!r})."
        ) from error
    if not is_allowed:
        raise ValueError(
            f"{TOKENIZER} in {str(directory)!r} has a piece with the id {highest}; at most "
            f"{_HIGHEST_PIECE} is allowed."
        )


def read_json(path: Path) -> Any:
    """Return what a JSON file has; an empty dict if there is none.

    A ValueError says that it is no file, which could be read without end, or no JSON, or one with
    too many lists in one another.
    """
    if not os.path.lexists(path):
        return {}
    if not path.is_file():
        raise ValueError(f"{str(path)!r} is no file.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{str(path)!r} is no JSON ({error}).") from error
    level = [content]
    for _ in range(_MOST_LEVELS):
        level = [part for value in level for part in _parts(value)]
    if level:
        raise ValueError(f"{str(path)!r} has more than {_MOST_LEVELS} levels.")
    return content


def entries(content: Any) -> Iterator[tuple[str, Any]]:
    """Yield the entries of JSON objects, at every depth."""
    waiting = [content]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield from value.items()
        waiting += _parts(value)


def _parts(value: Any) -> Iterable[Any]:
    """Return what is in a JSON object or list."""
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _check_attention(path: Path, key: str, value: Any) -> None:
    """Check the name of an attention, or those of a model's parts."""
    for name in value.values() if isinstance(value, dict) else [value]:
        if not (name is None or isinstance(name, bool) or name in _ATTENTION):
            raise ValueError(
                f"{path.name} in {str(path.parent)!r} has {key!r}: {name!r}, which may be code on "
                f"a hub. Allowed are {', '.join(_ATTENTION)}; or delete the entry."
            )
