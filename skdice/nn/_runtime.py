"""The state of torch that a fit needs, put back afterwards: generators, denormals, precision."""

import ctypes
import functools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

_ONE_AT_A_TIME = threading.RLock()
# By how much bf16 has to be faster on a CPU; noise must not decide.
_LEAST_GAIN = 1.2
_N_TIMINGS = 5
PRECISIONS = ("fp32", "bf16", "fp16")
RUNTIMES = ("torch", "onnx", "onnx-int8")
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def resolve_device(device: str) -> str:
    """Return the device to use; "auto" is a GPU if there is one."""
    if device != "auto":
        return device
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def resolve_precision(precision: str, device: str) -> str:
    """Return fp32, bf16 or fp16; "auto" is half precision where the hardware gains by it.

    On a CPU that is measured, once in a process: instructions for bf16 alone do not tell.
    """
    if precision != "auto":
        return precision
    kind = torch.device(device).type
    if kind == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported() else "fp16"
    if kind == "cpu" and _may_have_bf16() and _gain_of_bf16() > _LEAST_GAIN:
        return "bf16"
    return "fp32"


def _may_have_bf16() -> bool:
    """Whether a CPU has instructions for bf16, as far as torch knows."""
    known: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    names = ("amx_bf16", "avx512_bf16")
    return any(known.get(name, True) for name in names)


@functools.cache
def _gain_of_bf16() -> float:
    """Return how many times as fast as in fp32 a layer of an encoder is trained in bf16."""
    layer = torch.nn.utils.skip_init(torch.nn.Linear, 384, 1536)
    texts = torch.full((256, 384), 0.01, requires_grad=True)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.fill_(0.01)  # Drawing them would move torch's generator.
    best = {"fp32": float("inf"), "bf16": float("inf")}
    for _ in range(_N_TIMINGS):
        for precision in best:
            start = time.perf_counter()
            with autocast(precision, "cpu"):
                layer(texts).sum().backward()
            best[precision] = min(best[precision], time.perf_counter() - start)
    return best["fp32"] / best["bf16"]


def autocast(precision: str, device: str) -> Any:
    """Return the context in which a network computes in the given precision."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(torch.device(device).type, dtype=_DTYPES[precision])


@contextmanager
def seeded(seed: int, device: str) -> Iterator[None]:
    """Draw torch's random numbers from ``seed`` inside the block; restore the generators after.

    The generators belong to the process, so other threads wait at their own block.
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
    states = [torch.get_rng_state()]
    if torch.device(device).type == "cuda":
        states.append(torch.cuda.get_rng_state(device))
    return states


def set_generator_states(device: Any, states: list[Tensor]) -> None:
    """Set what :func:`generator_states` returned."""
    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state(states[1], device)


def _cuda_index(device: str) -> list[int]:
    where = torch.device(device)
    if where.type != "cuda":
        return []
    return [torch.cuda.current_device() if where.index is None else where.index]


@contextmanager
def denormals_flushed() -> Iterator[None]:
    """Treat denormal numbers as zero inside the block: they make CPUs crawl.

    So do the threads that torch computes with, which afterwards are as before.
    """
    was_flushing = bool(torch.tensor(1e-310, dtype=torch.float64) * 1 == 0)
    _flush_denormals(True)
    try:
        yield
    finally:
        _flush_denormals(was_flushing)


def _flush_denormals(flush: bool) -> None:
    """Set the mode of this thread and of the threads that compute for it.

    These have, as long as they live, the mode in which this thread was when it first had need of
    them; ``torch.set_flush_denormal`` does not reach them.
    """
    share_mode = None if _FORKED else _mode_sharer()
    if share_mode is None and not _FORKED:
        torch.zeros(torch.get_num_threads() << 16).add_(1)  # Starts them in the mode from before.
    torch.set_flush_denormal(flush)
    if share_mode is not None:
        share_mode()


@functools.cache
def _mode_sharer() -> Callable[[], None] | None:
    """Return what gives the floating-point mode of a thread to those that compute for it.

    None if torch was not built with an OpenMP library that has the interface of GNU's.
    """
    try:
        torch_library = ctypes.CDLL(torch._C.__file__)
        run_in_threads = torch_library.GOMP_parallel
        get_mode, set_mode = torch_library.fegetenv, torch_library.fesetenv
    except (AttributeError, OSError):
        return None
    run_in_threads.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
    run_in_threads.restype = None
    set_mode_address = ctypes.cast(set_mode, ctypes.c_void_p)

    def share_mode() -> None:
        mode = (ctypes.c_uint64 * 32)()  # More than any C library takes.
        get_mode(mode)
        run_in_threads(set_mode_address, ctypes.addressof(mode), torch.get_num_threads(), 0)

    return share_mode


# The threads of a forked process are those of its parent: waiting for them would never end.
_FORKED: list[bool] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _FORKED.append(True))
