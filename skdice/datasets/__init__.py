"""Readers and writers of corpora and annotation tools, and generators of imbalanced text."""

from ._conll import read_conll, write_conll
from ._conllu import read_conllu, split_into_characters
from ._doccano import read_doccano, write_doccano
from ._formats import find_format as find_format
from ._json import read_labeled_json, read_tagged_json
from ._label_studio import read_label_studio, write_label_studio
from ._labeled_text import read_labeled_text
from ._make_pairs import make_pairs
from ._make_questions import make_questions
from ._make_tagging import make_tagging
from ._pairs import read_pairs
from ._squad import read_squad
from ._text_files import iterate_lines as iterate_lines
from ._text_files import open_bytes as open_bytes
from ._words_from_spans import words_from_spans

__all__ = [
    "make_pairs",
    "make_questions",
    "make_tagging",
    "read_conll",
    "read_conllu",
    "read_doccano",
    "read_label_studio",
    "read_labeled_json",
    "read_labeled_text",
    "read_pairs",
    "read_squad",
    "read_tagged_json",
    "split_into_characters",
    "words_from_spans",
    "write_conll",
    "write_doccano",
    "write_label_studio",
]
