"""The command ``skdice``: results on stdout, everything else on stderr.

What is heavy to import is imported where it is used, so that help and usage errors come at once.
"""

from ._main import main

__all__ = ["main"]
