"""Where the comparison of two texts begins: a logistic regression on the states of the encoder."""

from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from ..nn import Batcher, PairModule, TextNet, autocast

# The regression's C, and the largest number of rows of each class (benchmarks/RESULTS.md).
_C, _MOST_ROWS = 0.003, 2000


def start_comparison(net: TextNet, batcher: Batcher, n_classes: int) -> None:
    """Have a new comparison begin as a logistic regression (Kumar et al. 2022, "LP-FT")."""
    module, dataset = net.module_, batcher.dataset
    assert isinstance(module, PairModule)
    assert dataset.target is not None
    if not module.has_new_head:
        return
    order = np.random.default_rng(0).permutation(dataset.n_texts)
    by_class = (order[dataset.target[order] == c] for c in range(n_classes))
    rows = np.sort(np.concatenate([part[:_MOST_ROWS] for part in by_class]))
    target, weight = dataset.target[rows], dataset.text_weight[rows]
    share = np.bincount(target, weight, n_classes) / weight.sum()
    features = _compared(net, batcher, rows)
    # Without rows of a class there is nothing to tell; training says what is not finite.
    if not (share.all() and np.isfinite(features).all()):
        return
    has_weight = weight > 0
    regression = LogisticRegression(C=_C, max_iter=1000).fit(
        features[has_weight],
        target[has_weight],
        (weight / share[target])[has_weight] / len(share),
    )
    slope, start = regression.coef_, regression.intercept_
    if len(slope) == 1:  # Of two classes the log-odds.
        slope, start = np.concatenate([-slope, slope]) / 2, np.append(-start, start) / 2
    with torch.no_grad():
        module.comparison.weight.copy_(torch.from_numpy(slope))
        module.comparison.bias.copy_(torch.from_numpy(start + np.log(share)))


def _compared(net: TextNet, batcher: Batcher, rows: np.ndarray) -> np.ndarray:
    """Return what the two texts of some rows have in common, before anything is learned."""
    module = net.module_.eval()
    found: list[Any] = [None] * len(rows)
    place = {row: i for i, row in enumerate(rows.tolist())}
    with torch.inference_mode(), autocast(net.precision, net.device):
        for windows, batch in batcher.by_length(rows):
            compared = module.compare(net.send(batch))
            for window, row in zip(windows.tolist(), compared.float().cpu().numpy()):
                found[place[window]] = row
    return np.stack(found)
