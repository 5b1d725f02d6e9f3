"""A network of a few numbers, data sets for it, and how a network is trained on them."""

import numpy as np
import torch
from torch import nn

from skdice.losses import SumsMemory
from skdice.nn import Batcher, Training
from skdice.nn._step import accumulate_gradient
from skdice.text import EncodedDataset, Ragged, offsets_from_lengths, ranges

N_PIECES = 12
N_CLASSES = 3
PAD = 0
INPUTS = ("input_ids", "attention_mask", "token_type_ids", "row", "column")


class ToyModule(nn.Module):
    """Embedding, layer norm, dropout and a linear head; texts do not see their padding."""

    def __init__(self, n_classes=N_CLASSES, dropout=0.0, seed=0):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(N_PIECES, 4)
            self.norm = nn.LayerNorm(4)
            self.head = nn.Linear(4, n_classes)
        self.dropout = nn.Dropout(dropout)
        self.n_outputs = n_classes

    def forward(self, input_ids, attention_mask, row, column, **others):
        mask = attention_mask.unsqueeze(2)
        hidden = self.norm(self.embedding(input_ids)) * mask
        mean = hidden.sum(1, keepdim=True) / mask.sum(1, keepdim=True)
        return self.head(self.dropout(hidden + mean))[row, column]

    def prepare(self, batch):
        return batch

    @property
    def transformer(self):
        return self

    def get_input_embeddings(self):
        return self.embedding

    def head_parameters(self):
        return set(self.head.parameters())


def make_dataset(lengths, n_windows=None, seed=0, weighted=False, labelled=True):
    """Return a data set of random pieces, all but the first of a window scored.

    Parameters
    ----------
    lengths : sequence of int
        Pieces of each text's windows, at least 2.
    n_windows : sequence of int, optional
        Windows of each text, by default one; 0 for a text without words.
    """
    rng = np.random.default_rng(seed)
    lengths = np.asarray(lengths, dtype=np.int64)
    n_windows = np.ones_like(lengths) if n_windows is None else np.asarray(n_windows, np.int64)
    text = np.repeat(np.arange(len(lengths)), n_windows)
    offsets = offsets_from_lengths(lengths[text])
    ids = rng.integers(1, N_PIECES, offsets[-1]).astype(np.int32)
    types = rng.integers(0, 2, offsets[-1]).astype(np.int32)
    items = Ragged(
        ranges(np.ones_like(text), lengths[text]).astype(np.int32),
        offsets_from_lengths(lengths[text] - 1),
    )
    scored = ids[np.repeat(offsets[:-1], items.lengths) + items.values]
    return EncodedDataset(
        input_ids=Ragged(ids, offsets),
        token_type_ids=Ragged(types, offsets),
        items=items,
        text=text,
        n_texts=len(lengths),
        # The pieces tell the class, so that there is something to learn.
        target=scored.astype(np.int64) % N_CLASSES if labelled else None,
        weight=rng.uniform(0.5, 2.0, len(lengths)).astype(np.float32) if weighted else None,
    )


def make_batcher(dataset, batch_size=4, pads_left=False, batch_pieces=None):
    return Batcher(dataset, batch_size, PAD, pads_left, batch_pieces=batch_pieces)


def forward_of(module):
    """Return the function from a batch to the logits of a module."""
    return lambda batch: module(**{name: batch[name] for name in INPUTS})


def fit_net(net, sampler, validate=None, patience=None):
    with Training(validate, patience).watching(net):
        net.partial_fit(sampler)
    return net


def run_step(module, loss, batches, seed=7, memory=None, **options):
    """Return loss, gradients and the state of the generator; leave no gradient on the module."""
    memory = memory or SumsMemory(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        value = accumulate_gradient(loss, batches, forward_of(module), memory, **options)
        state = torch.get_rng_state()
    gradients = [parameter.grad for parameter in module.parameters()]
    module.zero_grad(set_to_none=True)
    return value, gradients, state
