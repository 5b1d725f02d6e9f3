"""Readers for the usual corpus formats and seeded generators of imbalanced text."""

from skdice.datasets._conll import read_conll
from skdice.datasets._make_tagging import make_tagging

__all__ = ["make_tagging", "read_conll"]
