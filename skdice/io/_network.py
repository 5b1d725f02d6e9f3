"""The files that transformers reads: weights, configuration and tokenizer."""

import copy
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from .._files import write_file
from .._pretrained import CONFIG, TOKENIZER, TOKENIZER_CONFIG, quiet_transformers, read_json
from ..fitting import Fitted
from ..nn import HEAD, TRANSFORMER, TextModule

# HEAD is there if transformers has no class for the head.
_WEIGHTS = "model.safetensors"
FILES = frozenset({CONFIG, TOKENIZER, TOKENIZER_CONFIG, _WEIGHTS, HEAD})


def write_json(path: Path, content: dict[str, Any]) -> None:
    write_file(path, f"{json.dumps(content, indent=2, sort_keys=True)}\n".encode())


def write_network(directory: Path, fitted: Fitted) -> None:
    """Write a model and its tokenizer so that transformers can load them."""
    module, task = fitted.net.module_, fitted.task
    transformer: Any = module.transformer
    tokenizer = fitted.reader.tokenizer.tokenizer
    with quiet_transformers():
        # All weights are in one file, so that its name is known.
        transformer.save_pretrained(directory, max_shard_size=10**15)
        # Templates for chats would be files, and directories, of their own.
        tokenizer.save_pretrained(directory, save_jinja_files=False)
    if task.head.reads_mean:
        _refuse_other_heads(directory, transformer.config)
    head = {
        # Tied weights are one tensor, which a file cannot hold twice.
        name: weight.cpu().contiguous().clone()
        for name, weight in module.state_dict().items()
        if not name.startswith(TRANSFORMER)
    }
    if head:
        save_file(head, directory / HEAD, metadata={"format": "pt"})
    entries = dict(task.head.model_config)
    if hasattr(transformer.config, "use_mems_eval"):
        entries["use_mems_eval"] = False  # States of other texts are not handed on.
    config = directory / CONFIG
    write_json(config, read_json(config) | entries)
    _set_up_tokenizer(directory, fitted)
    mode = config.stat().st_mode
    for path in directory.iterdir():
        if path.name in FILES:
            path.chmod(mode)  # safetensors makes its files private, whatever the umask is.
        else:
            path.unlink()


def _refuse_other_heads(directory: Path, config: Any) -> None:
    """Have transformers load the encoder alone.

    transformers has no class for this head and would draw the weights of another head at random.
    Empty tensors in their place make that an error.
    """
    from transformers import AutoModelForSequenceClassification

    with torch.device("meta"):  # Nothing is allocated.
        other = AutoModelForSequenceClassification.from_config(config)
    inside = f"{other.base_model_prefix}."
    empty = {name: torch.zeros(0) for name in other.state_dict() if not name.startswith(inside)}
    file = directory / _WEIGHTS
    save_file(load_file(file) | empty, file, metadata={"format": "pt"})


def _set_up_tokenizer(directory: Path, fitted: Fitted) -> None:
    """Make the saved tokenizer cut texts as the fit did."""
    settings: dict[str, Any] = {"model_max_length": fitted.reader.max_length}
    if fitted.net.module_.takes_types:  # Some tokenizers return no token types unless told to.
        settings["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    content = read_json(directory / TOKENIZER)
    steps = content["pre_tokenizer"]
    # transformers gives the tokenizer of a tagger raw text; skdice gives it words. A byte-level BPE
    # has to read the first word of a text as all others, after a space.
    if fitted.task.info.name == "tagging" and steps and steps["type"] == "ByteLevel":
        # Some classes of transformers read the one setting, some the other.
        settings["add_prefix_space"] = steps["add_prefix_space"] = True
        text = json.dumps(content, ensure_ascii=False, indent=2)
        (directory / TOKENIZER).write_text(text, encoding="utf-8")
    config = directory / TOKENIZER_CONFIG
    write_json(config, read_json(config) | settings)


def load_head(module: TextModule, directory: Path) -> None:
    """Load all weights but the transformer's; a ValueError names weights that do not match."""
    head = load_file(directory / HEAD) if (directory / HEAD).exists() else {}
    members = {name.split(".")[1] for name in head if name.startswith("members.")}
    module.members.extend([copy.deepcopy(module) for _ in members])
    keys = module.load_state_dict(head, strict=False)
    missing = [name for name in keys.missing_keys if not name.startswith(TRANSFORMER)]
    with safe_open(directory / _WEIGHTS, "pt") as file:
        empty = {name for name in file.keys() if 0 in file.get_slice(name).get_shape()}  # noqa: SIM118
    if unmatched := sorted({*module.unmatched_weights, *missing, *keys.unexpected_keys} - empty):
        raise ValueError(f"the files or the network have no weights {', '.join(unmatched[:3])}")
