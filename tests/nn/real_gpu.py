"""Counts how often a real GPU is waited for, as pretended_gpu.py does for a pretended one.

Torch warns of each wait, and the warnings are counted.
"""

import os
import sys
import warnings
from collections import Counter
from contextlib import contextmanager

waits: Counter[str] = Counter()


def _note(message, *args, **kwargs):
    """Count a warning of torch, with the line of skdice that made it wait."""
    if "synchronizing CUDA operation" in str(message):
        waits[f"a wait at {line_of_skdice()}"] += 1


def line_of_skdice():
    """Return the line of skdice that is executed."""
    frame = sys._getframe(1)
    while frame and f"{os.sep}skdice{os.sep}" not in frame.f_code.co_filename:
        frame = frame.f_back
    if frame is None:
        return "elsewhere"
    name = frame.f_code.co_filename.rpartition(f"{os.sep}skdice{os.sep}")[2]
    return f"skdice/{name}:{frame.f_lineno}"


@contextmanager
def gpu():
    """Let torch tell inside the block what it waits for."""
    import torch  # Not above: the pretended GPU takes the line from here before it loads torch.

    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = _note
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode(before)
