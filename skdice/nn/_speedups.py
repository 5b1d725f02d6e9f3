"""Context managers inside which a module runs faster.

Attention keeps torch's fused kernel in spite of dropout, and does not wait for a GPU. The embedding
matrix is trained only in the rows that occur in the training texts: it is often the largest part of
a model, and a plain optimiser visits all of it in every step.
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
# If at least this share of the rows is used, copying them into their own matrix saves no time.
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
    """Attend with dropout of the output in place of the weights.

    A CPU has no fused kernel with dropout of weights: it would write all weights to memory.
    """
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    output, weights = sdpa_attention_forward(*inputs, dropout=0.0, **options)
    return nn.functional.dropout(output, dropout), weights


def _mask(*args: Any, attention_mask: Tensor | None = None, **options: Any) -> Tensor | None:
    """Make the mask for attention.

    A batch without padding needs none. transformers reads the mask to find that out, and would wait
    for a GPU. On a GPU, batches without padding come without a mask, so the mask is not read.
    """
    from transformers import AttentionMaskInterface

    if attention_mask is not None and attention_mask.device.type == "cuda":
        options |= {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    make = AttentionMaskInterface()["sdpa"]
    mask: Tensor | None = make(*args, attention_mask=attention_mask, **options)
    return mask


@contextmanager
def compact_embedding(module: nn.Module, piece_ids: np.ndarray) -> Iterator[None]:
    """Train only the embeddings of some pieces inside the block; write them back after it.

    ``piece_ids`` has all pieces that the module will see in training mode, repeated or not. Steps
    are the same up to rounding, except that the rows of other pieces do not decay. Frozen and tied
    matrices are left alone, and so are modules that do more than look up rows.
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
            module.set_submodule(place, whole)


class _CompactEmbedding(nn.Module):
    """An embedding with a matrix of some rows for training mode, and the whole one otherwise.

    Its state dict is that of the whole embedding, so that weights which a callback saves during
    training can be loaded into the model before and after it.
    """

    def __init__(self, whole: nn.Embedding, rows: Tensor) -> None:
        super().__init__()
        weight = whole.weight.detach()
        self._whole = (whole,)  # A tuple hides it from torch's list of parts.
        self._rows = rows.to(weight.device)
        self.used = nn.Parameter(weight[self._rows])
        self._index = torch.full((len(weight),), -1, device=weight.device)
        self._index[self._rows] = torch.arange(len(rows), device=weight.device)
        # Padding has no gradient.
        padding = -1 if whole.padding_idx is None else int(self._index[whole.padding_idx])
        self._padding = None if padding < 0 else padding

    def forward(self, input_ids: Tensor) -> Tensor:
        if not self.training:
            self.write_back()
            return nn.functional.embedding(input_ids, self._whole[0].weight.detach())
        return nn.functional.embedding(self._index[input_ids], self.used, self._padding)

    @torch.no_grad()
    def write_back(self) -> None:
        """Put the trained rows into the whole embedding."""
        self._whole[0].weight[self._rows] = self.used

    def _save_to_state_dict(self, *args: Any) -> None:
        self.write_back()
        self._whole[0]._save_to_state_dict(*args)

    @torch.no_grad()
    def _load_from_state_dict(self, *args: Any) -> None:
        self.write_back()  # The state may have other weights only.
        self._whole[0]._load_from_state_dict(*args)
        self.used.copy_(self._whole[0].weight[self._rows])
