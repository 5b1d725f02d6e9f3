"""The gradient of a loss over an optimiser step that is cut into batches, without approximation."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ..losses import Loss, SumsMemory
from ._batching import Batch
from ._runtime import ALONE, Ranks, generator_states, set_generator_states


def accumulate_gradient(
    loss: Loss,
    batches: Sequence[Batch],
    forward: Callable[[Batch], Tensor],
    scale: float = 1.0,
    ranks: Ranks = ALONE,
    memory: SumsMemory | None = None,
) -> Tensor:
    """Add the gradient of the loss over all batches to the network's; return the loss.

    The result is that of one large batch: a mean is divided by the weight of the whole step; the
    sums of a set loss are added up first, then every batch runs again with the gradient of its
    sums, under the random state it had before. A loss whose sums are not additive (OHEM) gets the
    logits of the whole step instead.

    ``scale`` multiplies the gradient (not the returned loss), for half precision. If several
    processes have batches of the step, the loss is that of all of them, and the gradient is what
    the batches of this process add to the whole. ``memory`` is of the steps before; a loss that is
    a mean has no need of it.
    """
    remember = SumsMemory(0) if memory is None or loss.separable else memory
    if len(batches) == ranks.count == 1:
        (batch,) = batches
        value = loss.value(remember(_sums(loss, forward(batch), batch)))
        (value * scale).backward()
        return value.detach()
    if loss.separable:
        return _weighted_mean(loss, batches, forward, scale, ranks)
    # The graph of a single batch fits into memory, and need not be made twice.
    is_kept = len(batches) == 1
    states, outputs = [], []
    with torch.set_grad_enabled(is_kept):
        for batch in batches:
            states.append(generator_states(batch["input_ids"].device))
            outputs.append(_output(loss, forward, batch))
    known = [output.detach() for output in outputs]
    if loss.additive:
        value, gradient = _of_sums(loss, known, scale, ranks, remember)
        gradients = [gradient] * len(batches)
    else:
        value, gradient = _of_logits(loss, known, batches, scale, ranks, remember)
        gradients = list(gradient.split([len(logits) for logits in known]))
    for batch, state, output, gradient in zip(batches, states, outputs, gradients):
        if not is_kept:
            set_generator_states(batch["input_ids"].device, state)
            output = _output(loss, forward, batch)
        output.backward(gradient)
    return value


def _weighted_mean(
    loss: Loss,
    batches: Sequence[Batch],
    forward: Callable[[Batch], Tensor],
    scale: float,
    ranks: Ranks,
) -> Tensor:
    """One pass: what the mean is divided by is known before, from targets and weights."""
    total = torch.stack(
        [loss.total_weight(batch["target"], batch.get("weight")) for batch in batches]
    ).sum()
    total = ranks.sum(total)
    shares = []
    for batch in batches:
        numerator = _sums(loss, forward(batch), batch)[0]
        share = loss.value(torch.stack([numerator, total.to(numerator)]))
        (share * scale).backward()
        shares.append(share.detach())
    return ranks.sum(torch.stack(shares).sum())


def _of_sums(
    loss: Loss, sums: Sequence[Tensor], scale: float, ranks: Ranks, remember: SumsMemory
) -> tuple[Tensor, Tensor]:
    """Return the loss of the step and its scaled gradient with respect to the sums of a batch."""
    total = ranks.sum(torch.stack(list(sums)).sum(0)).requires_grad_()
    value = loss.value(remember(total))
    (value * scale).backward()
    assert total.grad is not None
    return value.detach(), total.grad


def _of_logits(
    loss: Loss,
    logits: Sequence[Tensor],
    batches: Sequence[Batch],
    scale: float,
    ranks: Ranks,
    remember: SumsMemory,
) -> tuple[Tensor, Tensor]:
    """Return the loss of the step and its scaled gradient with respect to the logits here."""
    own = torch.cat(list(logits))
    place, n_items = ranks.place(len(own))
    whole = ranks.join(own, place, n_items).requires_grad_()
    target = ranks.join(torch.cat([batch["target"] for batch in batches]), place, n_items)
    weight = None
    if "weight" in batches[0]:
        weight = ranks.join(torch.cat([batch["weight"] for batch in batches]), place, n_items)
    value = loss.value(remember(loss.sums(whole, target, weight)))
    (value * scale).backward()
    assert whole.grad is not None
    # The loss may draw random numbers, other ones in every process.
    found = value.detach()
    ranks.copy_first([found, whole.grad, *([] if remember.mean is None else [remember.mean])])
    return found, whole.grad[place]


def _output(loss: Loss, forward: Callable[[Batch], Tensor], batch: Batch) -> Tensor:
    """Return what the loss of a step needs to know of a batch: its sums, or else its logits."""
    logits = forward(batch)
    return _sums(loss, logits, batch) if loss.additive else logits


def _sums(loss: Loss, logits: Tensor, batch: Batch) -> Tensor:
    return loss.sums(logits, batch["target"], batch.get("weight"))
