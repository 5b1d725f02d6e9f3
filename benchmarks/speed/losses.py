"""Value and gradient of every loss, against F.cross_entropy and against plain autograd.

"Plain" is the formula as one would write it down: softmax, one-hot targets, and autograd for the
gradient. For each loss the three contenders alternate; a round is the median of several calls, and
the ratios are medians over the rounds. Times are CPU times of one thread, so that other work on the
machine counts little. Extra memory is the peak of the resident memory during value
and gradient above that before, in a process of their own where malloc gives freed blocks back
(/proc/self/status, VmHWM), as a multiple of the logits' size; the gradient itself is 1 of it.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from skdice.losses import Loss, make_loss

from ._alternate import Contender, alternate
from ._memory import in_fresh_process, measured, return_freed_blocks

TITLE = "Loss value and gradient"
SHAPES = ((65_536, 20), (8_192, 2_000))
MOST_TIME, MOST_MEMORY = 5.0, 3.0  # multiples of F.cross_entropy, and of the logits

Function = Callable[[Tensor, Tensor], Tensor]

_OURS, _PLAIN, _REFERENCE = "skdice", "plain autograd", "F.cross_entropy"
_MEMORY_NOISE = 0.05  # a page here and there
_SECONDS = 0.2  # that the calls of a round may take together
_CALLS = (2, 10)


class Case(NamedTuple):
    """A loss and the same as plain autograd; both are made from the number of classes."""

    loss: Callable[[int], Loss]
    plain: Callable[[int], Function]


def run(
    rounds: int, data: Path | None, out: Path, shapes: tuple[tuple[int, int], ...] = SHAPES
) -> pd.DataFrame:
    """Measure all losses at all shapes; ``data`` is not used."""
    torch.set_num_threads(1)
    parts = []
    for shape in shapes:
        memory = in_fresh_process(_extra_memory, shape)
        for name in CASES:
            contenders = _contenders(name, shape[1])
            _check_equal(name, contenders, shape)
            result = alternate(_timers(contenders, shape), rounds)
            result["memory x logits"] = result["contender"].map(memory[name])
            result.insert(0, "shape", f"{shape[0]:,} x {shape[1]:,}")
            result.insert(1, "loss", name)
            parts.append(result)
            print(_row(result), flush=True)
    everything = pd.concat(parts)
    out.mkdir(parents=True, exist_ok=True)
    everything.to_csv(out / "speed_losses.csv", index=False)
    return pd.DataFrame([_row(part) for part in parts])


def _row(result: pd.DataFrame) -> dict[str, str]:
    """Return the row of the table, as text, from the rounds of one loss at one shape."""
    seconds = result.pivot(index="round", columns="contender", values="seconds")
    ratio = (seconds[_OURS] / seconds[_REFERENCE]).median()
    plain = (seconds[_PLAIN] / seconds[_REFERENCE]).median()
    memory = result.groupby("contender")["memory x logits"].first()
    fits = memory[_OURS] <= MOST_MEMORY + _MEMORY_NOISE
    return {
        "shape": result["shape"].iloc[0],
        "loss": result["loss"].iloc[0],
        "ms": f"{1000 * seconds[_OURS].median():.1f}",
        "x F.cross_entropy": f"{ratio:.2f}",
        "plain autograd": f"{plain:.2f}",
        f"<= {MOST_TIME:g}": "yes" if ratio <= MOST_TIME else "no",
        "memory x logits": f"{memory[_OURS]:.1f}",
        "plain autograd's": f"{memory[_PLAIN]:.1f}",
        "F.cross_entropy's": f"{memory[_REFERENCE]:.1f}",
        f"<= {MOST_MEMORY:g}": "yes" if fits else "no",
    }


def _timers(contenders: dict[str, Function], shape: tuple[int, int]) -> dict[str, Contender]:
    logits, target = _batch(shape)
    return {
        name: partial(lambda function: {"seconds": _time(function, logits, target)}, function)
        for name, function in contenders.items()
    }


def _check_equal(name: str, contenders: dict[str, Function], shape: tuple[int, int]) -> None:
    with torch.no_grad():
        ours, plain = (float(contenders[who](*_batch(shape))) for who in (_OURS, _PLAIN))
    if not np.isclose(ours, plain, rtol=1e-3):
        raise AssertionError(f"{name} is {ours:.6g} here, {plain:.6g} as plain autograd.")


def _time(function: Function, logits: Tensor, target: Tensor) -> float:
    """Return the median seconds of some calls."""
    seconds: list[float] = []
    fewest, most = _CALLS
    while len(seconds) < fewest or (len(seconds) < most and sum(seconds) < _SECONDS):
        start = time.process_time()
        _value_and_gradient(function, logits, target)
        seconds.append(time.process_time() - start)
    return median(seconds)


def _extra_memory(shape: tuple[int, int]) -> dict[str, dict[str, float]]:
    """Return the extra memory by loss and contender, as multiples of the logits."""
    return_freed_blocks()
    logits, target = _batch(shape)
    few = _batch((64, shape[1]))
    memory: dict[str, dict[str, float]] = {}
    for name in CASES:
        memory[name] = {}
        for contender, function in _contenders(name, shape[1]).items():
            _value_and_gradient(function, *few)  # Loads what is loaded at first use.
            call = partial(_value_and_gradient, function, logits, target)
            memory[name][contender] = measured(call)[2] / (logits.numel() * logits.element_size())
    return memory


def _contenders(name: str, n_classes: int) -> dict[str, Function]:
    case = CASES[name]
    return {
        _REFERENCE: F.cross_entropy,
        _OURS: case.loss(n_classes),
        _PLAIN: case.plain(n_classes),
    }


def _batch(shape: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Return logits of a model that has learnt something, and targets: four in five class 0."""
    generator = torch.Generator().manual_seed(0)
    n_items, n_classes = shape
    target = torch.randint(n_classes, (n_items,), generator=generator)
    target[torch.rand(n_items, generator=generator) < 0.8] = 0
    logits = torch.randn(shape, generator=generator)
    logits[torch.arange(n_items), target] += 4
    return logits.requires_grad_(), target


