"""The categories of warnings that one may want to filter."""

__all__ = ["TruncationWarning"]


class TruncationWarning(UserWarning):
    """Texts were longer than ``max_length`` pieces, and were cut.

    Examples
    --------
    >>> import warnings
    >>> from skdice.exceptions import TruncationWarning
    >>> with warnings.catch_warnings():  # An error, not a warning, for the fits in here.
    ...     warnings.simplefilter("error", TruncationWarning)
    """
