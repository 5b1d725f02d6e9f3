"""``skdice.json``: all of a fitted estimator that is no weight, and digests of the other files."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .._pretrained import CONFIG, TOKENIZER, TOKENIZER_CONFIG, check_configuration, read_json
from .._version import __version__
from ..nn import HEAD
from ._fitted import Fitted
from ._values import from_json, to_json

FORMAT_VERSION = 3
MANIFEST, CARD, WEIGHTS = "skdice.json", "README.md", "model.safetensors"
# A directory has these, and HEAD where transformers has no class for the head.
_ALWAYS = {CONFIG, TOKENIZER, TOKENIZER_CONFIG, WEIGHTS}
FILES = _ALWAYS | {HEAD}
# By these transformers would load code, or other files than those above.
_REFUSED = ("auto_map", "custom_pipelines", "transformers_weights", "fast_tokenizer_files")
_PACKAGES = ("torch", "transformers", "scikit-learn")
# What a net was trained and predicts with, and what else its batches go by.
_OF_NET = ("precision", "predict_precision", "max_epochs", "lr")


@dataclass(frozen=True)
class Manifest:
    """What ``skdice.json`` says."""

    estimator: str  # name of the class
    parameters: dict[str, Any]  # of the constructor
    fitted: dict[str, Any]  # what was learned, without the network and the reader
    network: dict[str, Any]  # what these two are made with, besides the files of transformers


def installed_versions() -> dict[str, str]:
    """Return the versions of skdice and of what it builds on."""
    return {"skdice": __version__, **{name: version(name) for name in _PACKAGES}}


def write_manifest(
    directory: Path, estimator: str, parameters: dict[str, Any], fitted: Fitted
) -> None:
    """Write ``skdice.json`` into a directory in which all other files are."""
    net, reader = fitted.net, fitted.reader
    entries = {
        "parameters": parameters,
        "fitted": {
            name: value for name, value in vars(fitted).items() if name not in ("net", "reader")
        },
        "network": {
            **{name: getattr(net, name) for name in _OF_NET},
            "max_length": reader.max_length,
            "word_prefix": reader.tokenizer.word_prefix,
        },
    }
    content = {
        "format_version": FORMAT_VERSION,
        "estimator": estimator,
        "versions": installed_versions(),
        **{
            entry: {name: to_json(value, name) for name, value in part.items()}
            for entry, part in entries.items()
        },
        # People edit the card.
        "sha256": {path.name: _digest(path) for path in directory.iterdir() if path.name != CARD},
    }
    text = json.dumps(content, indent=2, sort_keys=True)
    (directory / MANIFEST).write_text(f"{text}\n", encoding="utf-8")


def read_manifest(directory: Path) -> Manifest:
    """Read ``skdice.json``; the directory has to have the files that were saved, and no other.

    A ValueError says what is wrong, and what to do.
    """
    shown = repr(str(directory))
    if not directory.is_dir():
        raise ValueError(f"There is no directory {shown}; pass one that save_pretrained wrote.")
    if not (directory / MANIFEST).is_file():
        raise ValueError(
            f"The directory {shown} was not saved by skdice: it has no {MANIFEST}. A model of "
            f"transformers is the base of an estimator, for instance DiceTokenTagger(model=...)."
        )
    content = read_json(directory / MANIFEST)
    if content.get("format_version") != FORMAT_VERSION:
        raise ValueError(
            f"The directory {shown} has format {content.get('format_version')!r}, and this skdice "
            f"reads format {FORMAT_VERSION}. Load it with the skdice that saved it, or fit again."
        )
    with load_errors(directory):
        _check_files(directory, content["sha256"])
        entries = {
            entry: {name: from_json(value) for name, value in content[entry].items()}
            for entry in ("parameters", "fitted", "network")
        }
        return Manifest(content["estimator"], **entries)


@contextmanager
def load_errors(directory: Path) -> Iterator[None]:
    """Say which directory it is that cannot be loaded, and what to do."""
    try:
        yield
    except (ImportError, MemoryError):  # It may need peft.
        raise
    except Exception as error:  # Each type of value has errors of its own.
        what = str(error) if isinstance(error, ValueError) else repr(error)
        raise ValueError(
            f"The directory {str(directory)!r} cannot be loaded: {what.rstrip('.')}. If it is "
            f"damaged, copy it again from where it was saved, or save the estimator again."
        ) from error


def _check_files(directory: Path, digests: dict[str, str]) -> None:
    if not _ALWAYS <= digests.keys() <= FILES:
        raise ValueError(f"{MANIFEST} lists {sorted(digests)}, and has to list {sorted(_ALWAYS)}")
    root = directory.resolve()
    if root.parent.name == "snapshots":  # The cache of a hub has links to its blobs.
        root = root.parents[1]
    for name in (MANIFEST, *digests):
        path = directory / name
        if not path.is_file():
            raise ValueError(f"{name} is missing")
        if not path.resolve().is_relative_to(root):
            raise ValueError(f"{name} is a link out of it, to {str(path.resolve())!r}")
        if name in digests and _digest(path) != digests[name]:
            raise ValueError(f"{name} was changed after it was saved")
    for path in directory.iterdir():  # transformers would read some of them.
        if path.name not in (*digests, MANIFEST, CARD) and not path.name.startswith("."):
            raise ValueError(f"{path.name} was not saved with it; take it away")
    for name in (CONFIG, TOKENIZER_CONFIG):
        check_configuration(directory / name, _REFUSED)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
