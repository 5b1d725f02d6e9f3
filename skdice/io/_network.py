"""The files that transformers reads: weights, configuration and tokenizer."""

import copy
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from .._configuration import (
    CONFIG,
    MODEL_CONFIG,
    TOKENIZER,
    TOKENIZER_CONFIG,
    check_configuration,
    entries,
    read_json,
)
from .._pretrained import loading, quiet_transformers
from ..nn._adapters import ADAPTER_CONFIG, ADAPTER_WEIGHTS, add_adapters
from ..nn._loading import size_of_network
from ..nn._modules import HEAD
from ._manifest import WEIGHTS, has_adapters

# By these transformers would take code from a repository, or read other files than those listed.
_OUTSIDE_KEYS = ("auto_map", "custom_pipelines", "transformers_weights", "fast_tokenizer_files")


@dataclass(frozen=True)
class Adapters:
    """What is saved of a transformer whose other weights are those of a base model.

    Attributes
    ----------
    config : dict
        Of ``adapter_config.json``.
    weights : dict of str to Tensor
        By the names that peft gives them in files.
    """

    config: dict[str, Any]
    weights: dict[str, Tensor]


def label_config(labels: list[Any]) -> dict[str, Any]:
    """Return the entries of ``config.json`` that name the outputs of a model."""
    names = [str(label) for label in labels]
    return {
        "id2label": {str(i): name for i, name in enumerate(names)},
        "label2id": {name: i for i, name in enumerate(names)},
    }


