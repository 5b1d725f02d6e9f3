"""The probabilities of tags among allowed sequences, against all sequences one by one."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch

from skdice.nn import TagChain
from skdice.text import allowed_transitions

from ..text.test_tags import is_well_formed

CLASSES = ["B-X", "B-Y", "I-X", "I-Y", "O"]
LENGTHS = [4, 0, 2, 1, 3]
OFFSETS = np.cumsum([0, *LENGTHS])
# What batch_of makes batches of.
SENTENCES = np.array([0, 4, 6, 7])


@pytest.fixture(params=["IOB1", "IOB2"])
def allowed(request):
    return allowed_transitions(CLASSES, request.param)


@pytest.fixture
def logits():
    return np.random.default_rng(0).normal(0, 3, (OFFSETS[-1], len(CLASSES))).astype(np.float32)


def one_by_one(logits, allowed):
    every = product(range(logits.shape[1]), repeat=len(logits))
    words = range(len(logits))
    totals = {
        tags: logits[words, tags].sum(dtype=np.float64)
        for tags in every
        if is_well_formed(tags, allowed)
    }
    p, best = np.zeros(logits.shape), max(totals.values())
    for tags, total in totals.items():
        p[words, tags] += np.exp(total - best)
    return p / p.sum(1, keepdims=True)


def train(chain, logits, batch):
    return chain.train(logits, chain.with_geometry(batch))


def batch_of(targets):
    """Return a batch of the sentences that SENTENCES has."""
    row = np.repeat([0, 3, 7], [len(target) for target in targets])
    target = np.concatenate(targets)
    arrays = {"row": row, "target": target, "item": np.arange(len(row))}
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def test_long_sentences_are_as_exact(allowed):
    """Float32 would lose digits to a sum that grows with every word."""
    n_words = 2000
    logits = np.random.default_rng(0).normal(0, 3, (n_words, len(CLASSES)))
    start, follow, end = (np.asarray(part, dtype=np.float64) for part in allowed)
    before, behind = np.empty((2, n_words, len(CLASSES)))
    before[0], behind[-1] = start * np.exp(logits[0]), end
    for i in range(1, n_words):
        before[i] = before[i - 1] @ follow * np.exp(logits[i])
        before[i] /= before[i].sum()
    for i in range(n_words - 1, 0, -1):
        behind[i - 1] = follow @ (behind[i] * np.exp(logits[i]))
        behind[i - 1] /= behind[i - 1].sum()
    expected = before * behind
    expected /= expected.sum(1, keepdims=True)
    chain = TagChain(allowed, np.array([0, n_words]))
    found = np.exp(chain.predict(logits.astype(np.float32)))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_predicted(logits, allowed):
    """More sentences than are computed together as well."""
    chain = TagChain(allowed, OFFSETS)
    p = np.exp(chain.predict(logits))
    blocks = np.random.default_rng(1).normal(0, 3, (20_000, *logits.shape)).astype(np.float32)
    many = TagChain(allowed, np.cumsum([0, *LENGTHS * len(blocks)]))
    found = many.predict(np.concatenate(blocks)).reshape(blocks.shape)
    for i in (0, 9_999, 19_999):
        np.testing.assert_allclose(found[i], chain.predict(blocks[i]), atol=1e-5)
    for start, stop in pairwise(OFFSETS):
        if stop > start:
            expected = one_by_one(logits[start:stop], allowed)
            np.testing.assert_allclose(p[start:stop], expected, atol=1e-6)


def test_trained_on(logits, allowed):
    """As predicted, if the windows are the sentences."""
    chain, logits = TagChain(allowed, SENTENCES), logits[:7]
    batch = batch_of([[4, 2, 2, 4] if allowed[0][2] else [4, 0, 2, 4], [4, 4], [4]])
    scores = train(chain, torch.from_numpy(logits), batch)
    np.testing.assert_allclose(scores, chain.predict(logits), atol=1e-6)


@pytest.mark.parametrize("gap", [10.0, 100.0, 200.0, 2000.0])
def test_forbidden_sequences_have_no_probability_at_any_gap(gap):
    """Logits that are sure of such a sequence; a gap of more than 283 counts as 283."""
    allowed = allowed_transitions(CLASSES, "IOB2")
    logits = np.random.default_rng(0).normal(0, 1, (4, len(CLASSES))).astype(np.float32)
    logits[range(4), [4, 2, 3, 2]] += gap  # O I-X I-Y I-X
    inputs = torch.from_numpy(logits).requires_grad_()
    chain = TagChain(allowed, np.array([0, 4]))
    batch = {"row": [0] * 4, "item": range(4), "target": [4, 0, 2, 4]}
    batch = {name: torch.tensor(list(values)) for name, values in batch.items()}
    scores = train(chain, inputs, batch)
    p = one_by_one(np.maximum(logits - logits.max(1, keepdims=True), -283.36), allowed)
    np.testing.assert_allclose(scores.detach().exp(), p, atol=1e-4)
    forbidden = ~torch.from_numpy(allowed[0])
    assert (scores.detach()[0, forbidden] <= -1e4).all(), "they cost the most there is"
    torch.nn.functional.cross_entropy(scores, batch["target"]).backward()
    assert inputs.grad.isfinite().all()
    assert inputs.grad.abs().max() > 0


def test_window_within_a_sentence(logits):
    """It may start and end within an entity, and with any tag."""
    allowed = allowed_transitions(["B-X", "E-X", "I-X", "O"], "IOBES")
    given = logits[:7, :4]
    middle = torch.from_numpy(given)[2:4].requires_grad_()
    batch = {"item": [2, 3], "row": [0, 0], "target": [2, 2]}
    batch = {name: torch.tensor(values) for name, values in batch.items()}
    scores = train(TagChain(allowed, np.array([0, 7])), middle, batch)
    free = np.ones(4, dtype=bool)
    expected = one_by_one(given[2:4], (free, allowed[1], free))
    np.testing.assert_allclose(scores.detach().exp(), expected, atol=1e-6)
    whole = TagChain(allowed, np.array([0, 7]))
    assert not np.allclose(scores.detach(), whole.predict(given)[2:4], atol=0.1)


@pytest.mark.parametrize("broken", [[0, 3, 4, 4], [4, 0, 3, 4], [4, 4, 1, 2]])
def test_a_window_with_broken_tags_keeps_its_logits(logits, allowed, broken):
    given = torch.from_numpy(logits[:7])
    chain = TagChain(allowed, SENTENCES)
    scores = train(chain, given, batch_of([broken, [4, 4], [4]]))
    assert not is_well_formed(broken, allowed)
    assert torch.equal(scores[:4], given[:4])
    np.testing.assert_allclose(scores[4:], chain.predict(logits[:7])[4:], atol=1e-6)
