"""Readers for the usual corpus formats and seeded generators of imbalanced text."""

from ._conll import read_conll
from ._make_tagging import make_tagging

__all__ = ["make_tagging", "read_conll"]
