"""The networks: pretrained transformers of the transformers library with a task head."""

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from .._pretrained import loading


class TokenModule(nn.Module):
    """A transformer with a linear head on each piece; gives the logits of the scored pieces.

    Parameters
    ----------
    model : str
        Hub id or directory.
    n_classes : int
    n_frozen_layers : int or None
        None trains everything; k freezes the embeddings and the first k layers.
    """

    def __init__(self, model: str, n_classes: int, n_frozen_layers: int | None = None) -> None:
        from transformers import AutoModelForTokenClassification

        super().__init__()
        self.transformer = _load(AutoModelForTokenClassification, model, num_labels=n_classes)
        self._takes_types = _takes_token_types(self.transformer)
        self._frozen: list[str] = []
        if n_frozen_layers is not None:
            self._freeze(n_frozen_layers)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor,
        row: Tensor,
        column: Tensor,
    ) -> Tensor:
        """Return float32 logits of shape (n_items, n_classes)."""
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if self._takes_types:
            inputs["token_type_ids"] = token_type_ids
        return self.transformer(**inputs).logits[row, column].float()

    def train(self, mode: bool = True) -> "TokenModule":
        """Set training mode; frozen parts stay without dropout."""
        super().train(mode)
        for name in self._frozen:
            self.get_submodule(name).eval()
        return self

    def head_parameters(self) -> set[nn.Parameter]:
        """Return the parameters that are not part of the pretrained encoder."""
        encoder = set(self.transformer.base_model.parameters())
        return set(self.parameters()) - encoder

    def _freeze(self, n_layers: int) -> None:
        base = self.transformer.base_model
        layers = _layers(self.transformer)
        if n_layers > len(layers):
            raise ValueError(
                f"The 'n_frozen_layers' parameter must be None or an int in the range [0, "
                f"{len(layers)}], the layers of this model. Got {n_layers} instead."
            )
        embeddings = getattr(base, "embeddings", None) or base.get_input_embeddings()
        names = {module: name for name, module in self.named_modules()}
        for part in [embeddings, *layers[:n_layers]]:
            part.requires_grad_(False)
            self._frozen.append(names[part])


def position_limit(model: str) -> int | None:
    """Return how many positions a model has, special tokens included; None if unlimited.

    Models of the RoBERTa family count positions from ``padding_idx + 1`` on.
    """
    from transformers import AutoConfig, AutoModel

    with loading(model):
        config = AutoConfig.from_pretrained(model)
        with torch.device("meta"):
            network = AutoModel.from_config(config)
    for name, module in network.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            used = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - used
    limit = getattr(config, "max_position_embeddings", None)
    return limit if isinstance(limit, int) and limit > 0 else None


def _load(auto_class: Any, model: str, **config: Any) -> Any:
    """Load a model in float32; its head may be new, its encoder must be in the checkpoint."""
    with loading(model):
        transformer, info = auto_class.from_pretrained(
            model,
            dtype=torch.float32,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
            **config,
        )
    head = {name for name, _ in transformer.named_parameters()} - {
        f"{transformer.base_model_prefix}.{name}"
        for name, _ in transformer.base_model.named_parameters()
    }
    mismatched = {key[0] if isinstance(key, tuple) else key for key in info["mismatched_keys"]}
    absent = sorted((set(info["missing_keys"]) | mismatched) - head)
    if absent:
        raise ValueError(
            f"The checkpoint {model!r} has no weights of the right shape for {len(absent)} "
            f"parameters of {type(transformer).__name__}'s encoder, among them {absent[0]!r}."
        )
    return transformer


def _takes_token_types(transformer: nn.Module) -> bool:
    """Whether the model reads token types (some have the argument and one type only)."""
    config: Any = transformer.config
    has_argument = "token_type_ids" in inspect.signature(transformer.forward).parameters
    n_types = getattr(config, "type_vocab_size", None)
    return has_argument and (n_types is None or n_types > 1)


def _layers(transformer: nn.Module) -> nn.ModuleList:
    """Return the encoder layers, in order."""
    config: Any = transformer.config
    for module in transformer.modules():
        if isinstance(module, nn.ModuleList) and len(module) == config.num_hidden_layers:
            return module
    raise ValueError(
        f"The 'n_frozen_layers' parameter must be None for {type(transformer).__name__}: its "
        f"layers were not found."
    )
