"""Windows with spans, and the losses of their starts and ends, for both kinds of loss over them."""

from dataclasses import replace

import numpy as np
import torch

from skdice.nn._accumulation import accumulate_gradient

from ..nn.toy import forward_of, make_batcher, make_dataset
from .catalogue import CASES, IGNORED

# Means, and one set loss in all its forms. Cross-entropy over positions has no class weights, and
# without smoothing there is no gradient where nothing is positive.
LOSSES = {
    case.id.removesuffix("-flat"): case.loss
    for case in CASES
    if case.kind == "flat"
    and case.id.split("-")[0] in ("ce", "wce", "focal", "dsc")
    and case.id not in ("ce-class_weight-flat", "dsc-no-smoothing-flat")
}
SIZE = 3
LENGTHS = [3, 1, 7, 2, 5]


def span_windows(lengths=LENGTHS, seed=0, ignored=(), dtype=torch.float64):
    """Return logits and targets of windows with one span each, some of them ignored."""
    rng = np.random.default_rng(seed)
    window = np.repeat(np.arange(len(lengths)), lengths)
    target = np.zeros((len(window), 3), dtype=np.int32)
    target[:, 2] = window
    for i, first in enumerate(np.cumsum(lengths) - lengths):
        start, end = sorted(rng.integers(0, lengths[i], 2))
        target[first + start, 0] = target[first + end, 1] = 1
    target[np.isin(window, ignored), :2] = IGNORED
    logits = 2 * rng.standard_normal((len(window), 2))
    return torch.from_numpy(logits).to(dtype), torch.from_numpy(target)


def query_windows(lengths=LENGTHS, seed=0, n_spans=2, dtype=torch.float64):
    """Return logits, targets and the (window, first, last) spans that the targets tell."""
    rng = np.random.default_rng(seed)
    window = np.repeat(np.arange(len(lengths)), lengths)
    first = np.cumsum(lengths) - lengths
    spans = set()
    for i, length in enumerate(lengths):
        for _ in range(n_spans):
            start, end = sorted(rng.integers(0, length, 2).tolist())
            spans.add((i, start, end))
    target = np.zeros((len(window), 3 + n_spans), dtype=np.int32)
    target[:, 2] = window
    for i, start, end in sorted(spans):
        item = first[i] + start
        target[item, 0] = target[first[i] + end, 1] = 1
        target[item, 3 + np.count_nonzero(target[item, 3:])] = end - start + 1
    logits = 2 * rng.standard_normal((len(window), 2 + 2 * SIZE))
    return torch.from_numpy(logits).to(dtype), torch.from_numpy(target), spans


def make_step(make_windows, n_batches, weighted=False):
    """Return a step of windows, three texts with several, cut into batches."""
    dataset = make_dataset([3, 6, 9, 4, 2, 7], [1, 3, 2, 1, 1, 2], weighted=weighted)
    target = make_windows(dataset.items.lengths.tolist())[1]
    batcher = make_batcher(replace(dataset, target=target.numpy()))
    return [batcher.collate(part) for part in np.array_split(np.arange(len(dataset)), n_batches)]


def run_step(module, loss, batches):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        value = accumulate_gradient(loss, batches, forward_of(module))
    gradients = [parameter.grad for parameter in module.parameters()]
    module.zero_grad(set_to_none=True)
    return value, gradients
