"""The files that transformers reads: weights, configuration and tokenizer."""

import copy
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from ..nn import ADAPTER_CONFIG, ADAPTER_WEIGHTS, HEAD, TRANSFORMER, TextModule, size_of_network
from ._manifest import WEIGHTS
from ._onnx import save_exported

# By these transformers would take code from a repository, or read other files than those listed.
_OUTSIDE_KEYS = ("auto_map", "custom_pipelines", "transformers_weights", "fast_tokenizer_files")


@dataclass(frozen=True)
class SavedNetwork:
    """A network and its tokenizer, with what transformers has to know of them."""

    module: TextModule
    tokenizer: Any
    config: dict[str, Any]  # to set: names of the labels, type of the problem
    max_length: int  # where the tokenizer cuts when it is asked to
    # Whether the model was trained on single words: a byte-level BPE then has to read the first
    # word of a text as all others, after a space.
    splits_words: bool
    # Of peft. Adapters are written in place of all weights of the transformer.
    adapter_config: dict[str, Any] | None = None
    runtime: str = "torch"  # what predictions take; else it is exported as well


def write_network(directory: Path, network: SavedNetwork) -> None:
    """Write a model and its tokenizer so that transformers can load them."""
    transformer: Any = network.module.transformer
    weights = network.module.state_dict()
    with quiet_transformers():
        if network.adapter_config is None:
            config_file = directory / CONFIG
            # One file of any size: its name is known.
            transformer.save_pretrained(directory, max_shard_size=10**15)
        else:
            config_file = directory / MODEL_CONFIG
            config = copy.deepcopy(transformer.config)
            config.architectures = [type(transformer).__name__]
            config.to_json_file(config_file)
            _update(directory / ADAPTER_CONFIG, network.adapter_config)
            names = network.module.saved_names().items()
            adapters = {saved: weights[name] for name, saved in names}
            _save_weights(adapters, directory / ADAPTER_WEIGHTS)
        network.tokenizer.save_pretrained(directory)
    head = {name: part for name, part in weights.items() if not name.startswith(TRANSFORMER)}
    if head:
        _save_weights(head, directory / HEAD)
    entries = dict(network.config)
    if hasattr(transformer.config, "use_mems_eval"):
        entries["use_mems_eval"] = False  # States of other texts are not handed on.
    _update(config_file, entries)
    _set_up_tokenizer(directory, network)
    if network.runtime != "torch":
        save_exported(directory, network.module, network.runtime, network.max_length)
    # safetensors makes its files private, whatever the umask is.
    mode = config_file.stat().st_mode
    for path in directory.glob("*.safetensors"):
        path.chmod(mode)


def _set_up_tokenizer(directory: Path, network: SavedNetwork) -> None:
    """Have the tokenizer give what the network was trained on."""
    settings: dict[str, Any] = {"model_max_length": network.max_length}
    if network.module.takes_types:  # Some tokenizers give none unless told to.
        settings["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    content = read_json(directory / TOKENIZER)
    steps = content["pre_tokenizer"]
    # A byte-level BPE that looks at a text as a whole.
    if network.splits_words and steps and steps["type"] == "ByteLevel":
        # Some classes of transformers go by the one, some by the other.
        settings["add_prefix_space"] = steps["add_prefix_space"] = True
        text = json.dumps(content, ensure_ascii=False, indent=2)
        (directory / TOKENIZER).write_text(text, encoding="utf-8")
    _update(directory / TOKENIZER_CONFIG, settings)


def _save_weights(weights: dict[str, Tensor], path: Path) -> None:
    # Tied weights are one tensor, which a file cannot hold twice.
    own = {name: weight.cpu().contiguous().clone() for name, weight in weights.items()}
    save_file(own, path, metadata={"format": "pt"})


def check_loads_nothing_else(directory: Path) -> None:
    """Raise a ValueError if transformers would load code or weights that are not in a directory.

    skdice never saves such a directory; the check is for others that look like one.
    """
    for name in (CONFIG, MODEL_CONFIG, TOKENIZER_CONFIG):
        check_configuration(directory, name)
        found = [key for key, _ in entries(read_json(directory / name)) if key in _OUTSIDE_KEYS]
        if found:
            raise ValueError(
                f"{name} in {str(directory)!r} has {found[0]!r}, which names code or files to "
                f"load; skdice loads no code."
            )


def check_weights(directory: Path, auto_class: str) -> None:
    """Raise a ValueError if the network of ``config.json`` is larger than its weights.

    Nothing is allocated for it: transformers would make room for all that the weights lack.
    """
    n_needed, n_layers, *_ = size_of_network(str(directory), auto_class)
    with loading(str(directory)), safe_open(directory / WEIGHTS, "pt") as file:
        names = file.keys()
        n_saved = sum(math.prod(file.get_slice(name).get_shape()) for name in names)
    if n_needed > n_saved or n_layers == 0:
        raise ValueError(
            f"{CONFIG} in {str(directory)!r} describes a network of {n_needed} numbers and "
            f"{n_layers} layers, and {WEIGHTS} has {n_saved} numbers."
        )


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return the weights in a file; none if there is no file."""
    try:
        return load_file(path) if path.exists() else {}
    except SafetensorError as error:
        raise ValueError(f"{str(path)!r} has no weights ({error}).") from error


def _update(path: Path, entries: dict[str, Any]) -> None:
    text = json.dumps({**read_json(path), **entries}, indent=2, sort_keys=True)
    path.write_text(f"{text}\n", encoding="utf-8")
