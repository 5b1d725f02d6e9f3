"""Which base model a name stands for: other files may come to lie under the same path."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Documentation, and weights in forms that are not loaded.
_NOT_LOADED = (".md", ".h5", ".msgpack", ".ot", ".onnx")
_Stamp = tuple[int, ...]
# Of each file the digest, and the stamp by which one sees that it is the same file still.
_KNOWN: dict[str, tuple[_Stamp, str]] = {}


def base_model_digest(model: str | os.PathLike[str]) -> str:
    """Return a digest of the files of a base model: weights, configuration, tokenizer.

    The model is a directory, or a hub id: of that, the files in the hub's cache on this machine
    count. The digest is "" if there are no weights on this machine yet. A file is read again only
    if its size or times have changed. Nothing is asked of the network.
    """
    place = _directory(os.fspath(model))
    paths = [
        path
        for path in ([] if place is None else sorted(place.iterdir()))
        if path.name[0] != "." and path.suffix not in _NOT_LOADED and path.is_file()
    ]
    if not any(path.suffix in (".safetensors", ".bin") for path in paths):
        return ""
    blake = hashlib.blake2b(digest_size=16)
    for path in paths:
        blake.update(f"|{path.name}|{_file_digest(path)}|".encode("utf-8", "surrogateescape"))
    return blake.hexdigest()


def base_model_digests(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return the digest of each base model among parameters (``model``, ``step__model``)."""
    return {
        name: base_model_digest(value)
        for name, value in sorted(parameters.items())
        if name.rpartition("__")[2] == "model" and isinstance(value, str | os.PathLike)
    }


def _directory(model: str) -> Path | None:
    if os.path.isdir(model):
        return Path(model)
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        config = try_to_load_from_cache(model, "config.json")
    except HFValidationError:  # Neither a directory nor a hub id.
        return None
    return Path(config).parent if isinstance(config, str) else None


def _file_digest(path: Path) -> str:
    status = path.stat()
    # The time of the last change of status cannot be set back, as that of the content can.
    stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    key = os.path.abspath(path)
    known = _KNOWN.get(key)
    if known is None or known[0] != stamp:
        with open(path, "rb") as file:
            content = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16))
        known = _KNOWN[key] = (stamp, content.hexdigest())
    return known[1]
