"""Saving: a directory is written beside its place and takes it when it is complete."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from ._manifest import CARD, MANIFEST, Manifest, encode_manifest, listed_files, write_manifest
from ._model_card import Run, model_card
from ._network import Adapters, write_network
from ._replace import alone_beside, as_path, replacing
from ._system_errors import explained


@dataclass(frozen=True)
class Fitted:
    """What a fitted estimator is made of.

    Attributes
    ----------
    manifest : Manifest
    transformer : transformers.PreTrainedModel
    head : dict of str to Tensor
        Weights that are not part of the transformer.
    tokenizer : transformers.PreTrainedTokenizerFast
    config : dict
        Entries of ``config.json`` to set.
    max_length : int
    splits_words, takes_token_types : bool
        How the model was trained, see :func:`write_network`.
    run : Run
        What the model card tells.
    adapters : Adapters or None
        To save in place of all weights of the transformer.
    """

    manifest: Manifest
    transformer: Any
    head: dict[str, Tensor]
    tokenizer: Any
    config: dict[str, Any]
    max_length: int
    splits_words: bool
    takes_token_types: bool
    run: Run
    adapters: Adapters | None = None


def save(directory: str | os.PathLike[str], fitted: Fitted) -> None:
    """Write a directory that replaces an older one of skdice as a whole, or not at all.

    Raises
    ------
    TypeError
        If ``directory`` is no path.
    ValueError
        If there is something else than a directory of skdice, or a value that JSON cannot hold.
    OSError
        If the disk is full, or the file system does not let us; what was there is intact.
    """
    place = check_place(directory)
    content = encode_manifest(fitted.manifest)
    with explained(place, "The estimator"), replacing(place) as new:
        write_network(
            new,
            fitted.transformer,
            fitted.head,
            fitted.tokenizer,
            config=fitted.config,
            max_length=fitted.max_length,
            splits_words=fitted.splits_words,
            takes_token_types=fitted.takes_token_types,
            adapters=fitted.adapters,
        )
        card = model_card(fitted.run, place.name, fitted.manifest.versions)
        # A label may have lone surrogates.
        (new / CARD).write_text(card, encoding="utf-8", errors="backslashreplace")
        write_manifest(new, content)


def check_place(directory: str | os.PathLike[str]) -> Path:
    """Return where a save goes; raise what :func:`save` would raise before it writes anything."""
    place = as_path(directory)
    with explained(place, "The estimator"):
        place.parent.mkdir(parents=True, exist_ok=True)
        with alone_beside(place):
            _check_replaceable(place)
    return place


def _check_replaceable(directory: Path) -> None:
    shown = repr(str(directory))
    if not directory.exists():
        return
    if not directory.is_dir():
        raise ValueError(f"{shown} is a file; pass the path of a directory, new or saved before.")
    names = {path.name for path in directory.iterdir()}
    foreign = sorted(names - (listed_files(directory) if MANIFEST in names else set()))
    if foreign:
        more = f" and {len(foreign) - 10} more" if len(foreign) > 10 else ""
        raise ValueError(
            f"The directory {shown} has files that skdice did not save: {', '.join(foreign[:10])}"
            f"{more}. Nothing was written, since a save replaces the whole directory. Move them "
            f"away or pass another directory."
        )
