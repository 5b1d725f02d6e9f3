"""Readers for the usual corpus formats and seeded generators of imbalanced text."""

from ._characters import split_into_characters
from ._conll import read_conll
from ._conllu import read_conllu
from ._make_tagging import make_tagging

__all__ = ["make_tagging", "read_conll", "read_conllu", "split_into_characters"]
