"""Small batches on which a model shows whether it does what is taken for granted."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._pretrained import quiet_transformers
from ..text._encoding import EncodedDataset
from ..text._ragged import Ragged, offsets_from_lengths
from ..text._tokenizer import Frame
from ._batching import Batcher, to_device

_LENGTHS = (3, 3, 8)  # Pieces of text in the windows of a probe.
# Of the largest score: rounding makes 1e-5, a wrong mask 1e-1.
_TOLERANCE = 1e-3


@contextmanager
def unchanged(module: nn.Module) -> Iterator[None]:
    """Leave no trace of running a module inside the block: in its modes or its parts.

    BigBird, for one, takes other attention from its first short text on.
    """
    before = []
    for part in module.modules():
        dicts = {name: v.copy() for name, v in vars(part).items() if isinstance(v, dict)}
        before.append((part, dict(vars(part)), dicts))
    try:
        yield
    finally:
        for part, attributes, dicts in before:
            vars(part).clear()
            vars(part).update(attributes)
            for name, content in dicts.items():
                attributes[name].clear()
                attributes[name].update(content)


def probe_dataset(pieces: np.ndarray, frame: Frame, max_length: int) -> EncodedDataset:
    """Return two short windows of one length and a longer one, all positions of them scored."""
    n_texts = len(frame.text_types)
    lengths = np.minimum(_LENGTHS, max_length - frame.n_special - (n_texts - 1))
    first = [Ragged(pieces[:1].repeat(len(lengths)), np.arange(len(lengths) + 1))] * (n_texts - 1)
    last = Ragged(np.resize(pieces, lengths.sum()), offsets_from_lengths(lengths))
    input_ids, token_type_ids = frame.put_around(*first, last)
    places = [np.arange(n, dtype=np.int32) for n in input_ids.lengths]
    return EncodedDataset(
        input_ids=input_ids,
        token_type_ids=token_type_ids,
        items=Ragged(np.concatenate(places), input_ids.offsets),
        text=np.arange(len(lengths)),
        item_offsets=input_ids.offsets,
    )


def padding_is_masked(module: Any, probe: Batcher, device: Any) -> bool:
    """Whether the scores of a text are the same beside a longer one, which it is padded to.
    If not even beside a text as long, or if the model cannot be run, it is a ValueError.
    """
    name = type(module.transformer).__name__
    try:
        with unchanged(module), torch.no_grad(), quiet_transformers():
            module.eval()
            alone, beside, padded = (
                module(**_inputs(probe, windows, device)) for windows in ([0], [0, 1], [0, 2])
            )
    except Exception as error:
        raise ValueError(
            f"{name} cannot score two short texts at once, as its tokenizer cuts them. It says: "
            f"{type(error).__name__}: {error}"
        ) from error
    if not alone.isfinite().all():
        return True  # Training says in which step.
    if not _are_close(alone, beside):
        raise ValueError(
            f"{name} cannot be trained here: what it scores a text depends on the other texts of "
            f"the batch, or on chance, so that predictions would mean nothing. Take another model."
        )
    return _are_close(alone, padded)


def _inputs(probe: Batcher, windows: list[int], device: Any) -> dict[str, Tensor]:
    batch = to_device(probe.collate(np.array(windows)), device)
    return {name: tensor for name, tensor in batch.items() if name != "item"}


def _are_close(one: Tensor, other: Tensor) -> bool:
    """Whether scores are the same up to rounding, as far as both have them."""
    return bool((one - other[: len(one)]).abs().max() <= _TOLERANCE * one.abs().max())
