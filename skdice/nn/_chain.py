"""Tags in a linear chain: their probabilities among the allowed sequences."""

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ._batching import Batch

# Sentences are computed together as long as their words times the classes stay below this number.
_CELLS = 1_000_000
# Stands for the logarithm of 0 in sums, where -inf would have no gradient: below any sum of logits.
_IMPOSSIBLE = -1e30
# Lowest log-probability that is returned: probabilities underflow long before it.
_LOWEST = -1e4


class TagChain:
    """A linear-chain conditional random field whose transitions are allowed or not.

    A sequence whose transitions are all allowed scores the sum of the logits of its tags, any other
    has no probability, whatever its logits. There is nothing to learn. The transitions are those of
    :func:`skdice.text._tags.allowed_transitions`; sentence i has the words ``offsets[i]:offsets[i +
    1]``.
    """

    def __init__(self, transitions: tuple[np.ndarray, ...], offsets: np.ndarray) -> None:
        self._allowed = tuple(torch.from_numpy(part) for part in transitions)
        self._offsets = torch.from_numpy(offsets)

    def train(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the log-probabilities of a batch, in each of its windows, (n_items, n_classes).

        Where a window starts or ends within a sentence, all tags may. A window whose own tags are
        not an allowed sequence, since the annotation is broken, keeps its logits.
        """
        if not len(logits):
            return logits
        _, row, lengths = torch.unique_consecutive(
            batch["row"], return_inverse=True, return_counts=True
        )
        target, item = batch["target"], batch["item"]
        last = lengths.cumsum(0) - 1
        first = last - lengths + 1
        start, follow, end = (part.to(logits.device) for part in self._allowed)
        offsets = self._offsets.to(item.device)
        start = start | ~torch.isin(item[first], offsets)[:, None]
        end = end | ~torch.isin(item[last] + 1, offsets)[:, None]
        is_broken = ~(start.gather(1, target[first, None]) & end.gather(1, target[last, None]))
        inside = row[1:] == row[:-1]
        is_broken[row[1:][inside & ~follow[target[:-1], target[1:]]]] = True
        scores = _log_probabilities(logits, lengths, start, follow, end)
        return torch.where(is_broken[row], logits, scores)

    def predict(self, logits: np.ndarray) -> np.ndarray:
        """Return the log-probability of each tag in its sentence, (n_words, n_classes) for both."""
        scores = torch.empty(logits.shape)
        lengths = self._offsets.diff()
        rows = lengths.argsort(descending=True, stable=True)[: lengths.count_nonzero()]
        while len(rows):
            # The first one is the longest.
            n = max(1, _CELLS // int(lengths[rows[0]] * logits.shape[1]))
            block, rows = rows[:n], rows[n:]
            words = torch.cat([torch.arange(*self._offsets[row : row + 2]) for row in block])
            of_block = torch.from_numpy(logits)[words]
            scores[words] = _log_probabilities(of_block, lengths[block], *self._allowed)
        return scores.numpy()


def _log_probabilities(
    logits: Tensor, lengths: Tensor, start: Tensor, follow: Tensor, end: Tensor
) -> Tensor:
    """Sum over all allowed sequences, forwards and backwards (the forward-backward algorithm).

    A sentence that no allowed sequence can tag has the probabilities of its logits.
    """
    scores = pad_sequence(list(logits.split(lengths.tolist())), batch_first=True)
    n_words = scores.shape[1]
    is_word = torch.arange(n_words, device=lengths.device) < lengths[:, None]
    at_end = torch.zeros_like(scores[:, 0]).masked_fill(~end, _IMPOSSIBLE)
    before, behind = [scores[:, 0].masked_fill(~start, _IMPOSSIBLE)], [at_end]
    for i in range(1, n_words):
        before.append(_sum_over(before[-1], follow) + scores[:, i])
    for i in range(n_words - 1, 0, -1):
        goes_on = _sum_over(behind[-1] + scores[:, i], follow.T)
        behind.append(torch.where(is_word[:, i, None], goes_on, at_end))
    paths = (torch.stack(before, 1) + torch.stack(behind[::-1], 1))[is_word]
    is_possible = paths.amax(1, keepdim=True) > _IMPOSSIBLE / 2
    paths = torch.where(is_possible, paths, logits)
    return paths.log_softmax(1).clamp_min(_LOWEST)


def _sum_over(scores: Tensor, allowed: Tensor) -> Tensor:
    """Return the logarithm of the sum over what may come before each tag, but for a constant.

    It is the same for all tags of a word, so that probabilities do not depend on it, and sums over
    long sentences stay small. ``scores`` are of shape (n_sentences, n_classes); ``allowed[a, b]``
    says that b may come after a.
    """
    top = scores.detach().amax(1, keepdim=True)
    top = top.where(top > _IMPOSSIBLE / 2, 0.0)
    possible = (scores - top).unsqueeze(2).masked_fill(~allowed, _IMPOSSIBLE)
    return possible.logsumexp(1)
