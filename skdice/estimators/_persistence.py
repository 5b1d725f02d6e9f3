"""Fitted estimators as directories: what is saved of them, and how they come back."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from .._files import read_one_version
from ..fitting import Fitted, Schedule, Settings, make_net
from ..io import Manifest, find_saved, load_errors, load_head, read_manifest, save
from ..nn import resolve_device, seeded
from ..text import TextReader, WordTokenizer


def save_estimator(estimator: Any, directory: str | os.PathLike[str]) -> None:
    """Save a fitted estimator, as ``save_pretrained`` says."""
    # They may have been set after the fit, and the next one has to be possible.
    estimator.check_parameters()
    parameters: dict[str, Any] = estimator.get_params(deep=False)
    left_out = []
    if parameters["callbacks"]:
        left_out.append("callbacks")
    if isinstance(parameters["random_state"], np.random.RandomState | np.random.Generator):
        left_out.append("random_state")
    for name in left_out:
        warnings.warn(
            f"The parameter {name} is not saved ({type(parameters[name]).__name__}); it will be "
            f"None in the loaded estimator.",
            stacklevel=3,
        )
    model = os.fspath(parameters["model"])
    parameters = {**parameters, "model": model, **dict.fromkeys(left_out)}
    save(directory, type(estimator), parameters, estimator.fitted)


def load_estimator(
    directory: str | os.PathLike[str],
    classes: Sequence[Any],
    *,
    device: str | None,
    revision: str | None,
) -> Any:
    """Return what a directory holds, of one of some classes, as ``from_pretrained`` says."""
    by_name = {cls.__name__: cls for cls in classes}

    def load(place: Path) -> Any:
        manifest = read_manifest(place)
        name = manifest.estimator
        if name not in by_name:
            raise ValueError(
                f"The directory {str(place)!r} holds a {name}, not a {' or '.join(by_name)}. Call "
                f"{name}.from_pretrained, or skdice.estimators.load_pretrained, which loads any "
                f"class that this skdice has."
            )
        chosen = {} if device is None else {"device": device}
        with load_errors(place):
            estimator = by_name[name](**{**manifest.parameters, **chosen})
            # Checkpoints need a random_state, and generators are not saved.
            clone(estimator).set_params(checkpoint_dir=None).check_parameters()
        usable = _usable_device(estimator.device, place)
        with load_errors(place):
            estimator._fitted = _read_fitted(manifest, place, usable)
        return estimator

    return read_one_version(find_saved(directory, revision), load)


def _read_fitted(manifest: Manifest, place: Path, device: str) -> Fitted:
    """Return what was learned, with a network that is made from the fit and its files alone."""
    task, loss, network = manifest.fitted["task"], manifest.fitted["loss"], manifest.network
    tokenizer = WordTokenizer(str(place))
    # The saved tokenizer may put a space before a text; words are cut as they were in the fit.
    tokenizer.word_prefix = network["word_prefix"]
    reader = TextReader(tokenizer, network["max_length"])
    net = make_net(
        task,
        Settings(str(place), device=device),
        reader,
        criterion=task.criterion(loss),
        precision=network["precision"],
        schedule=Schedule(network["max_epochs"], network["lr"], network["lr"]),
    )
    net.predict_precision, net.pads = network["predict_precision"], network["pads"]
    with seeded(0, device):  # New layers are drawn before their weights are read.
        net.initialize()
    load_head(net.module_, place)
    net.drop_training_state()
    return Fitted(**manifest.fitted, reader=reader, net=net)


def _usable_device(device: str, directory: Path) -> str:
    try:
        usable = resolve_device(device)
        torch.empty(0, device=usable)
    except (RuntimeError, ValueError, AssertionError) as error:
        raise ValueError(
            f"The estimator in {str(directory)!r} is for device={device!r}, which cannot be used "
            f"here ({error}). Pass another one: from_pretrained(directory, device='cpu')."
        ) from error
    return usable
