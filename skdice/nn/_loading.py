"""Pretrained transformers: descriptions, weights, token types, layers and adapters.

Adapters of peft are small new weights; they are trained in place of an encoder's weights. After
training they are merged into these, so that a fitted network is like any other.
"""

import copy
import os
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from .._extras import not_installed
from .._parameters import not_allowed
from .._pretrained import loading, quiet_transformers
from ..exceptions import hidden
from ..text import TextReader, WordTokenizer

# The file of the weights that transformers has no class for.
HEAD = "head.safetensors"
# Parts of DeBERTa that all layers read, though they are registered after the layers.
_RELATIVE = ("rel_embeddings", "LayerNorm")
# Adapters that lie inside the layers, are trained by gradients alone, and can be merged into them.
_ADAPTERS = ("LORA", "IA3", "LOHA", "LOKR", "OFT", "LN_TUNING")
# Families that also read the padding of a text, so that its scores depend on its batch.
_READ_PADDING = ("convbert", "fnet", "funnel", "nystromformer", "yoso")
# Pieces of a text, if neither the model nor its tokenizer has a limit.
_DEFAULT_MAX_LENGTH = 512


class Encoder(NamedTuple):
    """What is known of a pretrained encoder before it is trained."""

    family: str  # "model_type" of its configuration, such as "bert"
    width: int  # hidden units of each piece
    depth: int | None  # number of layers
    sees_case: bool  # whether words in upper and lower case become different pieces
    n_positions: int | None  # pieces of the longest text, special ones included; None: no limit
    # The classes of transformers that the checkpoint has weights for; "MeanModule" is a head on the
    # mean state.
    heads: tuple[str, ...] = ()
    n_labels: int = 0  # outputs of its head
    has_decoder: bool = False  # whether a decoder follows the encoder, as in T5


def load_transformer(
    auto_class: str, model: str, n_labels: int
) -> tuple[Any, set[nn.Parameter], list[str], list[str] | None]:
    """Load a model in float32; its head may be new, its encoder must be in the checkpoint.

    Returns the transformer; the new parameters of its ``base_model``; the names of the weights that
    only the checkpoint or only the model has, or that have another shape; and the labels of the
    checkpoint's head, None without a head. A pooler, which some families count as encoder, belongs
    to the head if it is new. A model that cannot be loaded raises a ValueError, and so do weights
    of the encoder that are missing or have another shape.
    """
    import transformers

    with loading(model):
        config = transformers.AutoConfig.from_pretrained(model)
        trained = config.architectures or []
        labels = [str(name) for name in config.id2label.values()]
        config.num_labels = n_labels
        how: dict[str, Any] = {"ignore_mismatched_sizes": True, "output_loading_info": True}
        kind = getattr(transformers, auto_class)
        transformer, info = kind.from_pretrained(model, config=config, dtype=torch.float32, **how)
    # The last bits of a product may depend on where in memory a weight lies. A mapped file may lie
    # anywhere, a copy is aligned.
    for tensor in (*transformer.parameters(), *transformer.buffers()):
        tensor.data = tensor.data.clone()
    encoder = set(transformer.base_model.parameters())
    head = {name for name, weight in transformer.named_parameters() if weight not in encoder}
    mismatched = {key[0] if isinstance(key, tuple) else key for key in info["mismatched_keys"]}
    new_in_encoder = sorted((set(info["missing_keys"]) | mismatched) - head)
    absent = [name for name in new_in_encoder if "pooler" not in name.split(".")]
    if absent:
        raise ValueError(
            f"The checkpoint {model!r} has no weights of the right shape for {len(absent)} "
            f"parameters of {type(transformer).__name__}'s encoder, among them {absent[0]!r}."
        )
    unmatched = set(info["missing_keys"]) | mismatched | set(info["unexpected_keys"])
    are_told = labels != [f"LABEL_{i}" for i in range(len(labels))]
    is_trained = are_told and type(transformer).__name__ in trained
    new = {transformer.get_parameter(name) for name in new_in_encoder}
    return transformer, new, sorted(unmatched), labels if is_trained else None


def describe_encoder(model: str, *, sees_case: bool) -> Encoder:
    """Describe an encoder by its configuration; only its tokenizer knows whether it sees case.

    Some rows of a table of positions may be unused: models of the RoBERTa family count positions
    from ``padding_idx + 1`` on.
    """
    from transformers import AutoConfig, AutoModel

    with loading(model):
        config: Any = AutoConfig.from_pretrained(model)
        with torch.device("meta"):  # Nothing is allocated.
            network = AutoModel.from_config(config)
    limits = [getattr(config, "max_position_embeddings", None)]
    for name, part in network.named_modules():
        weight = getattr(part, "weight", None)
        if name.endswith("position_embeddings") and isinstance(weight, Tensor):
            padding = getattr(part, "padding_idx", None)
            limits.append(len(weight) - (0 if padding is None else padding + 1))
    heads, head = [*(config.architectures or ())], os.path.join(model, HEAD)
    if os.path.exists(head) and len(load_file(head).get("head.weight", ())) == len(config.id2label):
        heads.append("MeanModule")
    return Encoder(
        family=config.model_type,
        width=int(config.get_text_config().hidden_size),
        depth=getattr(config, "num_hidden_layers", None),
        sees_case=sees_case,
        n_positions=min((n for n in limits if isinstance(n, int) and n > 0), default=None),
        heads=tuple(heads),
        n_labels=len(config.id2label),
        has_decoder=bool(getattr(config, "is_encoder_decoder", False)),
    )


