"""Which rows to label next."""

from ._choose import choose_rows

__all__ = ["choose_rows"]
