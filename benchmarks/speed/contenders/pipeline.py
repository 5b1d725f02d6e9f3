"""The token classification pipeline of transformers."""

from collections.abc import Callable, Sequence
from typing import Any

from transformers import pipeline


def tagging_pipeline(
    model: Any, tokenizer: Any, batch_size: int
) -> Callable[[Sequence[Sequence[str]]], list[list[dict[str, Any]]]]:
    """Return a function that finds the pieces that are not "O"; words are joined by spaces."""
    tag = pipeline("token-classification", model=model, tokenizer=tokenizer, device=model.device)
    return lambda sentences: tag([" ".join(words) for words in sentences], batch_size=batch_size)
