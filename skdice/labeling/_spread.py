"""Rows that are spread over a pool, where no fitted estimator can score them."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import pairwise_distances_argmin

from .._pretrained import quiet_transformers
from ..nn import Batcher, MeanModule, features_of, read_model, resolve_device, seeded
from ..text import encode_rows


def spread(
    estimator: Any, rows: Sequence[tuple[str, ...]], n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of rows and the share of all rows that are in the cluster of each.

    The first ones are nearest to the centres of ``n`` clusters.
    """
    # The states of the encoder that a fit would begin with.
    model, device = os.fspath(estimator.model), resolve_device(estimator.device)
    reader, _ = read_model(model, estimator.max_length, 1, type(estimator).__name__)
    dataset, _ = encode_rows([(" ".join(row),) for row in rows], 1, reader, "longest_first")
    pad_id, pads_left = reader.tokenizer.pad_id, reader.tokenizer.pads_left
    batcher = Batcher(dataset, estimator.batch_size, pad_id, pads_left)
    with seeded(0, device), quiet_transformers():  # The head is drawn, but is not used.
        module = MeanModule(model, 1).to(device)
        states = features_of(module, batcher, np.arange(len(rows)), "fp32", device)
    means = MiniBatchKMeans(min(n, len(rows)), n_init=10, random_state=0).fit(states)
    share = np.bincount(means.labels_)[means.labels_] / len(rows)
    nearest = np.unique(pairwise_distances_argmin(means.cluster_centers_, states))
    return np.append(nearest, np.delete(np.arange(len(rows)), nearest)), share
