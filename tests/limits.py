"""A file system that takes no more, for tests of what a failed write leaves."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def limited_file_size(n_bytes: int) -> Iterator[None]:
    """Let writes fail that make a file longer than so many bytes; skip where that cannot be set."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
