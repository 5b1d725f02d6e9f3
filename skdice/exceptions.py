"""The categories of warnings that one may want to filter."""

import inspect
import os
import warnings

__all__ = ["TruncationWarning"]

_HERE = os.path.dirname(__file__) + os.sep


class TruncationWarning(UserWarning):
    """Texts were longer than ``max_length`` pieces, and were cut.

    Examples
    --------
    >>> import warnings
    >>> from skdice.exceptions import TruncationWarning
    >>> with warnings.catch_warnings():  # An error, not a warning, for the fits in here.
    ...     warnings.simplefilter("error", TruncationWarning)
    """


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn in the name of the code outside of this library that called it."""
    frame, level, outermost = inspect.currentframe(), 1, 1
    while frame is not None:
        if frame.f_code.co_filename.startswith(_HERE):
            outermost = level
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=outermost + 1)
