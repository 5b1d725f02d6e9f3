"""Directories of fitted estimators, which are replaced as a whole and checked before a load."""

import json
import os
from pathlib import Path
from typing import Any

from .._digest import installed_versions
from .._files import as_path, current, explained, replacing, replacing_file, sha256, write_file
from .._pretrained import CONFIG, TOKENIZER_CONFIG, check_configuration, read_json
from ..fitting import Fitted
from ..nn import copy_exported, onnx_network
from ._model_card import model_card
from ._network import FILES, write_network
from ._values import class_name, from_json, to_json

FORMAT_VERSION = 3
MANIFEST, CARD, ONNX = "skdice.json", "README.md", "model.onnx"
KNOWN = FILES | {MANIFEST, CARD, ONNX}
# By these transformers would load code, or other files than those above.
_REFUSED = ("auto_map", "custom_pipelines", "transformers_weights", "fast_tokenizer_files")
# What a net was trained and predicts with, and what else its batches go by.
_OF_NET = ("precision", "predict_precision", "max_epochs", "lr")


def save(
    directory: str | os.PathLike[str], kind: type, parameters: dict[str, Any], fitted: Fitted
) -> None:
    """Write an estimator of some kind as a directory that replaces an older one of skdice.

    It does so as a whole, or not at all.
    """
    place = check_place(directory)
    with explained(place, "The estimator"), replacing(place) as new:
        write_network(new, fitted)
        copy_exported(fitted.net.module_, new / ONNX)
        write_manifest(new, class_name(kind), parameters, fitted)
        card = model_card(place.name, kind, parameters, fitted)
        # A label may have lone surrogates.
        (new / CARD).write_text(card, encoding="utf-8", errors="backslashreplace")


def check_place(directory: str | os.PathLike[str]) -> Path:
    """Return where a save goes; raise what :func:`save` would raise before it writes anything."""
    place = as_path(directory)
    with explained(place, "The estimator"):
        place.parent.mkdir(parents=True, exist_ok=True)
        found = current(place)
        if found.is_file():
            raise ValueError(f"{str(place)!r} is a file; pass the path of a directory.")
        names = {path.name for path in found.iterdir()} if found.exists() else set()
    if foreign := sorted(names.difference(KNOWN if MANIFEST in names else ())):
        raise ValueError(
            f"The directory {str(place)!r} has files that skdice did not save: "
            f"{', '.join(foreign[:10])}. Nothing was written, since a save replaces the whole "
            f"directory. Move them away or pass another directory."
        )
    return place


def write_manifest(
    directory: Path, estimator: str, parameters: dict[str, Any], fitted: Fitted
) -> None:
    """Write ``skdice.json``: all that is no weight, and digests of the files that are there."""
    learned = dict(vars(fitted))
    net, reader = learned.pop("net"), learned.pop("reader")
    network = {name: getattr(net, name) for name in _OF_NET}
    network |= {"max_length": reader.max_length, "word_prefix": reader.tokenizer.word_prefix}
    content: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "estimator": estimator,
        "versions": installed_versions(),
        "sha256": {path.name: sha256(path) for path in directory.iterdir()},
    }
    for entry, part in (("parameters", parameters), ("fitted", learned), ("network", network)):
        content[entry] = {name: to_json(value, name) for name, value in part.items()}
    _write_manifest(directory, content)


def export(file: str | os.PathLike[str], fitted: Fitted) -> None:
    """Write the network as an ONNX file, which the manifest lists if it is beside it."""
    path, module, listed = as_path(file, "file"), fitted.net.module_, None
    if (path.parent / MANIFEST).exists():
        listed = read_manifest(path.parent)
        if path.name != ONNX or to_json(fitted.history, "") != listed["fitted"]["history"]:
            raise ValueError(
                f"In {str(path.parent)!r}, a saved directory, the file must be {ONNX!r} and of the "
                f"fit that is saved there; got {path.name!r}. Save first, or export elsewhere."
            )
    with explained(path, "The network"), replacing_file(path) as new:
        onnx_network(module, "onnx", fitted.reader.max_length, verbose=False, keep=new)
    module.exported = (str(path), sha256(path))
    if listed is not None:
        listed["sha256"][ONNX] = module.exported[1]
        _write_manifest(path.parent, listed)


def _write_manifest(directory: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=2, sort_keys=True)
    write_file(directory / MANIFEST, f"{text}\n".encode())


def read_manifest(directory: Path) -> dict[str, Any]:
    """Return the JSON of ``skdice.json``; a ValueError says what else the directory is."""
    shown = repr(str(directory))
    if not (directory / MANIFEST).is_file():
        raise ValueError(
            f"There is no {MANIFEST} in {shown}: it was not saved by skdice. A model of "
            f"transformers is the base of an estimator, as DiceTokenTagger(model=...)."
        )
    content = read_json(directory / MANIFEST)
    if content.get("format_version") != FORMAT_VERSION:
        raise ValueError(
            f"The directory {shown} has format {content.get('format_version')!r}, and this skdice "
            f"reads format {FORMAT_VERSION}. Load it with the skdice that saved it, or fit again."
        )
    return content


def read_entries(directory: Path, manifest: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the parameters, what was learned, and what the network is made with.

    It is a ValueError if the directory has other files than those that were saved.
    """
    digests = manifest["sha256"]
    saved = {MANIFEST, *digests}
    found = {path.name for path in directory.iterdir() if not path.name.startswith(".")}
    # transformers would read some of those that were added.
    if wrong := ((saved ^ found) | (saved - KNOWN)) - {CARD, ONNX}:
        raise ValueError(f"{', '.join(sorted(wrong))} is missing, or was not saved with it")
    root = directory.resolve()
    if root.parent.name == "snapshots":  # The cache of a hub has links to its blobs.
        root = root.parents[1]
    for name in saved:
        path = directory / name
        if not path.resolve().is_relative_to(root):
            raise ValueError(f"{name} is a link out of it, to {str(path.resolve())!r}")
        if name in digests and sha256(path) != digests[name]:
            raise ValueError(f"{name} was changed after it was saved")
    for name in (CONFIG, TOKENIZER_CONFIG):
        check_configuration(directory / name, _REFUSED)
    parameters, learned, network = (
        {name: from_json(value) for name, value in manifest[entry].items()}
        for entry in ("parameters", "fitted", "network")
    )
    return parameters, learned, network | {"onnx": (str(directory / ONNX), digests.get(ONNX, ""))}
