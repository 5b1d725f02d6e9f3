"""The categories of warnings that a user may want to filter, and functions that warn."""

import contextlib
import inspect
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["TruncationWarning"]

_HERE = os.path.dirname(__file__) + os.sep
_IS_SILENT = ContextVar("_IS_SILENT", default=False)  # in this thread
# The categories that were warned of in the outermost call, if it warns once of each.
_TOLD: ContextVar[set[type[Warning] | str] | None] = ContextVar("_TOLD", default=None)
FILTERS = threading.RLock()  # All threads share the filters of warnings, so they take turns.


class TruncationWarning(UserWarning):
    """Texts were longer than ``max_length`` pieces, and were cut.

    A fit, a comparison or a search that runs in one process warns once, of the first such rows.

    Examples
    --------
    >>> import warnings
    >>> from skdice.exceptions import TruncationWarning
    >>> with warnings.catch_warnings():  # An error, not a warning, for the fits in here.
    ...     warnings.simplefilter("error", TruncationWarning)
    """


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn in the name of the code outside of this library that called it."""
    if _IS_SILENT.get():
        return
    told = _TOLD.get()
    if told is not None:
        key: type[Warning] | str = message if category is UserWarning else category
        if key in told:
            return
        told.add(key)
    frame, level, outermost = inspect.currentframe(), 1, 1
    while frame is not None:
        file = frame.f_code.co_filename
        # A function of ours that is decorated by told_once is called by contextlib.
        if file.startswith(_HERE) or (file == contextlib.__file__ and outermost == level - 1):
            outermost = level
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=outermost + 1)


@contextmanager
def silent() -> Iterator[None]:
    """Hide what this library warns of, in this thread."""
    token = _IS_SILENT.set(True)
    try:
        yield
    finally:
        _IS_SILENT.reset(token)


@contextmanager
def told_once() -> Iterator[None]:
    """Warn once of each category that users may filter, and of each other message; per thread.

    It is also a decorator.
    """
    told = _TOLD.get()
    token = _TOLD.set(set() if told is None else told)
    try:
        yield
    finally:
        _TOLD.reset(token)


@contextmanager
def hidden(category: type[Warning] = Warning) -> Iterator[None]:
    """Hide what others warn of, in one thread at a time."""
    with FILTERS, warnings.catch_warnings(action="ignore", category=category):
        yield
