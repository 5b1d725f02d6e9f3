"""``skdice.json``: what a saved directory holds, with a digest of each of its files."""

import hashlib
import json
import os
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .._configuration import CONFIG, MODEL_CONFIG, TOKENIZER, TOKENIZER_CONFIG, read_json
from .._version import __version__
from ..nn import ADAPTER_CONFIG, ADAPTER_WEIGHTS
from ._onnx import is_exported_file
from ._values import from_json, to_json

MANIFEST = "skdice.json"
CARD = "README.md"
WEIGHTS = "model.safetensors"
FORMAT_VERSION = 2
_WHOLE = (WEIGHTS, CONFIG)
_ADAPTERS = (ADAPTER_WEIGHTS, ADAPTER_CONFIG, MODEL_CONFIG)
_PACKAGES = ("torch", "transformers", "scikit-learn")
_VALUES = ("parameters", "state", "network", "metrics")
_ENTRIES = {"estimator": str, "versions": dict, "files": dict, **dict.fromkeys(_VALUES, dict)}


def installed_versions() -> dict[str, str]:
    """Return the versions of skdice and of what it builds on."""
    return {"skdice": __version__, **{name: version(name) for name in _PACKAGES}}


@dataclass(frozen=True)
class Manifest:
    """A fitted estimator but its weights and its tokenizer."""

    estimator: str  # name of the class
    parameters: dict[str, Any]  # of the constructor
    state: dict[str, Any]  # what fit set
    network: dict[str, Any]  # what the network is built from
    metrics: dict[str, float]
    versions: dict[str, str] = field(default_factory=installed_versions)  # that saved it

    @property
    def has_adapters(self) -> bool:
        """Whether it was saved without the weights that its adapters are for."""
        return bool(self.network["base_digest"])


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write ``skdice.json`` into a directory in which all other files are."""
    content: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "estimator": manifest.estimator,
        "versions": manifest.versions,
        **{
            entry: {key: to_json(part, key) for key, part in getattr(manifest, entry).items()}
            for entry in _VALUES
        },
        "files": {
            path.name: {"size": path.stat().st_size, "sha256": _file_digest(path)}
            for path in sorted(directory.iterdir())
            if path.name != CARD  # People edit it.
        },
    }
    content["sha256"] = _content_digest(content)
    (directory / MANIFEST).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def read_manifest(directory: Path) -> Manifest:
    """Read ``skdice.json`` and check all files of a directory against it.

    A ValueError says what is missing, damaged or newer than this skdice, and what to do.
    """
    _check_is_saved(directory)
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
    except ImportError:  # peft is not installed.
        raise
    except Exception as error:  # Each type of value has errors of its own.
        raise damaged(directory, f"{MANIFEST} has a value that cannot be read ({error})") from error


def listed_files(directory: Path) -> set[str]:
    """Return the names of the files that belong to a saved directory."""
    return {MANIFEST, CARD, *_read_content(directory)["files"]}


def damaged(directory: Path, what: str) -> ValueError:
    """Return the error for a directory that is not as it was saved."""
    return ValueError(
        f"The directory {str(directory)!r} is damaged: {what}. Copy it again from where it was "
        f"saved, or save the estimator again."
    )


def _check_is_saved(directory: Path) -> None:
    shown = repr(str(directory))
    if not directory.exists():
        raise ValueError(f"There is no directory {shown}; pass one that save_pretrained wrote.")
    if not directory.is_dir():
        raise ValueError(f"{shown} is a file; pass the directory that save_pretrained wrote.")
    if not (directory / MANIFEST).is_file():
        raise ValueError(
            f"The directory {shown} was not saved by skdice: it has no {MANIFEST}. A model of "
            f"transformers is the base of an estimator, for instance DiceTokenTagger(model=...)."
        )


def _read_content(directory: Path) -> dict[str, Any]:
    _check_inside(directory, MANIFEST)
    try:
        content = read_json(directory / MANIFEST)
        saved, format_ = content.pop("sha256", None), content["format_version"]
        is_newer, is_older = format_ > FORMAT_VERSION, format_ < FORMAT_VERSION
        is_whole = saved == _content_digest(content)
    except (ValueError, AttributeError, TypeError, KeyError) as error:  # Also of a list.
        raise damaged(directory, f"{MANIFEST} cannot be read ({error!r})") from error
    if is_newer:
        raise ValueError(
            f"The directory {str(directory)!r} has format {format_}, and this skdice reads format "
            f"{FORMAT_VERSION}. Upgrade it: pip install -U skdice."
        )
    if is_older:
        raise ValueError(
            f"The directory {str(directory)!r} was saved by an older skdice, in format {format_}; "
            f"this skdice reads format {FORMAT_VERSION}. Fit the estimator again."
        )
    if not is_whole:
        raise damaged(directory, f"{MANIFEST} was changed after it was saved")
    for name, kind in _ENTRIES.items():
        if not isinstance(content.get(name), kind):
            raise damaged(directory, f"{MANIFEST} has no {name!r}")
    return dict(content)


def _check_files(directory: Path, files: dict[str, Any]) -> None:
    network, other = (_ADAPTERS, _WHOLE) if ADAPTER_WEIGHTS in files else (_WHOLE, _ADAPTERS)
    for name in (*network, TOKENIZER, TOKENIZER_CONFIG):
        if name not in files:
            raise damaged(directory, f"{MANIFEST} lists no {name}")
    # By these transformers would load another network; CONFIG has no say where adapters are.
    for name in other:
        if (directory / name).exists():
            raise damaged(directory, f"{name} is of another model; take the file away")
    for name, expected in files.items():
        if name != os.path.basename(name) or not isinstance(expected, dict):
            raise damaged(directory, f"{MANIFEST} lists {name!r}, which is no file of it")
        path = directory / name
        if is_exported_file(name) and not path.exists():
            continue
        if not path.is_file():
            raise damaged(directory, f"{name} is missing")
        _check_inside(directory, name)
        found = {"size": path.stat().st_size, "sha256": _file_digest(path)}
        if found != expected:
            raise damaged(directory, f"{name} was saved as {expected}, and it is {found}")


def _check_inside(directory: Path, name: str) -> None:
    """Raise a ValueError if a file is a link that leads out of what was saved or downloaded."""
    place, target = directory.resolve(), (directory / name).resolve()
    # The cache of a hub has links to the blobs of the same model.
    root = place.parents[1] if place.parent.name == "snapshots" else place
    if not target.is_relative_to(root):
        raise damaged(directory, f"{name} is a link out of it, to {str(target)!r}")


def _content_digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
