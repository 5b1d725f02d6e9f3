"""Outputs of frozen lower layers, kept between fits."""

import hashlib

import numpy as np
import torch
from torch import Tensor

from ..text._encoding import EncodedDataset


class FrozenStates:
    """The output of the frozen layers for each window that was seen, by its content.

    What the frozen layers of a pretrained model give does not depend on the fit, so all fits and
    predictions with the same model and precision can share it.
    """

    def __init__(self) -> None:
        self._states: dict[bytes, Tensor] = {}
        self.n_bytes = 0

    def missing(self, dataset: EncodedDataset) -> np.ndarray:
        """Return the windows that are not here yet, one of each content."""
        keys = window_keys(dataset)
        first = {key: i for i, key in reversed(list(enumerate(keys))) if key not in self._states}
        return np.array(sorted(first.values()), dtype=np.int64)

    def put(self, keys: list[bytes], states: Tensor, attention_mask: Tensor) -> None:
        """Keep padded states of shape (n_windows, length, size)."""
        for key, state, mask in zip(keys, states.cpu(), attention_mask.cpu().bool()):
            self._states[key] = state[mask]
            self.n_bytes += self._states[key].nbytes

    def of(self, dataset: EncodedDataset) -> list[Tensor]:
        """Return the states of all windows, each of shape (length, size)."""
        return [self._states[key] for key in window_keys(dataset)]


def window_keys(dataset: EncodedDataset) -> list[bytes]:
    """Return a digest of the content of each window."""
    return [
        hashlib.blake2b(ids.tobytes() + types.tobytes(), digest_size=16).digest()
        for ids, types in zip(dataset.input_ids, dataset.token_type_ids)
    ]


def pad_states(states: list[Tensor], length: int, left: bool) -> Tensor:
    """Return states as one tensor of shape (n_windows, length, size), zero where padded."""
    padded = torch.zeros((len(states), length, states[0].shape[1]), dtype=states[0].dtype)
    for row, state in zip(padded, states):
        (row[length - len(state) :] if left else row[: len(state)]).copy_(state)
    return padded
