"""Peak memory and time of a call in a process of its own (Linux: read from /proc)."""

import ctypes
import gc
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

_M_MMAP_THRESHOLD = -3  # of malloc.h


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of a module in a new interpreter, and return what it returns."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def return_freed_blocks() -> None:
    """Let glibc give every freed block of 64 KiB back, so that resident memory is used memory."""
    ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 2**16)


def measured(function: Callable[[], Any]) -> tuple[Any, float, int]:
    """Call a function.

    Returns
    -------
    result
        What it returned.
    seconds : float
    extra : int
        Peak of the resident memory during the call above that before it, in bytes.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # Sets the peak to what is resident now.
    start = time.perf_counter()
    result = function()
    seconds = time.perf_counter() - start
    return result, seconds, max(0, _resident("VmHWM") - before)


def _resident(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return 1024 * int(value.split()[0])
    raise OSError(f"/proc/self/status has no {field}.")
