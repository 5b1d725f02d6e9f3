"""``skdice.json``: what a saved directory holds, with a digest of each of its files."""

import hashlib
import importlib.metadata
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._configuration import CONFIG, MODEL_CONFIG, TOKENIZER, TOKENIZER_CONFIG
from .._version import __version__
from ..nn._adapters import ADAPTER_CONFIG, ADAPTER_WEIGHTS
from ._values import from_json, to_json

MANIFEST = "skdice.json"
CARD = "README.md"
WEIGHTS = "model.safetensors"
FORMAT_VERSION = 1
_WHOLE = (WEIGHTS, CONFIG)
_ADAPTERS = (ADAPTER_WEIGHTS, ADAPTER_CONFIG, MODEL_CONFIG)
_REQUIRED = (TOKENIZER, TOKENIZER_CONFIG)
_PACKAGES = ("torch", "transformers", "scikit-learn")
_VALUES = ("parameters", "state", "network", "metrics")
_ENTRIES = {"estimator": str, "versions": dict, "files": dict, **dict.fromkeys(_VALUES, dict)}


def installed_versions() -> dict[str, str]:
    """Return the versions of skdice and of what it builds on."""
    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"skdice": __version__, **versions}


@dataclass(frozen=True)
class Manifest:
    """A fitted estimator but its weights and its tokenizer.

    Attributes
    ----------
    estimator : str
        Name of the class.
    parameters, state, network : dict of str to object
        Constructor parameters, what ``fit`` set, and what the network is built from.
    metrics : dict of str to float
    versions : dict of str to str
        Of the packages that saved it; by default those installed.
    """

    estimator: str
    parameters: dict[str, Any]
    state: dict[str, Any]
    network: dict[str, Any]
    metrics: dict[str, float]
    versions: dict[str, str] = field(default_factory=installed_versions)


def encode_manifest(manifest: Manifest) -> dict[str, Any]:
    """Return what ``skdice.json`` will have, but the files.

    Raises
    ------
    ValueError
        If JSON cannot hold a parameter or a part of the state; the message has its name.
    """
    return {
        "format_version": FORMAT_VERSION,
        "estimator": manifest.estimator,
        "versions": manifest.versions,
        **{
            entry: {key: to_json(part, key) for key, part in getattr(manifest, entry).items()}
            for entry in _VALUES
        },
    }


def write_manifest(directory: Path, content: dict[str, Any]) -> None:
    """Write ``skdice.json`` into a directory in which all other files are."""
    files = {
        path.name: {"size": path.stat().st_size, "sha256": file_digest(path)}
        for path in sorted(directory.iterdir())
        if path.name != CARD  # People edit it.
    }
    content = {**content, "files": files}
    content["sha256"] = content_digest(content)
    (directory / MANIFEST).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def read_manifest(directory: Path) -> Manifest:
    """Read ``skdice.json`` and check all files of a directory against it.

    Raises
    ------
    ValueError
        If something is missing, damaged or newer than this skdice; it says what to do.
    """
    content = _read_content(directory)
    _check_files(directory, content["files"])
    try:
        return Manifest(
            estimator=content["estimator"],
            versions=content["versions"],
            **{
                entry: {key: from_json(part) for key, part in content[entry].items()}
                for entry in _VALUES
            },
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise damaged(directory, f"{MANIFEST} has a value that cannot be read ({error})") from error


def read_estimator_name(directory: Path) -> str:
    """Return the name of the class that was saved, without a look at the other files.

    Raises
    ------
    ValueError
        If ``skdice.json`` is damaged or newer than this skdice.
    """
    return _read_content(directory)["estimator"]


def listed_files(directory: Path) -> set[str]:
    """Return the names of the files that belong to a saved directory.

    Raises
    ------
    ValueError
        If its ``skdice.json`` is damaged or newer than this skdice.
    """
    return {MANIFEST, CARD, *_read_content(directory)["files"]}


def has_adapters(directory: Path) -> bool:
    """Whether a saved directory has adapters, and not the weights that they are for."""
    return ADAPTER_WEIGHTS in listed_files(directory)


def _read_content(directory: Path) -> dict[str, Any]:
    _check_inside(directory, MANIFEST)
    try:
        content = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise damaged(directory, f"{MANIFEST} is no JSON ({error})") from error
    if not isinstance(content, dict) or not isinstance(content.get("format_version"), int):
        raise damaged(directory, f"{MANIFEST} has no format_version")
    if content["format_version"] > FORMAT_VERSION:
        versions = content.get("versions")
        saved_by = versions.get("skdice") if isinstance(versions, dict) else None
        raise ValueError(
            f"The directory {str(directory)!r} has format {content['format_version']}, saved by "
            f"skdice {saved_by}; this skdice reads formats up to {FORMAT_VERSION}. Upgrade it: pip "
            f"install -U skdice."
        )
    digest = content.pop("sha256", None)
    if digest != content_digest(content):
        raise damaged(directory, f"{MANIFEST} was changed after it was saved")
    for name, kind in _ENTRIES.items():
        if not isinstance(content.get(name), kind):
            raise damaged(directory, f"{MANIFEST} has no {name!r}")
    return content


def _check_files(directory: Path, files: dict[str, Any]) -> None:
    network, other = (_ADAPTERS, _WHOLE) if ADAPTER_WEIGHTS in files else (_WHOLE, _ADAPTERS)
    for name in (*network, *_REQUIRED):
        if name not in files:
            raise damaged(directory, f"{MANIFEST} lists no {name}")
    for name in other:  # By which transformers would load another network.
        if name in files:
            raise damaged(directory, f"{MANIFEST} lists {name} beside {network[0]}")
    for name, expected in files.items():
        if name != os.path.basename(name) or not isinstance(expected, dict):
            raise damaged(directory, f"{MANIFEST} lists {name!r}, which is no file of it")
        path = directory / name
        if not path.is_file():
            raise damaged(directory, f"{name} is missing")
        _check_inside(directory, name)
        size = path.stat().st_size
        if size != expected.get("size"):
            raise damaged(
                directory, f"{name} has {size} bytes, and {expected.get('size')} were saved"
            )
        if file_digest(path) != expected.get("sha256"):
            raise damaged(directory, f"{name} was changed after it was saved (its SHA-256 differs)")


def _check_inside(directory: Path, name: str) -> None:
    """Raise a ValueError if a file is a link that leads out of what was saved or downloaded."""
    place, target = directory.resolve(), (directory / name).resolve()
    # The cache of a hub has links to the blobs of the same model.
    root = place.parents[1] if place.parent.name == "snapshots" else place
    if not target.is_relative_to(root):
        raise damaged(directory, f"{name} is a link out of it, to {str(target)!r}")


def damaged(directory: Path, what: str) -> ValueError:
    """Return the error for a directory that is not as it was saved."""
    return ValueError(
        f"The directory {str(directory)!r} is damaged: {what}. Copy it again from where it was "
        f"saved, or save the estimator again."
    )


def content_digest(content: dict[str, Any]) -> str:
    """Return the SHA-256 of what JSON will hold."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
