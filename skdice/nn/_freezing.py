"""Layers of an encoder that are not trained."""

from typing import Any

from torch import nn

# What layers of DeBERTa read besides the states, and what is registered after them.
_RELATIVE = ("rel_embeddings", "LayerNorm")


def freeze(transformer: Any, n_layers: int, head: set[nn.Parameter]) -> list[nn.Module]:
    """Take the embeddings and the first layers of an encoder out of training, but not the head.

    The frozen parts are returned. They are to stay in eval mode, so that they have no dropout; one
    that the encoder uses after its last layer as well is among them. It is a ValueError if the
    encoder has fewer layers, or has no one list of them.
    """
    encoder, layers = transformer.base_model, find_layers(transformer)
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
        # Tables and dropout serve what is below, wherever they are registered.
        if is_before or isinstance(part, nn.Embedding | nn.Dropout) or name.endswith(_RELATIVE):
            frozen.append(part)
    for part in frozen:
        for parameter in part.parameters():
            parameter.requires_grad_(parameter in head)
    return frozen


def find_layers(transformer: Any) -> nn.ModuleList:
    """Return the encoder layers, in order; a ValueError if there is no one list of them."""
    n_layers = getattr(transformer.config, "num_hidden_layers", None)
    reason = "were not found"
    for parent in transformer.modules():
        lists = [part for part in parent.children() if isinstance(part, nn.ModuleList)]
        found = [part for part in lists if len(part) == n_layers]
        if len(found) == 1:
            return found[0]
        if found:
            reason = "lie in parts in several lists"
            break
    raise ValueError(
        f"The 'n_frozen_layers' parameter must be None for {type(transformer).__name__}: its "
        f"layers {reason}."
    )
