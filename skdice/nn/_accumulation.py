"""The gradient of a loss over an optimiser step that is cut into batches, without approximation."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..losses import CombinedLoss, Loss, SumsMemory
from ._batching import Batch
from ._runtime import ALONE, Ranks, generator_states, set_generator_states

AnyLoss = Loss | CombinedLoss
Forward = Callable[[Batch], Tensor]
Scale = float | Tensor
# The target and the weights of a batch.
Target = tuple[Any, Tensor | None]
# What the loss of a step reads of a batch: its sums or, if sums of batches do not add up, logits,
# targets and weights of each part of the loss.
Output = list[tuple[Any, ...]]


def accumulate_gradient(
    loss: AnyLoss,
    batches: Sequence[Batch],
    forward: Forward,
    scale: Scale = 1.0,
    ranks: Ranks = ALONE,
    memory: SumsMemory | None = None,
    share: Tensor | None = None,
) -> Tensor:
    """Add the gradient of the loss over all batches to the network's; return the loss.

    The result equals that of one large batch. A mean is divided by the weight of the whole step.
    The sums of a set loss are added up first; then every batch runs again, under the random state
    it had before, with the gradient of the loss by its sums. A loss whose sums are not additive
    (OHEM) gets the logits of the whole step instead.

    ``scale`` multiplies the gradient (not the returned loss), for half precision. If several
    processes have batches of the step, the loss covers all of these, and the gradient is a part:
    the gradients of all processes add up to that of the step. ``memory`` has the sums of the steps
    before; a loss that is a mean does not need it. ``share`` is by how much the memory moves if it
    has counted this step already, which must be a single batch then.
    """
    remember = SumsMemory(0) if memory is None or loss.separable else memory
    targets: list[Target] = [
        (loss.target(b) if isinstance(loss, CombinedLoss) else b["target"], b.get("weight"))
        for b in batches
    ]
    if len(batches) == ranks.count == 1:
        sums = loss.sums(forward(batches[0]), *targets[0])
        value = loss.value(remember(sums, share))
        (value if isinstance(scale, float) and scale == 1 else value * scale).backward()
        return value.detach()
    if loss.separable:
        return _weighted_mean(loss, batches, targets, forward, scale, ranks)
    # The graph of a single batch fits into memory, so the batch need not run twice.
    is_kept = len(batches) == 1
    states, outputs = [], []
    with torch.set_grad_enabled(is_kept):
        for batch, target in zip(batches, targets):
            states.append(generator_states(batch["input_ids"].device))
            outputs.append(_output(loss, forward(batch), *target))
    of_step = _of_sums if loss.additive else _of_logits
    value, gradients = of_step(loss, outputs, scale, ranks, remember)
    for i, (batch, output, gradient) in enumerate(zip(batches, outputs, gradients)):
        if not is_kept:
            set_generator_states(batch["input_ids"].device, states[i])
            output = _output(loss, forward(batch), *targets[i])
        torch.autograd.backward([part[0] for part in output], gradient)
    return value


def _weighted_mean(
    loss: AnyLoss,
    batches: Sequence[Batch],
    targets: Sequence[Target],
    forward: Forward,
    scale: Scale,
    ranks: Ranks,
) -> Tensor:
    """Take one pass: targets and weights tell beforehand by what the mean is divided."""
    total = ranks.sum(torch.stack([loss.total_weight(*target) for target in targets]).sum())
    shares = []
    for batch, target in zip(batches, targets):
        numerator = loss.sums(forward(batch), *target)[0]
        share = loss.value(torch.stack([numerator, total.to(numerator)]))
        (share * scale).backward()
        shares.append(share.detach())
    return ranks.sum(torch.stack(shares).sum())


def _of_sums(
    loss: AnyLoss, outputs: Sequence[Output], scale: Scale, ranks: Ranks, remember: SumsMemory
) -> tuple[Tensor, list[list[Tensor]]]:
    """Return the loss of the step and, for each batch, its scaled gradient by the sums."""
    sums = torch.stack([sums.detach() for ((sums,),) in outputs])
    total = ranks.sum(sums.sum(0)).requires_grad_()
    value = loss.value(remember(total))
    (value * scale).backward()
    assert total.grad is not None
    return value.detach(), [[total.grad]] * len(outputs)


def _of_logits(
    loss: AnyLoss, outputs: Sequence[Output], scale: Scale, ranks: Ranks, remember: SumsMemory
) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
    """Return the loss of the step and, for each batch, its scaled gradient by logits of parts."""
    single = loss.loss if isinstance(loss, CombinedLoss) else loss
    sums, wholes, places = [], [], []
    for batches in zip(*outputs):  # One part of the loss.
        logits, targets, weights = zip(*batches)
        lengths = [len(part) for part in logits]
        start = sum(ranks.gather(sum(lengths))[: ranks.index])
        whole = ranks.join(torch.cat(logits).detach()).requires_grad_()
        weight = None if weights[0] is None else ranks.join(torch.cat(weights))
        sums.append(single.sums(whole, ranks.join(torch.cat(targets)), weight))
        wholes.append(whole)
        places.append((start, lengths))
    value = loss.value(remember(torch.cat(sums)))
    (value * scale).backward()
    gradients: list[Any] = [whole.grad for whole in wholes]
    # The loss may draw random numbers, which differ between processes.
    found = value.detach()
    ranks.copy_first([found, *gradients, *([] if remember.mean is None else [remember.mean])])
    own = [
        gradient[start : start + sum(lengths)].split(lengths)
        for gradient, (start, lengths) in zip(gradients, places)
    ]
    return found, list(zip(*own))


def _output(loss: AnyLoss, logits: Tensor, target: Any, weight: Tensor | None) -> Output:
    of_items = logits, target, weight
    if loss.additive:
        return [(loss.sums(*of_items),)]
    return [*loss.parts(*of_items)] if isinstance(loss, CombinedLoss) else [of_items]
