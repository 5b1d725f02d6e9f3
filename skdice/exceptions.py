"""The categories of warnings that one may want to filter."""

__all__ = ["TruncationWarning"]


class TruncationWarning(UserWarning):
    """Texts were longer than ``max_length`` pieces, and were cut.

    In a search, and inside :func:`skdice.model_selection.reuse_work`, it is given once.

    Examples
    --------
    >>> import warnings
    >>> from skdice.exceptions import TruncationWarning
    >>> with warnings.catch_warnings():  # An error, not a warning, for the fits in here.
    ...     warnings.simplefilter("error", TruncationWarning)
    """
