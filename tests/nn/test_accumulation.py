"""The gradient of a step does not depend on how the step is cut into batches."""

import numpy as np
import pytest
import torch

from skdice.losses import SumsMemory

from ..losses.catalogue import CASES
from .toy import ToyModule, forward_of, make_batcher, make_dataset, run_step

LOSSES = {case.id: case.loss for case in CASES if case.kind == "classes"}
# How many forward passes a batch costs.
N_PASSES = {name: 1 if loss.separable else 2 for name, loss in LOSSES.items()}

each_loss = pytest.mark.parametrize("name", LOSSES)


def make_module(dropout=0.0):
    return ToyModule(dropout=dropout).double()


def make_batches(n_batches, weighted=False, n_texts=9):
    """Return a step of texts of different lengths, cut into batches."""
    dataset = make_dataset([2 + i % 5 for i in range(n_texts)], weighted=weighted)
    batcher = make_batcher(dataset)
    return [batcher.collate(part) for part in np.array_split(np.arange(n_texts), n_batches)]


def joined(batches, name):
    return torch.cat([batch[name] for batch in batches]) if name in batches[0] else None


@each_loss
@pytest.mark.parametrize("n_batches, weighted", [(2, True), (4, False), (9, True)])
def test_batches_have_the_gradient_of_one_large_batch(name, weighted, n_batches):
    module, loss = make_module(), LOSSES[name]
    value, gradients, _ = run_step(module, loss, make_batches(n_batches, weighted))
    expected_value, expected, _ = run_step(module, loss, make_batches(1, weighted))
    # sample weights are float32, so sums of them may differ in the eighth digit
    torch.testing.assert_close(value, expected_value, rtol=1e-6, atol=0)
    torch.testing.assert_close(gradients, expected, rtol=1e-6, atol=1e-9)
    assert all(gradient.abs().max() > 1e-4 for gradient in gradients), "nothing is compared"


@each_loss
@pytest.mark.parametrize("n_batches", [1, 3])
def test_replayed_batches_meet_the_same_dropout(name, n_batches):
    """Against the gradient of a graph that keeps all batches, drawn once."""
    module, loss = make_module(dropout=0.4), LOSSES[name]
    batches = make_batches(n_batches, weighted=True)
    value, gradients, state = run_step(module, loss, batches)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        logits = torch.cat([forward_of(module)(batch) for batch in batches])
        expected_state = torch.get_rng_state()
    expected_value = loss(logits, joined(batches, "target"), joined(batches, "weight"))
    expected = torch.autograd.grad(expected_value, list(module.parameters()))
    torch.testing.assert_close(value, expected_value.detach(), rtol=1e-6, atol=0)
    torch.testing.assert_close(gradients, list(expected), rtol=1e-6, atol=1e-9)
    assert torch.equal(state, expected_state), "replaying moves the generator no further"
    without = run_step(make_module(), loss, batches)[0]
    assert not torch.isclose(value, without, rtol=1e-6), "dropout was not active"


@each_loss
def test_number_of_forward_passes(name):
    module, calls = make_module(), []
    module.register_forward_hook(lambda *_: calls.append(torch.is_grad_enabled()))
    run_step(module, LOSSES[name], make_batches(3))
    assert calls == [False] * 3 * (N_PASSES[name] - 1) + [True] * 3


@each_loss
@pytest.mark.parametrize("weighted", [False, True])
def test_ignored_items_may_fill_batches(name, weighted):
    module, loss = make_module(), LOSSES[name]
    batches, (whole,) = make_batches(3, weighted), make_batches(1, weighted)
    batches[1]["target"].fill_(loss.ignore_index)
    batches[2]["target"][0] = loss.ignore_index
    whole["target"] = joined(batches, "target")
    value, gradients, _ = run_step(module, loss, batches)
    expected_value, expected, _ = run_step(module, loss, [whole])
    torch.testing.assert_close(value, expected_value, rtol=1e-6, atol=0)
    torch.testing.assert_close(gradients, expected, rtol=1e-6, atol=1e-9)


@each_loss
def test_scaled_half_precision_does_not_overflow(name):
    """The scaled gradient of a step is that of a mean, however many items the step has."""
    module, loss = ToyModule().half(), LOSSES[name]
    batches = make_batches(2, n_texts=600)
    value, gradients, _ = run_step(module, loss, batches, scale=1024.0)
    assert value.isfinite()
    assert all(gradient.isfinite().all() for gradient in gradients)


def run_steps(module, loss, n_batches, memory, scale=1.0):
    """Return loss, gradients and memory after three steps, the second of them without items."""
    for n_texts, is_empty in ((9, False), (4, True), (7, False)):
        batches = make_batches(min(n_batches, n_texts), weighted=True, n_texts=n_texts)
        if is_empty:
            for batch in batches:
                batch["target"].fill_(loss.ignore_index)
        value, gradients, _ = run_step(module, loss, batches, memory=memory, scale=scale)
    return value, gradients, memory.mean


@each_loss
@pytest.mark.parametrize("n_batches, n_steps", [(3, 10), (9, 2)])
def test_what_is_remembered_does_not_depend_on_the_batches(name, n_batches, n_steps):
    module, loss = make_module(), LOSSES[name]
    value, gradients, mean = run_steps(module, loss, n_batches, SumsMemory(n_steps))
    expected = run_steps(module, loss, 1, SumsMemory(n_steps))
    torch.testing.assert_close((value, gradients), expected[:2], rtol=1e-6, atol=1e-9)
    alone = run_steps(module, loss, n_batches, SumsMemory(0))
    if loss.separable:
        assert mean is None
        torch.testing.assert_close(value, alone[0])
    else:
        torch.testing.assert_close(mean, expected[2], rtol=1e-6, atol=1e-9)
        assert not torch.isclose(value, alone[0], rtol=1e-3)


@each_loss
@pytest.mark.parametrize("n_batches, n_steps", [(1, 5), (3, 0), (3, 5)])
def test_scale_multiplies_the_gradient_only(name, n_batches, n_steps):
    """It is not remembered either, and neither is the graph of the returned loss."""
    module, loss = make_module(), LOSSES[name]
    value, gradients, mean = run_steps(module, loss, n_batches, SumsMemory(n_steps))
    assert value.ndim == 0
    assert not value.requires_grad
    scaled = run_steps(module, loss, n_batches, SumsMemory(n_steps), scale=1024.0)
    torch.testing.assert_close(scaled, (value, [1024 * gradient for gradient in gradients], mean))
