"""Errors of the file system, said so that one knows what is lost and what to do."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# What renaming gives when others rename or delete the same directories, and what a lock gives.
_OF_OTHER_WRITERS = (errno.ENOTEMPTY, errno.ENOENT, errno.EAGAIN)


@contextmanager
def explained(directory: Path, what: str) -> Iterator[None]:
    """Say what an error of the file system means, by whatever library it is raised.

    Parameters
    ----------
    directory : Path
    what : str
        What was to be saved there, to start the sentence with.
    """
    try:
        yield
    except Exception as error:
        number = error.errno if isinstance(error, OSError) else _error_number(error)
        if number is None:
            raise
        fix = "Make room or pass another directory"
        if number in _OF_OTHER_WRITERS:
            fix = "Another process writes there too: give each a directory of its own"
        raise OSError(
            number,
            f"{what} could not be saved ({os.strerror(number)}). What was there before is as it "
            f"was, and nothing is left of what was written. {fix}",
            str(directory),
        ) from error


def _error_number(error: Exception) -> int | None:
    """Return the number of a system error that a library in Rust raises as one of its own."""
    found = re.search(r"\(os error (\d+)\)", str(error))
    return int(found[1]) if found else None
