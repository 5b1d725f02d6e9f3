"""What a fit runs on: the device, precision and generators of torch, and the processes of a job.

A job is several processes that run the same program, each with a number, its rank, as torchrun and
``accelerate launch`` start them. All of them have all the data and the same weights. They share the
work and add up its parts by :class:`Ranks`.
"""

import atexit
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import torch
from torch import Tensor

T = TypeVar("T")
_ONE_AT_A_TIME = threading.RLock()
Precision = Literal["fp32", "bf16", "fp16"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
Runtime = Literal["torch", "onnx", "onnx-int8"]
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
# Between two fits, a process may evaluate on its own while the others wait.
_TIMEOUT = timedelta(minutes=30)


def resolve_device(device: str) -> str:
    """Return the device to use, for "auto" a GPU if there is one; refuse one that is missing."""
    n_cuda = torch.cuda.device_count() if torch.cuda.is_available() else 0
    has_mps = torch.backends.mps.is_available()
    if device == "auto":
        return "cuda" if n_cuda else "mps" if has_mps else "cpu"
    gpus = [*(f"cuda:{i}" for i in range(n_cuda)), *["mps:0"] * has_mps]
    try:
        asked = torch.device(device)
        is_there = asked.type not in ("cuda", "mps") or f"{asked.type}:{asked.index or 0}" in gpus
    except (RuntimeError, TypeError):  # It is no device of torch.
        is_there = False
    if not is_there:
        allowed = ", ".join(map(repr, ["auto", "cpu", *gpus]))
        raise ValueError(
            f"The 'device' parameter must be one of {{{allowed}}}, which is what torch "
            f"{torch.__version__} can use on this machine. Got {device!r} instead."
        )
    return device


def resolve_precision(precision: Precision | Literal["auto"], device: str) -> Precision:
    """Return fp32, bf16 or fp16; "auto" is half precision where the hardware has it.

    A GPU computes in bf16 or, if it is too old for that, in fp16; a CPU in bf16 if it has AMX or
    AVX-512 instructions for it.
    """
    if precision != "auto":
        return precision
    kind = torch.device(device).type
    if kind == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
    known: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()
    has_bf16 = any(known.get(name, False) for name in ("amx_bf16", "avx512_bf16"))
    return "bf16" if kind == "cpu" and has_bf16 else "fp32"


def works_on(device: str) -> bool:
    """Whether a device can hold CUDA graphs."""
    return torch.device(device).type == "cuda" and torch.version.cuda is not None


def autocast(precision: str, device: str) -> AbstractContextManager[object]:
    """Return the context in which a network computes in the given precision."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(torch.device(device).type, dtype=_DTYPES[precision])


@contextmanager
def seeded(seed: int, device: str) -> Iterator[None]:
    """Draw torch's random numbers from ``seed`` inside the block; restore the generators after.

    The generators belong to the process, so one thread at a time may be inside such a block: fits
    in threads take turns, and each gives the result that it gives alone. Other code that draws from
    these generators meanwhile changes the fit, and gets numbers that follow from ``seed``.
    """
    gpus = [device] if torch.device(device).type == "cuda" else []
    with _ONE_AT_A_TIME, torch.random.fork_rng(gpus, device_type="cuda"):
        for generator in generators_of(device):
            generator.manual_seed(seed)
        yield


def shared_seed(random_state: Any, device: str) -> int:
    """Return a seed from a random state, in a job that of the first process; ints must be equal."""
    ranks = current_ranks(device)
    if isinstance(random_state, np.random.RandomState):  # Drawing advances it, like a Generator.
        seed = int(random_state.randint(2**31 - 1))
    elif random_state is None or isinstance(random_state, np.random.Generator):
        seed = int(np.random.default_rng(random_state).integers(2**31))
    else:
        seed = int(random_state) % 2**32  # All generators take seeds up to this.
        if ranks.count > 1:
            ranks.compare({"parameters": str(seed)})
    return seed if ranks.count == 1 else ranks.gather(seed)[0]


def generators_of(device: str | torch.device) -> list[torch.Generator]:
    """Return torch's generators of the CPU and, if that is a GPU, of the device."""
    where = torch.device(device)
    if where.type != "cuda":
        return [torch.default_generator]
    torch.cuda.init()  # There are none before.
    index = torch.cuda.current_device() if where.index is None else where.index
    return [torch.default_generator, torch.cuda.default_generators[index]]


@contextmanager
def denormals_flushed() -> Iterator[None]:
    """Treat denormal numbers as zero inside the block: they make CPUs crawl.

    This holds for the calling thread, and for the threads that torch starts inside the block.
    """
    was_flushing = bool(torch.tensor(1e-310, dtype=torch.float64) * 1 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(was_flushing)


@dataclass(frozen=True)
class Ranks:
    """The processes that train one network together; tensors are sent from the ``device``."""

    index: int = 0
    count: int = 1
    device: str = "cpu"

    def add_up(self, tensors: Iterable[Tensor]) -> None:
        """Replace tensors by their sums over the processes, which are several."""
        self._send(tensors, torch.distributed.all_reduce)

    def copy_first(self, tensors: Iterable[Tensor]) -> None:
        """Replace tensors by those of the first process."""
        if self.count > 1:
            self._send(tensors, partial(torch.distributed.broadcast, src=0))

    def sum(self, tensor: Tensor) -> Tensor:
        """Return the sum of a tensor over the processes."""
        if self.count == 1:
            return tensor
        total = tensor.clone()
        self.add_up([total])
        return total

    def gather(self, value: T) -> list[T]:
        """Return what each of the processes has; tensors have to lie on the CPU.

        If another process has failed meanwhile (:func:`failing_together`), it is its error.
        """
        if self.count == 1:
            return [value]
        values = [value] * self.count
        torch.distributed.all_gather_object(values, value)
        for rank, found in enumerate(values):
            if isinstance(found, OtherProcessError):
                raise OtherProcessError(f"Process {rank} of {self.count} raised {found}")
        return values

    def join(self, rows: Tensor) -> Tensor:
        """Return the rows of all processes one after the other."""
        return rows if self.count == 1 else torch.cat(self.gather(rows.cpu())).to(rows.device)

    def compare(self, digests: Mapping[str, str]) -> None:
        """Raise a ValueError in all processes if one has other digests than the first."""
        first, *others = self.gather(dict(digests))
        for rank, found in enumerate(others, start=1):
            if names := [name for name, value in found.items() if value != first[name]]:
                raise ValueError(
                    f"The {self.count} processes of a job must fit the same rows with the same "
                    f"parameters, but unlike process 0, process {rank} has other "
                    f"{', '.join(names)}. Give all rows to every process; they share out the work "
                    f"by themselves."
                )

    def _send(self, tensors: Iterable[Tensor], collective: Callable[[Tensor], Any]) -> None:
        """Replace tensors by the results of a collective; those of one type are sent together."""
        by_type: dict[torch.dtype, list[Tensor]] = {}
        for tensor in tensors:
            by_type.setdefault(tensor.dtype, []).append(tensor.detach())
        for group in by_type.values():
            flat = torch.cat([tensor.flatten() for tensor in group]).to(self.device)
            collective(flat)
            parts = flat.split([tensor.numel() for tensor in group])
            torch._foreach_copy_(group, [part.view(t.shape) for t, part in zip(group, parts)])


ALONE = Ranks()


class OtherProcessError(ValueError):
    """Another process of the job has failed."""


@contextmanager
def failing_together(device: str) -> Iterator[None]:
    """If one process of a job raises an error inside the block, have all others raise it, too.

    Without this, they would wait for that process until it begins its next fit. Inside the block
    the processes may exchange values by :meth:`Ranks.gather` and :meth:`Ranks.compare` alone.
    """
    index, count = _job()
    if count == 1:
        yield
        return
    try:
        ranks = current_ranks(resolve_device(device))
        yield
        ranks.gather(None)
    except OtherProcessError:
        raise
    except Exception as error:
        error.add_note(f"Process {index} of {count} raised this; the others stop as well.")
        if torch.distributed.is_initialized():
            with suppress(Exception):  # One of several failures, or a process that is lost.
                Ranks(index, count).gather(OtherProcessError(f"{type(error).__name__}: {error}"))
        raise


def current_ranks(device: str) -> Ranks:
    """Return the processes of the job that this one is part of, and connect them if need be.

    The job is that of torch.distributed, if this was initialised, else that of the launcher's
    environment variables. "cuda" becomes the GPU of the process's local rank; the number of a GPU
    raises a ValueError. A worker of joblib (``n_jobs=2``) fits alone.
    """
    index, count = _job()
    if count == 1:
        return ALONE
    device = resolve_device(device) if device == "auto" else device
    where = torch.device(device)
    if where.type == "cuda" and where.index is not None:
        raise ValueError(
            f"Write device='cuda' in a job of {count} processes: each of them takes a GPU of its "
            f"own, and with a number all would take the same. Got {device!r} instead."
        )
    if where.type == "cuda" and "LOCAL_RANK" in os.environ:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    if not torch.distributed.is_initialized():
        backend = "cpu:gloo,cuda:nccl" if where.type == "cuda" else "gloo"
        torch.distributed.init_process_group(backend, timeout=_TIMEOUT)
        atexit.register(_disconnect)
    return Ranks(index, count, device)


def is_first_process() -> bool:
    """Whether this process may write files: it is the first one of its job, or has no job."""
    return _job()[0] == 0


def count_processes() -> int:
    """Return how many processes the job has, 1 without a job."""
    return _job()[1]


def _job() -> tuple[int, int]:
    """Return the number of this process in its job, and how many processes that has."""
    from joblib.parallel import get_active_backend

    is_worker = get_active_backend()[0].nesting_level
    index, count = 0, 1
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        index, count = torch.distributed.get_rank(), torch.distributed.get_world_size()
    elif "RANK" in os.environ:
        index, count = int(os.environ["RANK"]), int(os.environ.get("WORLD_SIZE", 1))
    return (index, count) if count > 1 and not is_worker else (0, 1)


def _disconnect() -> None:
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