def _value_and_gradient(function: Function, logits: Tensor, target: Tensor) -> Tensor:
    (gradient,) = torch.autograd.grad(function(logits, target), logits)
    return gradient


# -- the losses as one would write them down -------------------------------------------------------


def _cross_entropy(z: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
    losses = -z.softmax(1).gather(1, y.unsqueeze(1)).squeeze(1).log()
    return (losses if weight is None else losses * weight[y]).mean()


def _focal(z: Tensor, y: Tensor) -> Tensor:
    p = z.softmax(1).gather(1, y.unsqueeze(1)).squeeze(1)
    return ((1 - p) ** 2 * -p.log()).mean()


def _dice(z: Tensor, y: Tensor) -> Tensor:
    p, gold = _scores(z, y)
    return _ratio((2 * p * gold).sum(), (p**2 + gold**2).sum())


def _tversky(z: Tensor, y: Tensor) -> Tensor:
    p, gold = _scores(z, y)
    wrong = 0.5 * p**2 * (1 - gold) + 0.5 * (1 - p) ** 2 * gold
    return _ratio((p * gold).sum(), (p * gold + wrong).sum())


def _dsc(z: Tensor, y: Tensor) -> Tensor:
    p, gold = _scores(z, y)
    f = (1 - p) ** 0.01 * p
    return _ratio((2 * f * gold).sum(), (f**2 + gold**2).sum())


def _dsc_paper(z: Tensor, y: Tensor) -> Tensor:
    p, gold = _scores(z, y)
    f = (1 - p) * p
    return _ratio(2 * f * gold, f + gold).mean()


def _dsc_official(z: Tensor, y: Tensor) -> Tensor:
    p, gold = _scores(z, y)
    f = (1 - p) ** 0.01 * p
    return _ratio(2 * f * gold, f**2 + gold**2).sum(1).mean()


def _dice_ohem(z: Tensor, y: Tensor) -> Tensor:
    p, gold = _scores(z, y)
    # Without class 0, as where it is the background.
    p, gold = p[:, 1:], gold[:, 1:]
    n_kept = max(1, round(float(gold.sum())))
    hardest = p.detach()[gold == 0].sort(descending=True).values[n_kept - 1]
    keep = (gold == 1) | (p >= hardest)
    return _ratio((2 * p * gold * keep).sum(), ((p**2 + gold**2) * keep).sum())


def _dice_mixed(z: Tensor, y: Tensor) -> Tensor:
    return 0.5 * _cross_entropy(z, y) + 0.5 * _dice(z, y)


def _scores(z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return z.softmax(1), F.one_hot(y, z.shape[1]).to(z.dtype)


def _ratio(numerator: Tensor, denominator: Tensor) -> Tensor:
    return 1 - (numerator + 1) / (denominator + 1)


def _class_weight(n_classes: int) -> Tensor:
    return torch.linspace(0.5, 1.5, n_classes)


def _named(name: str, plain: Function, **parameters: Any) -> Case:
    return Case(lambda n_classes: make_loss(name, **parameters), lambda n_classes: plain)


CASES = {
    "ce": _named("ce", _cross_entropy),
    "wce": Case(
        lambda n_classes: make_loss("wce", class_weight=_class_weight(n_classes)),
        lambda n_classes: lambda z, y: _cross_entropy(z, y, _class_weight(n_classes)),
    ),
    "focal": _named("focal", _focal),
    "dice": _named("dice", _dice),
    "tversky": _named("tversky", _tversky),
    "dsc": _named("dsc", _dsc),
    "dsc-paper": _named("dsc-paper", _dsc_paper),
    "dsc-official": _named("dsc-official", _dsc_official),
    "dice, ohem_ratio=1": _named("dice", _dice_ohem, ohem_ratio=1.0, background=0),
    "dice, ce_weight=0.5": _named("dice", _dice_mixed, ce_weight=0.5),
}
