"""The files that transformers reads: weights, configuration and tokenizer."""

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from .._pretrained import quiet_transformers

CONFIG = "config.json"
HEAD = "head.safetensors"
_TOKENIZER = "tokenizer.json"
_TOKENIZER_CONFIG = "tokenizer_config.json"
# Keys by which transformers would take code from a repository.
_CODE_KEYS = ("auto_map", "custom_pipelines")


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
    """
    from safetensors.torch import save_file

    with quiet_transformers():
        # One file of any size: its name is known.
        transformer.save_pretrained(directory, max_shard_size=10**15)
        tokenizer.save_pretrained(directory)
    if head:
        save_file(
            {name: weight.contiguous().cpu() for name, weight in head.items()}, directory / HEAD
        )
    _update(directory / CONFIG, config)
    settings: dict[str, Any] = {"model_max_length": max_length}
    if takes_token_types:
        settings["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    _update(directory / _TOKENIZER_CONFIG, settings)
    if splits_words and _is_byte_level(directory / _TOKENIZER):
        _put_space_before_text(directory)
    # safetensors makes its files private, whatever the umask is.
    mode = (directory / CONFIG).stat().st_mode
    for path in directory.glob("*.safetensors"):
        path.chmod(mode)


def check_configuration(directory: Path) -> None:
    """Raise a ValueError if transformers would ask to run code that a directory brings.

    skdice never saves such a directory; the check is for others that look like one.
    """
    for name in (CONFIG, _TOKENIZER_CONFIG):
        path = directory / name
        content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        for key in _CODE_KEYS:
            if key in content:
                raise ValueError(
                    f"{name} in {str(directory)!r} has {key!r}, which names code to run. skdice "
                    f"loads no code; models of transformers' own families have no such entry."
                )


def read_head(directory: Path) -> dict[str, Tensor]:
    """Return the weights that are not part of the transformer."""
    from safetensors.torch import load_file

    path = directory / HEAD
    return load_file(path) if path.exists() else {}


def _is_byte_level(path: Path) -> bool:
    """Whether the tokenizer is a byte-level BPE that looks at a text as a whole."""
    pre_tokenizer = json.loads(path.read_text(encoding="utf-8"))["pre_tokenizer"]
    return bool(pre_tokenizer) and pre_tokenizer["type"] == "ByteLevel"


def _put_space_before_text(directory: Path) -> None:
    path = directory / _TOKENIZER
    content = json.loads(path.read_text(encoding="utf-8"))
    content["pre_tokenizer"]["add_prefix_space"] = True
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2), encoding="utf-8")
    # Some classes of transformers go by it alone.
    _update(directory / _TOKENIZER_CONFIG, {"add_prefix_space": True})


def _update(path: Path, entries: dict[str, Any]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(
        json.dumps({**content, **entries}, indent=2, sort_keys=True) + "\n", encoding="utf-8"
    )
