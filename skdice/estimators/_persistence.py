"""Fitted estimators as directories: what to save of them, and how they come back."""

import copy
import inspect
import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from .._configuration import MODEL_CONFIG
from .._files import read_one_version
from .._parameters import parameters_of
from ..fitting import MODULES, Fitted, Schedule, make_net, settings_of
from ..io import (
    Manifest,
    Run,
    SavedNetwork,
    check_loads_nothing_else,
    check_weights,
    damaged,
    export,
    find_saved,
    installed_versions,
    listed_files,
    load_exported,
    loss_of,
    read_manifest,
    read_weights,
    save,
)
from ..losses import CombinedLoss, Loss
from ..nn import (
    ADAPTER_WEIGHTS,
    HEAD,
    PRECISIONS,
    TRANSFORMER,
    TextModule,
    TextNet,
    resolve_device,
    seeded,
    size_of_network,
)
from ..tasks import Querying, Tagging, Task
from ..text import SHAPES, TextReader, WordTokenizer

_TASK, _NAMES = "_learned_task", "feature_names_in_"
_MEMBERS = "members."
# What a manifest has to say of the network and of every fit.
_SAVED: dict[str, Any] = {
    "n_outputs": int,
    "criterion": (Loss, CombinedLoss),
    "word_prefix": str,
    "pads": bool,
    "precision": str,
    "base_digest": str,
    "max_length_": int,
    "interrupted_": bool,
    "_n_training_rows": int,
    "_n_unlabeled_rows": int,
    "history_": pd.DataFrame,
    "best_epoch_": int,
    "max_epochs_": int,
    "lr_": float,
    "negative_ratio_": (float, NoneType),
    "choices_": pd.DataFrame,
    _TASK: dict,
}


def save_estimator(
    estimator: Any, directory: str | os.PathLike[str], *, merged: bool = False
) -> None:
    """Save a fitted estimator, as ``save_pretrained`` says."""
    parameters = _saved_parameters(estimator)
    net, tokenizer = estimator.net_, estimator.tokenizer_
    module = net.module_.merged() if merged and net.module_.base_digest else net.module_
    manifest = Manifest(
        estimator=type(estimator).__name__,
        parameters=parameters,
        state=_saved_state(estimator),
        network={
            "n_outputs": net.module__n_classes,
            "criterion": net.criterion_,
            "word_prefix": tokenizer.word_prefix,
            "precision": net.precision,
            "pads": net.pads,
            "base_digest": module.base_digest,
        },
        metrics=_metrics(estimator),
    )
    has_adapters = bool(module.base_digest)
    network = SavedNetwork(
        module=module,
        tokenizer=tokenizer.tokenizer,
        config=estimator.task.head.model_config,
        max_length=estimator.max_length_,
        # Where transformers gives a model raw text and skdice gives it words.
        splits_words=estimator.task.info.predicts == "tags" and estimator.task.info.n_texts == 1,
        adapter_config=module.adapter_config(parameters["model"]) if has_adapters else None,
        runtime="torch" if estimator.interrupted_ else parameters["runtime"],
    )
    save(directory, network, _run(estimator, manifest))