def read_model(
    model: str, max_length: int | None, n_texts: int, owner: str
) -> tuple[TextReader, Encoder]:
    """Return the reader of a model, for windows of ``n_texts`` texts, and its encoder described.

    A ``max_length`` that the model cannot read, or a family whose scores depend on padding, raises
    a ValueError in the name of the ``owner``.
    """
    tokenizer = WordTokenizer(model)
    words = ["Anna", "Paris", "NATO"]
    upper, lower = (tokenizer.encode(text).values for text in (words, [w.lower() for w in words]))
    encoder = describe_encoder(model, sees_case=not np.array_equal(upper, lower))
    if encoder.family in _READ_PADDING:
        raise ValueError(
            f"The 'model' parameter of {owner} must not be of the families "
            f"{', '.join(_READ_PADDING)}, whose scores of a text change with its padding. Got "
            f"{model!r}, which is of the family {encoder.family!r}."
        )
    frame = tokenizer.pair_frame if n_texts == 2 else tokenizer.frame
    limits = (encoder.n_positions, tokenizer.tokenizer.model_max_length)
    known = [n for n in limits if n and n < 10**9]
    longest = min(known, default=_DEFAULT_MAX_LENGTH)
    length = longest if max_length is None else int(max_length)
    if not frame.n_special < length <= min(known, default=length):
        raise ValueError(
            f"The 'max_length' parameter of {owner} must be None or an int in the range "
            f"[{frame.n_special + 1}, {longest}] for {model!r}. Got {max_length!r} instead."
        )
    return TextReader(tokenizer, length), encoder


def replace_token_types(transformer: Any, n_types: int) -> nn.Embedding | None:
    """Give the table of token types ``n_types`` rows, all equal to its first; return the table.

    It is None unless the transformer has exactly one such table.
    """
    tables = {
        name: table
        for name, table in transformer.named_modules()
        if name.endswith("token_type_embeddings") and isinstance(table, nn.Embedding)
    }
    if len(tables) != 1:
        return None
    ((name, table),) = tables.items()
    if table.num_embeddings != n_types:
        rows = table.weight[:1].detach().repeat(n_types, 1)
        table = nn.Embedding.from_pretrained(rows, freeze=False)
        transformer.set_submodule(name, table)
        transformer.config.type_vocab_size = n_types
    return table


def freeze(transformer: Any, n_layers: int, head: set[nn.Parameter]) -> list[nn.Module]:
    """Freeze the embeddings and the first layers of an encoder, but nothing of the head.

    Returns the frozen parts, which have to stay in eval mode, so that they have no dropout; some
    may be used after the last layer as well. An encoder that has fewer layers, or no one list of
    them, raises a ValueError.
    """
    encoder, n_all = transformer.base_model, getattr(transformer.config, "num_hidden_layers", None)
    found: list[nn.ModuleList] = []
    for parent in transformer.modules():
        lists = [part for part in parent.children() if isinstance(part, nn.ModuleList)]
        if found := [part for part in lists if len(part) == n_all]:
            break
    if len(found) != 1:
        raise ValueError(
            f"The 'n_frozen_layers' parameter must be None for {type(transformer).__name__}: it "
            f"has no one list of all its layers."
        )
    layers = found[0]
    if n_layers > len(layers):
        raise ValueError(
            f"The 'n_frozen_layers' parameter must be None or an int in the range [0, "
            f"{len(layers)}], the layers of this model. Got {n_layers} instead."
        )
    inside, is_before = set(layers.modules()), True
    frozen: list[nn.Module] = list(layers[:n_layers])
    for name, part in encoder.named_modules():
        is_before = is_before and part is not layers
        if part in inside or layers in part.modules():
            continue
        # Tables and dropout belong to the embeddings, wherever they are registered.
        if is_before or isinstance(part, nn.Embedding | nn.Dropout) or name.endswith(_RELATIVE):
            frozen.append(part)
    for part in frozen:
        for parameter in part.parameters():
            parameter.requires_grad_(parameter in head)
    return frozen


def check_peft_config(owner: str, name: str, value: Any) -> None:
    """Raise a ValueError unless a value is None or describes adapters that can be trained here."""
    if value is None:
        return
    try:
        import peft
    except ImportError as error:
        raise not_installed(f"{name}={type(value).__name__}(...)", "peft", "peft") from error
    if not isinstance(value, peft.PeftConfig) or value.peft_type not in _ADAPTERS:
        allowed = (
            "None or a configuration of peft for adapters that can be merged into the layers, "
            "such as peft.LoraConfig(r=8), IA3Config or LoHaConfig"
        )
        raise not_allowed(owner, name, allowed, value)


def add_adapters(transformer: Any, config: Any, head: set[nn.Parameter]) -> Any:
    """Put adapters into a transformer, and freeze all its other weights except the head.

    Returns a model of peft, whose ``merge_and_unload`` takes the adapters out again.
    """
    import peft

    config = copy.deepcopy(config)
    # The head is not peft's, and configurations that were saved are set for predictions.
    config.task_type, config.inference_mode = None, False
    try:
        # peft uses names that other libraries are about to drop.
        with quiet_transformers(), hidden(FutureWarning):
            adapted = peft.get_peft_model(transformer, config)
    except (ValueError, TypeError, AttributeError, NotImplementedError, ImportError) as error:
        parts = transformer.named_modules()
        linear = {name.rpartition(".")[2] for name, part in parts if isinstance(part, nn.Linear)}
        raise ValueError(
            f"The 'peft_config' parameter does not fit {type(transformer).__name__}. peft says: "
            f"{str(error).rstrip('.')}. target_modules may be 'all-linear', or name some of the "
            f"linear layers {', '.join(sorted(linear))}."
        ) from error
    for parameter in head:
        parameter.requires_grad_(True)
    return adapted
