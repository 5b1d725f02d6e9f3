"""Dropout of attention that leaves attention one fused kernel."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn
from torch.nn import functional

from .._pretrained import quiet_transformers

_NAME = "skdice"
_SETTER = "set_attn_implementation"


@contextmanager
def dropout_after_attention(module: nn.Module) -> Iterator[None]:
    """Drop parts of what attention gives, in place of its weights, inside the block.

    Where a CPU trains, there is no fused kernel that drops weights: all of them would be written
    out. Models that do not leave attention to torch's fused kernel are left alone.
    """
    transformers: Any = (part for part in module.modules() if hasattr(part, _SETTER))
    transformer = next(transformers, None)
    if transformer is None or transformer.config._attn_implementation != "sdpa":
        yield
        return
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(_NAME, _attend)
    AttentionMaskInterface.register(_NAME, AttentionMaskInterface()["sdpa"])
    with quiet_transformers():
        transformer.set_attn_implementation(_NAME)
    try:
        yield
    finally:
        with quiet_transformers():
            transformer.set_attn_implementation("sdpa")


def _attend(*inputs: Any, dropout: float = 0.0, **options: Any) -> tuple[Any, None]:
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    output, weights = sdpa_attention_forward(*inputs, dropout=0.0, **options)
    return functional.dropout(output, dropout), weights