def write_network(
    directory: Path,
    transformer: Any,
    head: dict[str, Tensor],
    tokenizer: Any,
    *,
    config: dict[str, Any],
    max_length: int,
    splits_words: bool,
    takes_token_types: bool,
    adapters: Adapters | None = None,
) -> None:
    """Write a model and its tokenizer so that transformers can load them.

    Parameters
    ----------
    directory : Path
    transformer : transformers.PreTrainedModel
    head : dict of str to Tensor
        Weights of layers that are not part of the transformer; they get a file of their own.
    tokenizer : transformers.PreTrainedTokenizerFast
    config : dict
        Entries of ``config.json`` to set: names of the labels, type of the problem.
    max_length : int
        Where the tokenizer cuts when it is asked to.
    splits_words : bool
        Whether the model was trained on single words: a byte-level BPE then has to read the first
        word of a text as all others, after a space.
    takes_token_types : bool
        Whether the model was trained with token types: some tokenizers give none unless told to.
    adapters : Adapters, optional
        Written in place of all weights of the transformer.
    """
    with quiet_transformers():
        if adapters is None:
            # One file of any size: its name is known.
            transformer.save_pretrained(directory, max_shard_size=10**15)
        else:
            _write_adapters(directory, transformer, adapters)
        tokenizer.save_pretrained(directory)
    if head:
        _save_weights(head, directory / HEAD)
    config_file = directory / (CONFIG if adapters is None else MODEL_CONFIG)
    if hasattr(transformer.config, "use_mems_eval"):
        config = {**config, "use_mems_eval": False}  # States of other texts are not handed on.
    _update(config_file, config)
    settings: dict[str, Any] = {"model_max_length": max_length}
    if takes_token_types:
        settings["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    _update(directory / TOKENIZER_CONFIG, settings)
    if splits_words and _is_byte_level(directory / TOKENIZER):
        _put_space_before_text(directory)
    # safetensors makes its files private, whatever the umask is.
    mode = config_file.stat().st_mode
    for path in directory.glob("*.safetensors"):
        path.chmod(mode)


def _write_adapters(directory: Path, transformer: Any, adapters: Adapters) -> None:
    """Write the files of peft, and the configuration of the model that the adapters are in."""
    text = json.dumps(adapters.config, indent=2, sort_keys=True)
    (directory / ADAPTER_CONFIG).write_text(f"{text}\n", encoding="utf-8")
    _save_weights(adapters.weights, directory / ADAPTER_WEIGHTS)
    config = copy.deepcopy(transformer.config)
    config.architectures = [type(transformer).__name__]
    config.to_json_file(directory / MODEL_CONFIG)


def _save_weights(weights: dict[str, Tensor], path: Path) -> None:
    # Tied weights are one tensor, which a file cannot hold twice.
    own = {name: weight.cpu().contiguous().clone() for name, weight in weights.items()}
    save_file(own, path, metadata={"format": "pt"})


def check_loads_nothing_else(directory: Path) -> None:
    """Raise a ValueError if transformers would load code or weights that are not in a directory.

    skdice never saves such a directory; the check is for others that look like one.
    """
    check_configuration(directory)
    check_configuration(directory, MODEL_CONFIG)
    shown = repr(str(directory))
    for name in (CONFIG, MODEL_CONFIG, TOKENIZER_CONFIG):
        found = [key for key, _ in entries(read_json(directory / name)) if key in _OUTSIDE_KEYS]
        if found:
            raise ValueError(
                f"{name} in {shown} has {found[0]!r}, which names code or files to load. skdice "
                f"loads no code; models of transformers' own families have no such entry."
            )
    # Those of a fit with adapters say no more than the manifest, and it alone is read.
    name = CONFIG if has_adapters(directory) else ADAPTER_CONFIG
    if (directory / name).exists():
        raise ValueError(f"{name} in {shown} is of another model. Take the file away.")


def check_weights(directory: Path, auto_class: str) -> None:
    """Raise a ValueError if the network of ``config.json`` is larger than its weights.

    Nothing is allocated for it: transformers would make room for all that the weights lack.
    """
    n_needed, n_layers, _ = size_of_network(str(directory), auto_class)
    with loading(str(directory)), safe_open(directory / WEIGHTS, "pt") as file:
        names = file.keys()
        n_saved = sum(math.prod(file.get_slice(name).get_shape()) for name in names)
    if n_needed > n_saved or (n_layers is not None and n_layers < 1):
        raise ValueError(
            f"{CONFIG} in {str(directory)!r} describes a network of {n_needed} numbers and "
            f"{'some' if n_layers is None else n_layers} layers, and {WEIGHTS} has {n_saved} "
            f"numbers. Copy the directory again from where it was saved."
        )


def check_adapters(directory: Path, auto_class: str, model: str, peft_config: Any) -> None:
    """Raise a ValueError if adapters and their network are larger than what there is of weights.

    Nothing is allocated for them.

    Parameters
    ----------
    directory : Path
    auto_class : str
        Of transformers.
    model : str
        Hub id or directory of the base model.
    peft_config : peft.PeftConfig
    """
    import transformers

    with loading(model):
        config = transformers.AutoConfig.from_pretrained(directory / MODEL_CONFIG)
        with torch.device("meta"):
            network = getattr(transformers, auto_class).from_config(config)
        with safe_open(directory / ADAPTER_WEIGHTS, "pt") as file:
            names = file.keys()
            n_saved = sum(math.prod(file.get_slice(name).get_shape()) for name in names)
    encoder = set(network.base_model.parameters())
    head = {weight for weight in network.parameters() if weight not in encoder}
    try:
        with torch.device("meta"):
            add_adapters(network, peft_config, head)
    except ValueError:
        return  # They do not fit, which is said later, or begin with what weights are.
    n_needed = sum(weight.numel() for weight in network.parameters())
    n_base = size_of_network(model, "AutoModel").n_parameters
    if n_needed > n_saved + n_base:
        raise ValueError(
            f"{MODEL_CONFIG} and peft_config in {str(directory)!r} describe a network of "
            f"{n_needed} numbers; {ADAPTER_WEIGHTS} has {n_saved}, and the model {model!r} "
            f"{n_base}. Copy the directory again from where it was saved."
        )


def read_adapters(directory: Path) -> dict[str, Tensor]:
    """Return the weights of adapters, by the names that peft gives them in files.

    Raises
    ------
    ValueError
        If the file cannot be read.
    """
    return _read_weights(directory / ADAPTER_WEIGHTS)


def read_head(directory: Path) -> dict[str, Tensor]:
    """Return the weights that are not part of the transformer.

    Raises
    ------
    ValueError
        If the file cannot be read.
    """
    path = directory / HEAD
    return _read_weights(path) if path.exists() else {}


def _read_weights(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{str(path)!r} has no weights ({error}).") from error


def _is_byte_level(path: Path) -> bool:
    """Whether the tokenizer is a byte-level BPE that looks at a text as a whole."""
    pre_tokenizer = json.loads(path.read_text(encoding="utf-8"))["pre_tokenizer"]
    return bool(pre_tokenizer) and pre_tokenizer["type"] == "ByteLevel"


def _put_space_before_text(directory: Path) -> None:
    path = directory / TOKENIZER
    content = json.loads(path.read_text(encoding="utf-8"))
    content["pre_tokenizer"]["add_prefix_space"] = True
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2), encoding="utf-8")
    # Some classes of transformers go by it alone.
    _update(directory / TOKENIZER_CONFIG, {"add_prefix_space": True})


def _update(path: Path, entries: dict[str, Any]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(
        json.dumps({**content, **entries}, indent=2, sort_keys=True) + "\n", encoding="utf-8"
    )
