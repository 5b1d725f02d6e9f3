"""Directories of fitted estimators, which are replaced as a whole and checked before a load."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from huggingface_hub import constants

from .._digest import installed_versions
from .._files import (
    MANIFEST,
    WORK,
    as_path,
    check_not_inside_saved,
    current,
    explained,
    replacing,
    replacing_file,
    sha256,
    working_on,
)
from .._pretrained import CONFIG, TOKENIZER_CONFIG, check_configuration, read_json
from ..exceptions import warn
from ..fitting import Fitted
from ..nn import copy_exported, onnx_network
from ._model_card import model_card
from ._network import FILES, write_json, write_network
from ._values import class_name, from_json, to_json

FORMAT_VERSION = 4
CARD, ONNX = "README.md", "model.onnx"
KNOWN = FILES | {MANIFEST, CARD, ONNX}
# Keys that would make transformers load code, or files outside FILES.
_REFUSED = ("auto_map", "custom_pipelines", "transformers_weights", "fast_tokenizer_files")
# Attributes of the network that are saved.
OF_NET = ("precision", "predict_precision", "max_epochs", "lr")


def save(
    directory: str | os.PathLike[str], kind: type, parameters: dict[str, Any], fitted: Fitted
) -> None:
    """Write an estimator as a directory; an older one is replaced as a whole, or not at all."""
    place = check_place(directory)
    with explained(place, "The estimator"), replacing(place) as new:
        write_network(new, fitted)
        copy_exported(fitted.net.module_, new / ONNX)
        write_manifest(new, class_name(kind), parameters, fitted)
        card = model_card(place.name, kind, parameters, fitted)
        # Labels may have lone surrogates.
        (new / CARD).write_text(card, encoding="utf-8", errors="backslashreplace")


def check_place(directory: str | os.PathLike[str]) -> Path:
    """Return where a save goes, after a trial; raise what :func:`save` would raise."""
    place = as_path(directory)
    check_not_inside_saved(place)
    with explained(place, "The estimator"):
        place.parent.mkdir(parents=True, exist_ok=True)
        found = current(place)
        if found.is_file():
            raise ValueError(f"{str(place)!r} is a file; pass the path of a directory.")
        parts = [part for part in (found, place) if part.exists()]
        names = {path.name for part in parts for path in part.iterdir()} - {WORK}
        if foreign := sorted(names.difference(KNOWN if MANIFEST in names else ())):
            what = f"files that skdice did not save: {', '.join(foreign[:10])}. Nothing was written"
            why = "a save replaces the whole directory. Move them away or pass another directory"
            raise ValueError(f"The directory {str(place)!r} has {what}, since {why}.")
        with working_on(place) as work:
            (work / "trial").mkdir(exist_ok=True)
    return place


def write_manifest(
    directory: Path, estimator: str, parameters: dict[str, Any], fitted: Fitted
) -> None:
    """Write ``skdice.json``: all that is no weight, and digests of the files that are there."""
    learned = dict(vars(fitted))
    net, reader = learned.pop("net"), learned.pop("reader")
    network = {name: getattr(net, name) for name in OF_NET}
    network |= {"max_length": reader.max_length, "word_prefix": reader.tokenizer.word_prefix}
    content: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "estimator": estimator,
        "versions": installed_versions(),
        "sha256": {path.name: sha256(path) for path in directory.iterdir()},
    }
    for entry, part in (("parameters", parameters), ("fitted", learned), ("network", network)):
        content[entry] = {name: to_json(value, name) for name, value in part.items()}
    write_json(directory / MANIFEST, content)


def export(file: str | os.PathLike[str], fitted: Fitted) -> None:
    """Write the network as an ONNX file; the manifest of a saved directory lists it."""
    path, module = as_path(file, "file"), fitted.net.module_
    is_listed = (path.parent / MANIFEST).exists()
    if is_listed:  # An error comes before the export, which may take a minute.
        _manifest_beside(path, fitted)
    with explained(path, "The network"), TemporaryDirectory(prefix="skdice-") as place:
        new = Path(place, ONNX)
        onnx_network(module, "onnx", fitted.reader.max_length, verbose=False, keep=new)
        digest = sha256(new)
        with working_on(path.parent) if is_listed else nullcontext():
            if is_listed:
                manifest = _manifest_beside(path, fitted)  # Another fit may have been saved there.
                # A file that is listed has to be there as it is listed at any moment.
                if manifest["sha256"].pop(ONNX, None) is not None:
                    write_json(path.parent / MANIFEST, manifest)
            with replacing_file(path) as copy:
                shutil.copyfile(new, copy)
            if is_listed:
                manifest["sha256"][ONNX] = digest
                write_json(path.parent / MANIFEST, manifest)
    module.exported = (str(path), digest)


def _manifest_beside(file: Path, fitted: Fitted) -> dict[str, Any]:
    """Return the manifest beside an ONNX file; a ValueError says if it is of another fit."""
    manifest = read_manifest(file.parent)
    if file.name != ONNX or to_json(fitted.history, "") != manifest["fitted"]["history"]:
        raise ValueError(
            f"In {str(file.parent)!r}, a saved directory, the file must be {ONNX!r} and of the fit "
            f"that is saved there; got {file.name!r}. Save first, or export elsewhere."
        )
    return manifest


def read_manifest(directory: Path) -> dict[str, Any]:
    """Return the JSON of ``skdice.json``; a ValueError says what else the directory is."""
    shown = repr(str(directory))
    if not (directory / MANIFEST).is_file():
        use = "A model of transformers is the base of an estimator, as DiceTokenTagger(model=...)"
        raise ValueError(f"There is no {MANIFEST} in {shown}: it was not saved by skdice. {use}.")
    content = read_json(directory / MANIFEST)
    if (found := content.get("format_version")) != FORMAT_VERSION:
        what = f"has format {found!r}, and this skdice reads format {FORMAT_VERSION}"
        advice = "Load it with the skdice that saved it, or fit again"
        raise ValueError(f"The directory {shown} {what}. {advice}.")
    return content


@contextmanager
def opened(
    directory: Path, manifest: dict[str, Any]
) -> Iterator[tuple[Path, dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Check a saved directory; yield where its files are, and the entries of the manifest.

    These are the parameters, what was learned, and what the network is made with. transformers
    would read files that others have added, such as adapters: then the listed ones are yielded in a
    directory of their own. It is a ValueError if a file is missing, was changed, or is a link out
    of the directory, other than inside a model of the hub's cache.
    """
    digests = manifest["sha256"]
    listed = {MANIFEST, *digests}
    found = {path.name for path in directory.iterdir() if not path.name.startswith(".")}
    if wrong := ((listed - found - {ONNX}) | (listed - KNOWN)):
        raise ValueError(f"{', '.join(sorted(wrong))} is missing, or is no file that skdice saves")
    root = directory.resolve()
    # The cache has the files of a model in one directory, and links to them in others.
    is_cached = Path(constants.HF_HUB_CACHE).resolve() in root.parents[2:3]
    allowed = [root, root.parents[1]] if is_cached else [root]
    places = {name: (directory / name).resolve() for name in listed & found}
    for name, place in places.items():
        if not any(map(place.is_relative_to, allowed)):
            raise ValueError(f"{name} is a link out of it, to {str(place)!r}")
        if name in digests and sha256(place) != digests[name]:
            raise ValueError(f"{name} was changed after it was saved")
    if ONNX in listed - found:
        what = "with runtime='onnx' the network is exported again. Call export_onnx to write it"
        warn(f"{ONNX} was saved with {str(directory)!r} and is missing: {what}.")
    for name in (CONFIG, TOKENIZER_CONFIG):
        check_configuration(directory / name, _REFUSED)
    parameters, learned, network = (
        {name: from_json(value) for name, value in manifest[entry].items()}
        for entry in ("parameters", "fitted", "network")
    )
    network["onnx"] = (str(directory / ONNX), digests.get(ONNX, ""))
    with TemporaryDirectory(prefix="skdice-") as files:
        for name, place in places.items() if found - listed - {CARD, ONNX} else ():
            directory = Path(files)
            (directory / name).symlink_to(place)
        yield directory, parameters, learned, network