def export_network(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Export the network of a fitted estimator, as ``export_onnx`` says."""
    task = estimator.task
    metadata = {
        "estimator": type(estimator).__name__,
        "skdice_version": installed_versions()["skdice"],
        "max_length": estimator.max_length_,
        # JSON has no infinity.
        "decision": {
            name: repr(value) if value in (math.inf, -math.inf) else value
            for name, value in _decision(task).items()
        },
    }
    if task.class_names:
        metadata["classes"] = task.class_names
    if isinstance(task, Querying):
        metadata["queries"] = task.queries
    if isinstance(task, Tagging) and task.word_shapes:
        metadata["word_shapes"] = SHAPES
    if isinstance(task, Tagging) and task.crf:
        metadata["crf"] = task.scheme
    export(path, estimator.net_.module_, max_length=estimator.max_length_, metadata=metadata)


def load_estimator(
    directory: str | os.PathLike[str],
    classes: Sequence[Any],
    *,
    device: str | None,
    revision: str | None,
    model: str | os.PathLike[str] | None,
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
        chosen: dict[str, Any] = {} if device is None else {"device": device}
        if model is not None:
            chosen["model"] = os.fspath(model)
        try:
            _check_fit(by_name[name], manifest, place)
            estimator = by_name[name](**{**manifest.parameters, **chosen})
            tokenizer = WordTokenizer(str(place))
            task = _read_task(estimator, manifest)
            net = _read_net(estimator, task, tokenizer, place, manifest)
        except RecursionError as error:  # Losses in one another are copied by many functions.
            raise damaged(place, "it has values in one another without end") from error
        try:
            load_exported(place, listed_files(place), net.module_, estimator.runtime)
        except Exception as error:  # onnxruntime has errors of its own.
            raise damaged(
                place, f"onnxruntime cannot read its exported network ({error})"
            ) from error
        # The saved tokenizer may put a space before a text; words are cut as they were in fit.
        tokenizer.word_prefix = manifest.network["word_prefix"]
        state = manifest.state
        estimator._fitted = Fitted(
            task=task,
            reader=TextReader(tokenizer, state["max_length_"]),
            net=net,
            loss=loss_of(net.criterion_),
            choices=state["choices_"],
            history=state["history_"],
            best_epoch=state["best_epoch_"],
            negative_ratio=state["negative_ratio_"],
            n_rows=state["_n_training_rows"],
            n_unlabeled=state["_n_unlabeled_rows"],
            feature_names=state.get(_NAMES),
            interrupted=state["interrupted_"],
        )
        return estimator

    return read_one_version(find_saved(directory, revision), load)


def _check_fit(cls: Any, manifest: Manifest, place: Path) -> None:
    """Raise a ValueError unless an estimator of this class can have been saved so."""
    unknown = sorted(set(manifest.parameters) - set(inspect.signature(cls).parameters))
    if unknown:
        raise ValueError(
            f"The directory {str(place)!r} was saved with the parameter {unknown[0]!r}, which "
            f"{cls.__name__} does not have. It was saved by skdice "
            f"{manifest.versions.get('skdice')}; install that version or a newer one."
        )
    check_loads_nothing_else(place)
    try:
        # Where checkpoints go matters to fits alone.
        estimator = cls(**{**manifest.parameters, "checkpoint_dir": None})
        _check_state(estimator, manifest, place)
        estimator.check_parameters()
    except ValueError as error:
        raise damaged(place, f"what it says of the fit cannot be ({error})") from error


def _check_state(estimator: Any, manifest: Manifest, place: Path) -> None:
    """Raise a ValueError unless all is there that an estimator predicts with."""
    values = {**manifest.network, **manifest.state}
    for name, types in _SAVED.items():
        is_bool = isinstance(values.get(name), bool)
        if name not in values or not isinstance(values[name], types) or is_bool != (types is bool):
            raise ValueError(f"{name!r} is {values.get(name, 'missing')!r:.200}")
    for name in manifest.state:
        if name not in (*_SAVED, _NAMES):
            raise ValueError(f"{name!r} is no state of a fit")
    if values["precision"] not in PRECISIONS:
        raise ValueError(f"'precision' is {values['precision']!r}")
    task = _read_task(estimator, manifest)
    if task.head.n_outputs != values["n_outputs"]:
        raise ValueError(f"the task has {task.head.n_outputs} outputs, not {values['n_outputs']}")
    config_file = str(place / MODEL_CONFIG) if manifest.has_adapters else None
    auto_class = MODULES[task.head.kind].auto_class
    limit = size_of_network(str(place), auto_class, config_file).n_positions
    if not 1 <= values["max_length_"] <= (limit or math.inf):
        raise ValueError(f"'max_length_' is {values['max_length_']}, of {limit} positions")


def _read_task(estimator: Any, manifest: Manifest) -> Task:
    """Return the task of a fit; a ValueError says which of its values it cannot have."""
    kind, saved = type(estimator._asked()), manifest.state[_TASK]
    hints = get_type_hints(kind)
    names = {known.name for known in fields(kind)}
    if saved.keys() != names:
        raise ValueError(f"the task has {sorted(saved)}, not {sorted(names)}")
    for name, value in saved.items():
        if not _is_of(value, hints[name]):
            raise ValueError(f"{name!r} of the task is {value!r:.200}")
    task: Task = kind(**saved)
    try:
        task.check_learned()
    except Exception as error:  # Each type of value has errors of its own.
        raise ValueError(f"the task cannot be of a fit: {error!r}") from error
    return task


def _is_of(value: Any, hint: Any) -> bool:
    """Return whether a value is of a type, as far as its outermost part says."""
    if hint is Any:
        return True
    if get_origin(hint) in (Union, UnionType):
        return any(_is_of(value, part) for part in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    kind = get_origin(hint) or hint
    if isinstance(value, bool) != (kind is bool):
        return False
    return isinstance(value, (int, float) if kind is float else kind)


def _read_net(
    estimator: Any, task: Task, tokenizer: WordTokenizer, place: Path, manifest: Manifest
) -> TextNet:
    network, settings = manifest.network, settings_of(estimator)
    device = _usable_device(estimator.device, place)
    model = os.fspath(estimator.model) if manifest.has_adapters else str(place)
    net = make_net(
        task,
        replace(settings, model=model),
        TextReader(tokenizer, manifest.state["max_length_"]),
        criterion=network["criterion"],
        precision=network["precision"],
        schedule=Schedule(manifest.state["max_epochs_"], manifest.state["lr_"], head_lr=1.0),
    )
    with seeded(0, device):  # New layers are drawn before their weights are read.
        if manifest.has_adapters:
            net.module__config = str(place / MODEL_CONFIG)
            _initialize_on_base(net, place, network["base_digest"])
        else:
            net.module__peft_config = None  # Merged into the weights, if there were any.
            check_weights(place, MODULES[task.head.kind].auto_class)
            net.initialize()
    _load_head(net.module_, place)
    net.drop_training_state()
    net.pads = network["pads"]
    return net


def _initialize_on_base(net: TextNet, place: Path, base_digest: str) -> None:
    """Load the base model of adapters; raise a ValueError unless it is that of the fit."""
    model, where = net.module__model, "from_pretrained(directory, model=...) says where it is"
    try:
        net.initialize()
    except (ValueError, RuntimeError) as error:  # Adapters may be too large for this machine.
        raise ValueError(
            f"The directory {str(place)!r} has adapters, and the model {model!r} that they are for "
            f"cannot be loaded; {where}. {error}"
        ) from error
    if net.module_.base_digest != base_digest:
        raise ValueError(
            f"The directory {str(place)!r} has adapters for other weights than those of {model!r} "
            f"as it is now. They need the model of the fit; {where}."
        )


def _saved_parameters(estimator: Any) -> dict[str, Any]:
    """Return the constructor parameters, without those that cannot be saved."""
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
            stacklevel=4,
        )
    return {**parameters, "model": os.fspath(parameters["model"]), **dict.fromkeys(left_out)}


def _saved_state(estimator: Any) -> dict[str, Any]:
    """Return what ``fit`` set, with the task as a dict; what follows from it is left out."""
    fitted, task = estimator.fitted, estimator.task
    names = {} if fitted.feature_names is None else {_NAMES: fitted.feature_names}
    return {
        "max_length_": fitted.reader.max_length,
        "interrupted_": fitted.interrupted,
        "_n_training_rows": fitted.n_rows,
        "_n_unlabeled_rows": fitted.n_unlabeled,
        "history_": fitted.history,
        "best_epoch_": fitted.best_epoch,
        "max_epochs_": fitted.net.max_epochs,
        "lr_": fitted.net.lr,
        "negative_ratio_": fitted.negative_ratio,
        "choices_": fitted.choices,
        _TASK: {known.name: getattr(task, known.name) for known in fields(task)},
        **names,
    }


def _metrics(estimator: Any) -> dict[str, float]:
    # No epoch is the best one if the first was interrupted.
    history = estimator.history_
    best = history[history.index == estimator.best_epoch_].to_dict("records")
    epoch = best[0] if best else {}
    return {key: epoch[key] for key in ("train_loss", "valid_score") if key in epoch}


def _run(estimator: Any, manifest: Manifest) -> Run:
    defaults = inspect.signature(type(estimator)).parameters
    stated = parameters_of(type(estimator))
    return Run(
        texts=estimator.task.info.card,
        manifest=manifest,
        parameters={
            name: value
            for name, value in manifest.parameters.items()
            if stated[name].on_card and repr(value) != repr(defaults[name].default)
        },
        metric=estimator.task.metric_name,
        decision=_decision(estimator.task),
        classes=estimator.task.class_names,
        n_members=1 + len(estimator.net_.module_.members),
        is_context_first=estimator.tokenizer_.pads_left,
    )


def _decision(task: Task) -> dict[str, Any]:
    """Return the fitted attributes that turn logits into predictions, as JSON has them."""
    return {
        name: value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        for name, value in task.decision.items()
    }


def _load_head(module: Any, directory: Path) -> None:
    """Load the weights beside the transformer, and check that all weights are those saved."""
    shown = repr(str(directory))
    head = read_weights(directory / HEAD)
    if module.base_digest:
        names = {saved: name for name, saved in module.saved_names().items()}
        adapters = read_weights(directory / ADAPTER_WEIGHTS)
        head |= {names.get(key, key): weight for key, weight in adapters.items()}
    module.members.extend([copy.deepcopy(module) for _ in range(_count_members(module, head))])
    shapes = {
        name: weight.shape
        for name, weight in module.state_dict().items()
        if module.base_digest or not name.startswith(TRANSFORMER)
    }
    found = {name: weight.shape for name, weight in head.items()}
    unmatched = sorted(name for name, _ in shapes.items() ^ found.items())
    if not module.base_digest:
        unmatched += module.unmatched_weights
    if unmatched:
        raise ValueError(
            f"The weights in {shown} are not those of its network: {unmatched[0]!r} is missing, "
            f"left over or of another shape ({len(unmatched)} in all). Save the estimator again."
        )
    module.load_state_dict(head, strict=False)
    for name, weight in module.state_dict().items():
        # The sum is finite as well unless it overflows, and takes a tenth of the time.
        if not (torch.isfinite(weight.sum()) or torch.isfinite(weight).all()):
            raise ValueError(
                f"The weights in {shown} are not finite: {name!r} has inf or NaN. Save the "
                f"estimator again."
            )


def _count_members(module: TextModule, head: dict[str, Tensor]) -> int:
    """Return how many networks lie beside the first one, as long as they are whole."""
    names, count = module.state_dict().keys(), 0
    while all(f"{_MEMBERS}{count}.{name}" in head for name in names):
        count += 1
    return count


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
