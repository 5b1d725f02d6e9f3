"""Blocks in which a module runs faster than as it is.

Attention keeps torch's fused kernel in spite of dropout, and does not wait for a GPU; and of the
embedding matrix only those rows are trained that occur in the training texts. The matrix is often
the largest part of a model; a plain optimiser visits all of it in every step.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._pretrained import quiet_transformers

# The name under which transformers knows the attention of this module.
_NAME = "skdice"
# Of rows, the share from which on a matrix of its own for them saves nothing.
_MOST_USED = 0.9


def is_fused(network: Any) -> bool:
    """Whether a transformer leaves attention to torch's fused kernel, and masks to transformers."""
    return getattr(network.config, "_attn_implementation", None) in ("sdpa", _NAME)


@contextmanager
def own_attention(module: nn.Module) -> Iterator[None]:
    """Have the transformers in a module attend by :func:`_attend` inside the block.

    Models that do not leave attention to torch's fused kernel are left alone.
    """
    parts: Any = module.modules()
    networks = [part for part in parts if hasattr(part, "set_attn_implementation")]
    networks = [network for network in networks if network.config._attn_implementation == "sdpa"]
    if not networks:
        yield
        return
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(_NAME, _attend)
    AttentionMaskInterface.register(_NAME, _mask)

    with quiet_transformers():
        for network in networks:
            network.set_attn_implementation(_NAME)
    try:
        yield
    finally:
        with quiet_transformers():
            for network in networks:
                network.set_attn_implementation("sdpa")


def _attend(*inputs: Any, dropout: float = 0.0, **options: Any) -> tuple[Any, None]:
    """Drop parts of what attention gives, in place of its weights.

    A CPU has no fused kernel that drops weights: all of them would be written out.
    """
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    output, weights = sdpa_attention_forward(*inputs, dropout=0.0, **options)
    return nn.functional.dropout(output, dropout), weights


def _mask(*args: Any, attention_mask: Tensor | None = None, **options: Any) -> Tensor | None:
    """Make the mask for attention.

    Where nothing is padded, none is needed. transformers asks the mask for that, and would wait for
    a GPU; there, a batch without padding comes without a mask.
    """
    from transformers import AttentionMaskInterface

    if attention_mask is not None and attention_mask.device.type == "cuda":
        options |= {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    make = AttentionMaskInterface()["sdpa"]
    mask: Tensor | None = make(*args, attention_mask=attention_mask, **options)
    return mask


@contextmanager
def compact_embedding(module: nn.Module, piece_ids: np.ndarray) -> Iterator[None]:
    """Train only the rows of some pieces inside the block, and put the matrix together after it.

    The pieces are all that the module will see in training mode, repeated or not. Gradients, and so
    steps, are the same up to rounding; the rows of other pieces stay as they are instead of
    decaying. Frozen and tied matrices are left alone, and so are modules that do more than look up.
    """
    transformer: Any = module.transformer
    whole = transformer.get_input_embeddings()
    rows = np.unique(piece_ids)
    weights = module.named_parameters(remove_duplicate=False)
    if (
        type(whole) is not nn.Embedding
        or not whole.weight.requires_grad
        or whole.max_norm is not None
        or len(rows) >= _MOST_USED * whole.num_embeddings
        or sum(weight is whole.weight for _, weight in weights) > 1  # It is tied.
    ):
        yield
        return
    compact = _CompactEmbedding(whole, torch.from_numpy(rows.astype(np.int64)))
    compact.train(whole.training)
    parts = module.named_modules(remove_duplicate=False)
    places = [name for name, part in parts if part is whole]
    for place in places:
        module.set_submodule(place, compact)
    try:
        yield
    finally:
        compact.write_back()
        for place in places:
            module.set_submodule(place, whole.requires_grad_(True))


class _CompactEmbedding(nn.Module):
    """Looks up in a matrix of some rows while it is trained, in the whole one otherwise.

    Its state is that of the embedding it stands for, so that weights that a callback saves during
    training load into the model as it is before and after.
    """

    rows: Tensor
    index: Tensor

    def __init__(self, whole: nn.Embedding, rows: Tensor) -> None:
        super().__init__()
        weight = whole.weight
        rows = rows.to(weight.device)
        self.whole = whole.requires_grad_(False)
        self.used = nn.Parameter(weight.detach()[rows])
        index = torch.full((len(weight),), -1, device=weight.device)
        index[rows] = torch.arange(len(rows), device=weight.device)
        self.register_buffer("rows", rows, persistent=False)
        self.register_buffer("index", index, persistent=False)
        # Padding has no gradient.
        padding = -1 if whole.padding_idx is None else int(index[whole.padding_idx])
        self._padding = None if padding < 0 else padding
        self.register_state_dict_post_hook(_save_as_whole)
        self.register_load_state_dict_pre_hook(_load_from_whole)

    def forward(self, input_ids: Tensor) -> Tensor:
        if not self.training:
            self.write_back()
            looked_up: Tensor = self.whole(input_ids)
            return looked_up
        return nn.functional.embedding(self.index[input_ids], self.used, self._padding)

    @torch.no_grad()
    def write_back(self) -> None:
        """Put the trained rows into the whole embedding."""
        self.whole.weight[self.rows] = self.used


def _save_as_whole(
    module: _CompactEmbedding, state: dict[str, Any], prefix: str, _metadata: Any
) -> None:
    """Put the weight of the whole embedding in the place of those of the parts."""
    module.write_back()
    del state[f"{prefix}used"]
    state[f"{prefix}weight"] = state.pop(f"{prefix}whole.weight")


def _load_from_whole(
    module: _CompactEmbedding, state: dict[str, Any], prefix: str, *_: Any
) -> None:
    """Put the weights of the parts in the place of that of the whole embedding."""
    weight = state.pop(f"{prefix}weight", None)
    if weight is not None:
        state[f"{prefix}whole.weight"] = weight
        state[f"{prefix}used"] = weight[module.rows.to(weight.device)]
