"""The gradient of a loss over an optimiser step that is cut into batches, without approximation."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ..losses import Loss
from ._batching import Batch


def accumulate_gradient(
    loss: Loss,
    batches: Sequence[Batch],
    forward: Callable[[Batch], Tensor],
    scale: float = 1.0,
) -> Tensor:
    """Add the gradient of the loss over all batches to the network's; return the loss.

    The result is that of one large batch: a mean is divided by the weight of the whole step; the
    sums of a set loss are added up first, then every batch runs again with the gradient of its
    sums, under the random state it had before. A loss whose sums are not additive (OHEM) gets the
    logits of the whole step instead.

    Parameters
    ----------
    loss : Loss
    batches : sequence of batches
        Each with ``target``, and ``weight`` if items are weighted.
    forward : callable
        Batch to logits, by the network whose parameters get the gradient.
    scale : float
        Multiplies the gradient (not the returned loss), for half precision.
    """
    if len(batches) == 1:
        (batch,) = batches
        value = loss(forward(batch), batch["target"], batch.get("weight"))
        (value * scale).backward()
        return value.detach()
    if loss.separable:
        return _weighted_mean(loss, batches, forward, scale)
    with torch.no_grad():
        states = []
        outputs = []
        for batch in batches:
            states.append(_random_state(batch))
            logits = forward(batch)
            outputs.append(_sums(loss, logits, batch) if loss.additive else logits)
    if loss.additive:
        total = torch.stack(outputs).sum(0).requires_grad_()
        value = loss.value(total)
        (value * scale).backward()
        gradients = [total.grad] * len(batches)
    else:
        whole = torch.cat(outputs).requires_grad_()
        value = loss(whole, _join(batches, "target"), _join(batches, "weight"))
        (value * scale).backward()
        assert whole.grad is not None
        gradients = list(whole.grad.split([len(output) for output in outputs]))
    for batch, state, gradient in zip(batches, states, gradients):
        _set_random_state(batch, state)
        logits = forward(batch)
        output = _sums(loss, logits, batch) if loss.additive else logits
        output.backward(gradient)
    return value.detach()


def _weighted_mean(
    loss: Loss, batches: Sequence[Batch], forward: Callable[[Batch], Tensor], scale: float
) -> Tensor:
    """One pass: what the mean is divided by is known before, from targets and weights."""
    total = torch.stack(
        [loss.total_weight(batch["target"], batch.get("weight")) for batch in batches]
    ).sum()
    shares = []
    for batch in batches:
        numerator = _sums(loss, forward(batch), batch)[0]
        share = loss.value(torch.stack([numerator, total.to(numerator)]))
        (share * scale).backward()
        shares.append(share.detach())
    return torch.stack(shares).sum()


def _sums(loss: Loss, logits: Tensor, batch: Batch) -> Tensor:
    return loss.sums(logits, batch["target"], batch.get("weight"))


def _join(batches: Sequence[Batch], name: str) -> Tensor | None:
    return torch.cat([batch[name] for batch in batches]) if name in batches[0] else None


def _random_state(batch: Batch) -> list[Tensor]:
    device = batch["input_ids"].device
    states = [torch.get_rng_state()]
    if device.type == "cuda":
        states.append(torch.cuda.get_rng_state(device))
    return states


def _set_random_state(batch: Batch, states: list[Tensor]) -> None:
    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state(states[1], batch["input_ids"].device)
