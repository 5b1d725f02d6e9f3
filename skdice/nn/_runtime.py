"""The state of torch that a fit needs, put back afterwards: generators, denormals, precision."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Literal, get_args

import torch
from torch import Tensor

_ONE_AT_A_TIME = threading.RLock()
PRECISIONS = ("fp32", "bf16", "fp16")
Runtime = Literal["torch", "onnx", "onnx-int8"]
RUNTIMES: tuple[Runtime, ...] = get_args(Runtime)
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def resolve_device(device: str) -> str:
    """Return the device to use; "auto" is a GPU if there is one.

    It is a ValueError if this machine, or this torch, does not have it.
    """
    n_cuda = torch.cuda.device_count() if torch.cuda.is_available() else 0
    has_mps = torch.backends.mps.is_available()
    if device == "auto":
        return "cuda" if n_cuda else "mps" if has_mps else "cpu"
    asked = torch.device(device)
    gpus = [*(f"cuda:{i}" for i in range(n_cuda)), *["mps:0"] * has_mps]
    if asked.type in ("cuda", "mps") and f"{asked.type}:{asked.index or 0}" not in gpus:
        allowed = ", ".join(map(repr, ["auto", "cpu", *gpus]))
        raise ValueError(
            f"The 'device' parameter must be one of {{{allowed}}}, which is what torch "
            f"{torch.__version__} can use on this machine. Got {device!r} instead."
        )
    return device


def resolve_precision(precision: str, device: str) -> str:
    """Return fp32, bf16 or fp16; "auto" is half precision where the hardware has it.

    A GPU computes in bf16 or, if it is too old for that, in fp16; a CPU in bf16 if it has AMX or
    AVX-512 instructions for it.
    """
    if precision != "auto":
        return precision
    kind = torch.device(device).type
    if kind == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported() else "fp16"
    return "bf16" if kind == "cpu" and _cpu_has_bf16() else "fp32"


def _cpu_has_bf16() -> bool:
    """Whether the CPU has instructions for bf16, as far as torch knows."""
    known: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(known.get(name, False) for name in ("amx_bf16", "avx512_bf16"))


def autocast(precision: str, device: str) -> Any:
    """Return the context in which a network computes in the given precision."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(torch.device(device).type, dtype=_DTYPES[precision])


@contextmanager
def seeded(seed: int, device: str) -> Iterator[None]:
    """Draw torch's random numbers from ``seed`` inside the block; restore the generators after.

    The generators belong to the process, and dropout draws from them alone, so other threads wait
    at their own block. All that draws in a fit or at loading is inside of one: fits in threads take
    turns, and each is the one that it would be alone. What other code draws from torch's generators
    meanwhile changes it, and is drawn from ``seed``.
    """
    with _ONE_AT_A_TIME, torch.random.fork_rng(devices=_cuda_index(device)):
        seed_generators(seed, device)
        yield


def seed_generators(seed: int, device: str) -> None:
    """Draw torch's random numbers on the CPU and the device from ``seed`` from now on."""
    torch.default_generator.manual_seed(seed)
    for index in _cuda_index(device):
        torch.cuda.default_generators[index].manual_seed(seed)


def generator_states(device: Any) -> list[Tensor]:
    """Return the states of torch's generators, on the CPU and the device."""
    return [torch.get_rng_state(), *map(torch.cuda.get_rng_state, _cuda_index(device))]


def set_generator_states(device: Any, states: list[Tensor]) -> None:
    """Set what :func:`generator_states` returned."""
    torch.set_rng_state(states[0])
    for index, state in zip(_cuda_index(device), states[1:]):
        torch.cuda.set_rng_state(state, index)


def _cuda_index(device: str) -> list[int]:
    where = torch.device(device)
    if where.type != "cuda":
        return []
    return [torch.cuda.current_device() if where.index is None else where.index]


@contextmanager
def denormals_flushed() -> Iterator[None]:
    """Treat denormal numbers as zero inside the block: they make CPUs crawl.

    So does the calling thread, and those that torch starts inside the block to compute with.
    """
    was_flushing = bool(torch.tensor(1e-310, dtype=torch.float64) * 1 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(was_flushing)
